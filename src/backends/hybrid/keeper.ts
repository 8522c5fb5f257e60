// Keeps one session: beats, marks what has been in flight for a while, adopts new epochs. One class, which runs in the
// heartbeat thread over a connection of its own, or on the main loop where there is no thread.
//
// Adoption: the gate is closed, everything in flight is marked in PostgreSQL together with the epoch that the session has
// seen, then the gate opens for the new epochs. While the outcome is unknown the gate stays closed and it is tried again.
import type { LeaseRef, WorkerId } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import type { Timer } from '../../runtime/clock.ts'
import type { BeatReply, BeatRequest } from '../../store/worker-store.ts'
import { InFlightView } from './in-flight.ts'
import type { SharedInFlight } from './in-flight.ts'
import type { DispatchNews, InFlightRef, SessionLedger } from './ports.ts'

export interface KeeperOptions {
  readonly ledger: SessionLedger
  readonly worker: WorkerId
  readonly inFlight: SharedInFlight
  /** Monotonic, the same in all threads of the process. */
  readonly monoMs: () => number
  readonly timer: (delayMs: number, fire: () => void) => Timer
  readonly markAfterMs: number
  readonly markEveryMs: number
  /** Leases were lost between two beats. */
  readonly onLost: () => void
}

export interface KeeperReply extends BeatReply {
  readonly news: DispatchNews
}

const MARKS_MAX = 1_000
const ADOPT_AGAIN_MS = 50
/** A reply may come too late to be read, so a lost lease is told more than once; telling it again does no harm. */
const TOLD_TIMES = 3
const NO_NEWS: DispatchNews = { rows: [], epoch: 0, serverChanged: false }

export class Keeper {
  readonly #options: KeeperOptions
  readonly #inFlight: InFlightView
  #lost: { readonly ref: LeaseRef; readonly told: number }[] = []
  #target: DispatchNews = NO_NEWS
  #adopted = -1
  #adopting: Promise<void> | undefined
  #marking = false
  #markTimer: Timer | undefined
  #retry: Timer | undefined
  /** The ledger has to be told again what is adopted here. */
  #isForgotten = false
  #isDead = false
  #isResting = false
  #stopped = false

  constructor(options: KeeperOptions) {
    this.#options = options
    this.#inFlight = new InFlightView(options.inFlight)
  }

  /** Marks from now on. */
  start(): void {
    this.#isResting = false
    if (this.#markTimer === undefined) this.#planMarks()
  }

  /** Somebody else keeps the session from now on: its thread, or again the main loop. The gate is theirs. */
  rest(): void {
    this.#isResting = true
    this.#markTimer?.cancel()
    this.#markTimer = undefined
    this.#retry?.cancel()
  }

  /** The session is over: nothing starts any more. */
  stop(): void {
    this.#stopped = true
    this.rest()
    this.#inFlight.close()
  }

  async beat(request: BeatRequest): Promise<KeeperReply> {
    const reply = await this.#options.ledger.beat({ ...request, failing: this.#inFlight.failing() })
    if (!reply.alive) {
      this.#die()
      return { alive: false, cancels: [], commands: [], news: NO_NEWS }
    }
    this.see(reply.news)
    if (reply.epochSeen < reply.news.epoch && this.#adopted === reply.news.epoch) this.#adoptAgain()
    const lost = this.#lost.map(({ ref }) => ref)
    this.#lost = this.#lost
      .filter(({ told }) => told + 1 < TOLD_TIMES)
      .map(({ ref, told }) => ({ ref, told: told + 1 }))
    const { cancels, commands, news } = reply
    return { alive: true, cancels, commands, news, ...(lost.length > 0 && { lost }) }
  }

  /** Resolves when the epochs of the last beat are adopted, or could not be at once. */
  async adopted(): Promise<void> {
    await this.#adopting
  }

  /** Marks everything in flight: nothing of it may be left to a guess. */
  async markAll(): Promise<void> {
    const refs = this.#inFlight.list(this.#options.monoMs())
    if (refs.length > 0) await this.#mark(refs)
  }

  #die(): void {
    this.#isDead = true
    this.#inFlight.close()
  }

  /** What PostgreSQL says now: newer epochs are adopted. */
  see(news: DispatchNews): void {
    const { epoch, rows } = this.#target
    if (news.epoch < epoch) return
    // With the same counter rows are the same: some may only not have been asked for.
    const more = news.rows.filter(({ queue }) => !rows.some((row) => row.queue === queue))
    if (news.epoch === epoch && more.length === 0 && this.#target !== NO_NEWS) return
    this.#target = news.epoch > epoch ? news : { ...news, rows: [...rows, ...more] }
    this.#adopted = -1
    this.#adoptSoon()
  }

  /** PostgreSQL does not know of it any more: it came back without its last commits. */
  #adoptAgain(): void {
    this.#adopted = -1
    this.#isForgotten = true
    this.#adoptSoon()
  }

  /** The thread is gone and this keeper beats again: what the thread has adopted is not known here. */
  again(): void {
    this.#adopted = -1
    this.#target = NO_NEWS
    this.start()
  }

  #adoptSoon(): void {
    if (this.#adopting !== undefined || this.#isResting || this.#stopped || this.#isDead) return
    this.#retry?.cancel()
    this.#adopting = this.#adopt().finally(() => {
      this.#adopting = undefined
      if (this.#adopted >= this.#target.epoch || this.#isResting || this.#stopped || this.#isDead) return
      this.#retry = this.#options.timer(ADOPT_AGAIN_MS, () => this.#adoptSoon())
    })
  }

  async #adopt(): Promise<void> {
    const { ledger, worker, monoMs } = this.#options
    const target = this.#target
    const { epoch, rows } = target
    // Whoever kept the session before this one has seen more: the next beat says it here too.
    if (this.#inFlight.adoptedCounter > epoch) {
      this.#adopted = epoch
      return
    }
    const epochs = this.#inFlight.queues.map((queue) => rows.find((row) => row.queue === queue)?.epoch ?? 0)
    // So has whoever kept it before: with the gate shut a busy worker would take nothing, for what PostgreSQL knows already.
    if (!this.#isForgotten && this.#inFlight.isOpenFor(epoch, epochs)) {
      this.#adopted = epoch
      return
    }
    const generation = this.#inFlight.close()
    const refs = isPlanted('hybrid-adopt-without-marks') ? [] : this.#inFlight.list(monoMs())
    const lost = await ledger.adopt(worker, epoch, refs).catch(() => undefined)
    if (lost === undefined || this.#stopped) return
    if (lost === null) {
      this.#die()
      return
    }
    this.#isForgotten = false
    this.#inFlight.noteMarked(refs)
    this.#lose(lost)
    if (this.#target !== target) return
    // Shut again meanwhile, by whoever keeps the session beside this one: adopted once more.
    if (this.#inFlight.open(generation, epoch, epochs)) this.#adopted = epoch
  }

  #planMarks(): void {
    if (this.#stopped) return
    this.#markTimer = this.#options.timer(this.#options.markEveryMs, () => {
      this.#planMarks()
      if (this.#marking || this.#isDead || this.#inFlight.size === 0) return
      const refs = this.#inFlight.unmarked(this.#options.monoMs(), this.#options.markAfterMs, MARKS_MAX)
      if (refs.length === 0) return
      this.#marking = true
      void this.#mark(refs)
        .catch(() => undefined) // tried again with the next pass
        .finally(() => {
          this.#marking = false
        })
    })
  }

  async #mark(refs: readonly InFlightRef[]): Promise<void> {
    const lost = await this.#options.ledger.mark(this.#options.worker, refs)
    this.#inFlight.noteMarked(refs)
    this.#lose(lost)
  }

  #lose(lost: readonly LeaseRef[]): void {
    if (lost.length === 0) return
    for (const ref of lost) this.#lost.push({ ref, told: 0 })
    this.#options.onLost()
  }
}
