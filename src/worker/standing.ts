// The claims of one life that stand in the store: they got nothing, and jobs may be handed over by an insert
// (store/hand-overs.ts), which saves the bell and a call. A job that was handed over is held by this worker
// whether it hears of it or not, so whatever may have gone astray is asked for: `onDoubt` makes the pump look.
//
// Claims and looks have rising numbers. A look fences the claims before it: what they were answered with is known
// by then, or is given back, and must not start when the message comes after all.
import type { ClaimedJob, WorkerId } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import { isPlanted } from '../core/planted.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { HandOver, HandOvers, OnBack } from '../store/hand-overs.ts'
import type { Slots } from './slots.ts'

export interface StandingOptions {
  readonly runtime: Runtime
  readonly handOvers: HandOvers | undefined
  readonly slots: Pick<Slots, 'hold' | 'letGo'>
  readonly onJobs: (jobs: readonly ClaimedJob[], worker: WorkerId) => void
  /** From now on claims may stand. */
  readonly onOpen: () => void
  /** Something may have been handed over that was not heard of. */
  readonly onDoubt: () => void
}

/** The connection for messages may be back later than that for calls, or never be allowed: twice as long after each try. */
const LISTEN_AGAIN_MS = 5_000
const LISTEN_AGAIN_MAX_MS = 60_000

export class Standing {
  readonly #options: StandingOptions
  #worker: WorkerId | undefined
  #unlisten: (() => void) | undefined
  /** Of the last claim whose hand-over was heard, or was given up by a look. */
  #knownNo = 0
  /** Of the last claim that was answered by a hand-over, as the store says. */
  #toldNo = 0
  #late: Timer | undefined
  #again: Timer | undefined
  #hasStood = false
  /** A message was lost. */
  #isDeaf = false
  /** Until the look something may arrive, and counts as held. */
  #isWithdrawing = false

  constructor(options: StandingOptions) {
    this.#options = options
  }

  /** Whether claims may stand now. */
  get isHeard(): boolean {
    return this.#unlisten !== undefined && !this.#isDeaf
  }

  /** Called for each claim of a worker that has nothing to do. True: it may stand. The first of a life begins to listen. */
  stand(worker: WorkerId): boolean {
    if (this.#options.handOvers === undefined) return false
    if (this.#worker !== worker) this.#follow(worker, this.#options.handOvers)
    this.#hasStood ||= this.isHeard
    return this.isHeard
  }

  /** Nothing is wanted for now: a claim that still stands is withdrawn by a look. */
  withdraw(): void {
    if (!this.#hasStood) return
    this.#hasStood = false
    if (!this.#isWithdrawing) this.#options.slots.hold()
    this.#isWithdrawing = true
    this.#options.onDoubt()
  }

  /** A claim was answered, and says which claim was the last that an insert answered. */
  told(worker: WorkerId, answeredNo: number): void {
    if (worker !== this.#worker) return
    this.#toldNo = Math.max(this.#toldNo, answeredNo)
    if (this.#toldNo > this.#knownNo) this.#wait(worker, this.#toldNo)
  }

  #wait(worker: WorkerId, forNo: number): void {
    const { clock } = this.#options.runtime
    this.#late ??= clock.timer(DEFAULTS.handOverLateMs, () => {
      // One turn of the loop first: after a blocked loop the message may be waiting to be read.
      void clock.breathe().then(() => {
        if (worker !== this.#worker) return
        this.#late = undefined
        if (forNo > this.#knownNo) this.#missed()
        else if (this.#toldNo > this.#knownNo) this.#wait(worker, this.#toldNo)
      })
    })
  }

  // Where one message was lost the next may be as well; it takes a new connection to trust them again.
  #missed(): void {
    if (isPlanted('hand-over-not-missed')) return
    this.#isDeaf = true
    this.#options.onDoubt()
  }

  /** What the claims up to this number brought is known now, or goes back. */
  looked(worker: WorkerId, claimNo: number): void {
    if (worker !== this.#worker || isPlanted('hand-over-not-fenced') || isPlanted('hybrid-hand-over-not-fenced')) return
    this.#knownNo = Math.max(this.#knownNo, claimNo)
  }

  /** It is back. */
  givenBack(): void {
    if (!this.#isWithdrawing) return
    this.#isWithdrawing = false
    this.#options.slots.letGo()
  }

  stop(): void {
    this.#worker = undefined
    this.#unlisten?.()
    this.#unlisten = undefined
    this.#late?.cancel()
    this.#again?.cancel()
    this.#late = this.#again = undefined
    this.#hasStood = this.#isDeaf = false
    this.givenBack()
  }

  #follow(worker: WorkerId, handOvers: HandOvers): void {
    this.stop()
    this.#worker = worker
    this.#knownNo = this.#toldNo = 0
    this.#listen(worker, handOvers, 0)
  }

  #listen(worker: WorkerId, handOvers: HandOvers, failures: number): void {
    const { runtime, onDoubt, onOpen } = this.#options
    const onBack: OnBack = (why) => {
      if (worker !== this.#worker) return
      if (why === 'connected') this.#isDeaf = false
      onDoubt()
    }
    handOvers
      .listen(worker, (handOver) => this.#heard(worker, handOver), onBack)
      .then(
        (unlisten) => {
          if (worker !== this.#worker) return unlisten()
          this.#unlisten = unlisten
          onOpen()
        },
        (error: unknown) => {
          if (worker !== this.#worker) return
          const message = 'jobs cannot be handed over to this worker yet; it claims them when it is rung'
          // Said once: where a permission is missing it is the same every time.
          if (failures > 0) runtime.logger.debug({ worker, error }, message)
          else runtime.logger.warn({ worker, error }, message)
          const mostMs = Math.min(LISTEN_AGAIN_MS * 2 ** Math.min(failures, 10), LISTEN_AGAIN_MAX_MS)
          const waitMs = mostMs * (0.75 + runtime.random() / 4)
          this.#again = runtime.clock.timer(waitMs, () => this.#listen(worker, handOvers, failures + 1))
        },
      )
  }

  #heard(worker: WorkerId, { claimNo, before, jobs }: HandOver): boolean {
    // Doubled, or given back meanwhile: somebody else may run it by now.
    if (worker !== this.#worker || claimNo <= this.#knownNo) return false
    const isMissing = before > this.#knownNo
    this.#knownNo = claimNo
    this.#options.onJobs(jobs, worker)
    if (isMissing) this.#missed()
    return true
  }
}
