// Between claim and start: which claimed job takes the next slot, and how many more to ask for.
//
// Claimed jobs wait in the buffer and start in order while there are slots and the worker is trusted. A
// rate-limited job takes its token with the slot in hand, so no time passes between token and start. A job
// that has crashed workers before runs alone: everything else goes back first. A job that could not start
// soon enough goes back to its place in the queue.
import { runsAlone } from '../core/decide.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { JobRun } from './job-run.ts'
import type { SlotUser, Slots } from './slots.ts'

export interface DispatchOptions {
  readonly runtime: Runtime
  readonly slots: Slots
  readonly mayStart: (run: JobRun) => boolean
  readonly isPaused: (queue: string) => boolean
  readonly start: (run: JobRun) => void
  /** Takes tokens for runs that have their slots; each comes back through `admitted` or `vacate`. */
  readonly takeTokens: (runs: readonly JobRun[]) => void
  readonly giveBack: (run: JobRun) => void
  /** More jobs could be used than before. */
  readonly onRoom: () => void
}

/** Runs are prefetched only while the average run is this short: a longer one would keep others waiting. */
const PREFETCH_RUN_MAX_MS = 250
/** While runs are this short a larger buffer empties in no time, and larger batches cost the store less per job. */
const SHORT_RUN_MAX_MS = 2
const SHORT_RUN_BUFFER_MS = 50
const SHORT_RUN_PREFETCH_MAX = 2_000
/** What the slots use up while a call to the store is under way: without it they would wait for each other's settlements. */
const CALL_BUFFER_MS = 5
/** A smaller claim is not worth splitting. */
const SHARE_MIN = 64

export class Dispatch implements SlotUser {
  readonly #options: DispatchOptions
  #buffer: JobRun[] = []
  #alone: JobRun | undefined
  #running = 0
  #starting = false
  #ageTimer: Timer | undefined
  #averageRunMs = Infinity
  #onIdle: (() => void) | undefined

  constructor(options: DispatchOptions) {
    this.#options = options
    options.slots.join(this)
  }

  /** Jobs that have a slot. */
  get running(): number {
    return this.#running
  }

  /** Nothing runs, and nothing waits to. */
  get isEmpty(): boolean {
    return this.#running === 0 && this.#buffer.length === 0
  }

  /**
   * How many more jobs this worker can use now, with so many asked for already. Calls that overlap share the room, so
   * that one part runs while the store works on the other.
   */
  wanted(asked: number, calls: number): number {
    const { slots } = this.#options
    if (this.#alone !== undefined || !slots.mayUse(this) || this.#buffer.some(isAlone)) return 0
    const prefetch = this.#prefetch()
    const room = slots.free + prefetch - this.#buffer.length - asked
    // Beside a busy neighbour an idle engine keeps one job at hand, or it would never be offered a slot.
    const idle = slots.isShared && this.#running === 0 && this.#buffer.length === 0 && asked === 0
    const share = Math.max(Math.ceil((slots.max + prefetch) / calls), SHARE_MIN)
    return Math.min(Math.max(room, idle ? 1 : 0), share, LIMITS.claimBatchMax)
  }

  add(runs: readonly JobRun[]): void {
    this.#buffer.push(...runs)
    // One runs alone, or another engine wants the process for that: whatever is held here would be blamed for its crash.
    if (this.#alone === undefined && this.#options.slots.mayUse(this)) this.startWaiting()
    else this.returnBuffered()
  }

  startWaiting(): void {
    // A handler may end synchronously and come back here: the outer loop goes on with the next job.
    if (this.#starting || this.#buffer.length === 0) return
    this.#starting = true
    const limited: JobRun[] = []
    let taken = 0
    try {
      // The buffer may change under a handler that stops its own worker; what has a slot is not in it any more.
      for (let next = this.#buffer[0]; next !== undefined; next = this.#buffer[0]) {
        const isOurs = next.state !== 'ended' && this.#mayStart(next)
        if (isOurs && !this.#hasSlotFor(next)) break
        this.#buffer.shift()
        taken += 1
        if (isOurs) this.#take(next, limited)
        else if (next.state !== 'ended') this.#sendBack(next)
      }
    } finally {
      this.#starting = false
    }
    if (limited.length > 0) this.#options.takeTokens(limited)
    const alone = this.#buffer.find(isAlone)
    if (alone !== undefined) this.returnBuffered((run) => run !== alone)
    else if (this.#alone === undefined) this.#options.slots.release(this)
    if (taken > 0 || this.#buffer.length > 0) this.#watchAge()
  }

  /** False: it has to wait, and everyone behind it too. */
  #hasSlotFor(run: JobRun): boolean {
    const { slots } = this.#options
    if (this.#alone !== undefined) return false
    return isAlone(run) ? slots.reserve(this) : slots.free > 0 && slots.mayUse(this)
  }

  #take(run: JobRun, limited: JobRun[]): void {
    const { slots, start } = this.#options
    if (isAlone(run)) this.#alone = run
    slots.take()
    this.#running += 1
    if (run.claimed.rateLimited) limited.push(run)
    else start(run)
  }

  #sendBack(run: JobRun): void {
    run.state = 'ended'
    this.#options.giveBack(run)
  }

  #mayStart(run: JobRun): boolean {
    return this.#options.mayStart(run) && !this.#options.isPaused(run.claimed.queue)
  }

  /** Its token was taken. Much may have happened meanwhile. */
  admitted(run: JobRun): void {
    if (run.state === 'buffered' && this.#mayStart(run)) this.#options.start(run)
    else this.vacate(run, () => this.#options.giveBack(run))
  }

  /** Gives up the slot of a run that was not started; `settle` says what becomes of its job. */
  vacate(run: JobRun, settle: () => void): void {
    if (run.state === 'buffered') {
      run.state = 'ended'
      settle()
    }
    this.#leaveSlot(run)
  }

  ended(run: JobRun, ranMs: number): void {
    this.#averageRunMs = this.#averageRunMs === Infinity ? ranMs : this.#averageRunMs * 0.9 + ranMs * 0.1
    this.#leaveSlot(run)
  }

  #leaveSlot(run: JobRun): void {
    const { slots } = this.#options
    this.#running -= 1
    slots.giveBack()
    if (this.#alone === run) {
      this.#alone = undefined
      slots.release(this)
    }
    if (this.#running === 0) this.#onIdle?.()
  }

  /** Resolves when no job has a slot any more, or when the time is up; answers which. */
  async idleWithin(limitMs: number): Promise<boolean> {
    if (this.#running === 0) return true
    const { clock } = this.#options.runtime
    return new Promise((resolve) => {
      const timer = clock.timer(limitMs, () => this.#onIdle?.(), { keepAlive: true })
      this.#onIdle = () => {
        this.#onIdle = undefined
        timer.cancel()
        resolve(this.#running === 0)
      }
    })
  }

  onSlot(): void {
    this.startWaiting()
    this.#options.onRoom()
  }

  onYield(): void {
    this.returnBuffered()
  }

  stop(): void {
    this.returnBuffered()
    this.#ageTimer?.cancel()
    this.#options.slots.leave(this)
  }

  /** Whatever has not started goes back. */
  returnBuffered(which: (run: JobRun) => boolean = () => true): void {
    const back = this.#buffer.filter(which)
    if (back.length === 0) return
    this.#buffer = this.#buffer.filter((run) => !which(run))
    for (const run of back) {
      if (run.state !== 'ended') this.#sendBack(run)
    }
    if (!this.#buffer.some(isAlone) && this.#alone === undefined) this.#options.slots.release(this)
  }

  #prefetch(): number {
    if (this.#averageRunMs > PREFETCH_RUN_MAX_MS) return 0
    const { max } = this.#options.slots
    const usual = Math.max(1, Math.floor(max * DEFAULTS.prefetchRatio))
    const duringCall = Math.floor((max * CALL_BUFFER_MS) / this.#averageRunMs)
    if (this.#averageRunMs > SHORT_RUN_MAX_MS) return Math.max(usual, duringCall)
    const emptiedInTime = (max * SHORT_RUN_BUFFER_MS) / Math.max(this.#averageRunMs, 0.01)
    return Math.max(usual, Math.floor(Math.min(emptiedInTime, SHORT_RUN_PREFETCH_MAX)))
  }

  #watchAge(): void {
    // What must run alone waits for the others to end; sending it around would not help.
    const oldest = this.#buffer.find((run) => !isAlone(run))
    if (oldest === undefined || this.#ageTimer !== undefined) return
    const { clock } = this.#options.runtime
    const waitMs = oldest.claimedMs + DEFAULTS.prefetchAgeMaxMs - clock.monoMs()
    this.#ageTimer = clock.timer(waitMs, () => {
      this.#ageTimer = undefined
      const bornBeforeMs = clock.monoMs() - DEFAULTS.prefetchAgeMaxMs
      this.returnBuffered((run) => run.claimedMs <= bornBeforeMs && !isAlone(run))
      this.#averageRunMs = Infinity
      this.#watchAge()
    })
  }
}

function isAlone({ claimed }: JobRun): boolean {
  return runsAlone(claimed)
}
