// Between claim and start: which claimed job takes the next slot, and how many more to ask for.
//
// Claimed jobs wait in the buffer. They start in order while there are slots and the worker is trusted.
// A job that has crashed workers before runs alone: it waits until nothing else runs, and nothing else
// starts until it is done. A job that could not start soon enough goes back to its place in the queue.
import { runsAlone } from '../core/decide.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { JobRun } from './job-run.ts'
import type { Slots } from './slots.ts'

export interface DispatchOptions {
  readonly runtime: Runtime
  readonly slots: Slots
  /** May this run start now? */
  readonly mayStart: (run: JobRun) => boolean
  readonly isPaused: (queue: string) => boolean
  readonly start: (run: JobRun) => void
  readonly giveBack: (run: JobRun) => void
}

/** Runs are prefetched only while the average run is this short: a longer one would keep others waiting. */
const PREFETCH_RUN_MAX_MS = 250

export class Dispatch {
  readonly #options: DispatchOptions
  #buffer: JobRun[] = []
  #alone: JobRun | undefined
  #running = 0
  #starting = false
  #ageTimer: Timer | undefined
  #averageRunMs = Infinity

  constructor(options: DispatchOptions) {
    this.#options = options
  }

  get running(): number {
    return this.#running
  }

  get buffered(): number {
    return this.#buffer.length
  }

  /** How many more jobs this worker can use now. */
  wanted(): number {
    if (this.#alone !== undefined || this.#buffer.some(({ claimed }) => runsAlone(claimed))) return 0
    const { slots } = this.#options
    return Math.min(slots.free + this.#prefetch() - this.#buffer.length, LIMITS.claimBatchMax)
  }

  add(runs: readonly JobRun[]): void {
    this.#buffer.push(...runs)
    this.startWaiting()
  }

  startWaiting(): void {
    // A handler may end synchronously and come back here: the outer loop goes on with the next job.
    if (this.#starting || this.#buffer.length === 0) return
    this.#starting = true
    let taken = 0
    while (taken < this.#buffer.length && this.#startNext(this.#buffer[taken])) taken += 1
    if (taken > 0) this.#buffer = this.#buffer.slice(taken)
    this.#starting = false
    this.#watchAge()
  }

  /** False: it has to wait, and everyone behind it too. */
  #startNext(run: JobRun | undefined): boolean {
    const { slots, mayStart, isPaused, start, giveBack } = this.#options
    if (run === undefined || this.#alone !== undefined) return false
    if (run.state === 'ended') return true
    if (!mayStart(run) || isPaused(run.claimed.queue)) {
      run.state = 'ended'
      giveBack(run)
      return true
    }
    if (slots.free <= 0) return false
    if (runsAlone(run.claimed)) {
      if (slots.used > 0) return false
      this.#alone = run
    }
    slots.take()
    this.#running += 1
    start(run)
    return true
  }

  ended(run: JobRun, ranMs: number): void {
    this.#running -= 1
    if (this.#alone === run) this.#alone = undefined
    this.#averageRunMs = this.#averageRunMs === Infinity ? ranMs : this.#averageRunMs * 0.9 + ranMs * 0.1
    this.#options.slots.giveBack()
    this.startWaiting()
  }

  /** Everything that has not started goes back; with a queue, only the jobs of that queue. */
  returnBuffered(which: (run: JobRun) => boolean = () => true): void {
    const back = this.#buffer.filter(which)
    if (back.length === 0) return
    this.#buffer = this.#buffer.filter((run) => !which(run))
    for (const run of back) {
      if (run.state === 'ended') continue
      run.state = 'ended'
      this.#options.giveBack(run)
    }
  }

  #prefetch(): number {
    if (this.#averageRunMs > PREFETCH_RUN_MAX_MS) return 0
    return Math.max(1, Math.floor(this.#options.slots.max * DEFAULTS.prefetchRatio))
  }

  #watchAge(): void {
    const [oldest] = this.#buffer
    if (oldest === undefined || this.#ageTimer !== undefined) return
    const { clock } = this.#options.runtime
    const waitMs = oldest.claimedMs + DEFAULTS.prefetchAgeMaxMs - clock.monoMs()
    this.#ageTimer = clock.timer(waitMs, () => {
      this.#ageTimer = undefined
      const bornBeforeMs = clock.monoMs() - DEFAULTS.prefetchAgeMaxMs
      // What must run alone waits for the others to end; sending it around would not help.
      this.returnBuffered((run) => run.claimedMs <= bornBeforeMs && !runsAlone(run.claimed))
      this.#averageRunMs = Infinity
      this.#watchAge()
    })
  }
}
