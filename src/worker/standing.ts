// The claims of one life that stand in the store: what they did not get may be handed over by an insert
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
import type { HandOver, HandOvers } from '../store/hand-overs.ts'
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

export class Standing {
  readonly #options: StandingOptions
  #worker: WorkerId | undefined
  #unlisten: (() => void) | undefined
  /** Of the last claim whose hand-over was heard, or was given up by a look. */
  #knownNo = 0
  #late: Timer | undefined
  #hasStood = false
  /** Until the look something may arrive, and counts as held. */
  #isWithdrawing = false

  constructor(options: StandingOptions) {
    this.#options = options
  }

  /** Only once the hand-overs of this life can be heard. */
  mayStand(worker: WorkerId): boolean {
    if (this.#options.handOvers === undefined) return false
    if (this.#worker !== worker) this.#follow(worker, this.#options.handOvers)
    this.#hasStood ||= this.#unlisten !== undefined
    return this.#unlisten !== undefined
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
    if (worker !== this.#worker || answeredNo <= this.#knownNo || this.#late !== undefined) return
    this.#late = this.#options.runtime.clock.timer(DEFAULTS.handOverLateMs, () => {
      this.#late = undefined
      if (worker === this.#worker && answeredNo > this.#knownNo && !isPlanted('hand-over-not-missed'))
        this.#options.onDoubt()
    })
  }

  /** What the claims up to this number brought is known now, or on its way back. */
  looked(worker: WorkerId, claimNo: number): void {
    if (worker !== this.#worker) return
    if (!isPlanted('hand-over-not-fenced')) this.#knownNo = Math.max(this.#knownNo, claimNo)
    this.#withdrawn()
  }

  stop(): void {
    this.#worker = undefined
    this.#unlisten?.()
    this.#unlisten = undefined
    this.#late?.cancel()
    this.#late = undefined
    this.#hasStood = false
    this.#withdrawn()
  }

  #withdrawn(): void {
    if (!this.#isWithdrawing) return
    this.#isWithdrawing = false
    this.#options.slots.letGo()
  }

  #follow(worker: WorkerId, handOvers: HandOvers): void {
    const { runtime, onDoubt, onOpen } = this.#options
    this.stop()
    this.#worker = worker
    this.#knownNo = 0
    const onBack = (): void => (worker === this.#worker ? onDoubt() : undefined)
    handOvers
      .listen(worker, (handOver) => this.#heard(worker, handOver), onBack)
      .then(
        (unlisten) => {
          if (worker !== this.#worker) return unlisten()
          this.#unlisten = unlisten
          onOpen()
        },
        (error: unknown) => {
          // The bell still rings. The next life tries again.
          runtime.logger.warn(
            { worker, error },
            'jobs cannot be handed over to this worker; it claims them when it is rung',
          )
        },
      )
  }

  #heard(worker: WorkerId, { claimNo, before, jobs }: HandOver): void {
    // Doubled, or given back meanwhile: somebody else may run it by now.
    if (worker !== this.#worker || claimNo <= this.#knownNo) return
    const isMissing = before > this.#knownNo
    this.#knownNo = claimNo
    this.#options.onJobs(jobs, worker)
    if (isMissing) this.#options.onDoubt()
  }
}
