// Timeouts of many runs with one timer. Runs of one timeout end in the order they started, so each
// distinct timeout is a plain queue; starting and ending a run touches no timer.
import type { Clock, Timer } from '../runtime/clock.ts'

export interface Deadline {
  /** Monotonic; changed by `extend`. */
  dueMs: number
  /** Set when the run ended; the queue drops it when it comes by. */
  over: boolean
  expire(): void
}

export class Deadlines {
  readonly #clock: Clock
  readonly #byTimeout = new Map<number, DeadlineQueue>()
  #timer: Timer | undefined
  #timerDueMs = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(deadline: Deadline, timeoutMs: number): void {
    let queue = this.#byTimeout.get(timeoutMs)
    if (queue === undefined) this.#byTimeout.set(timeoutMs, (queue = { waiting: [], sweepAt: SWEEP_MIN }))
    queue.waiting.push(deadline)
    // Ended runs are dropped when they may be half of the queue: each is looked at a constant number of times.
    if (queue.waiting.length >= queue.sweepAt) sweep(queue)
    if (deadline.dueMs < this.#timerDueMs) this.#arm(deadline.dueMs)
  }

  /** Its deadline was changed; a later one is found out when the timer comes by. */
  moved(deadline: Deadline): void {
    if (deadline.dueMs < this.#timerDueMs) this.#arm(deadline.dueMs)
  }

  stop(): void {
    this.#timer?.cancel()
    this.#timer = undefined
    this.#byTimeout.clear()
  }

  #arm(dueMs: number): void {
    this.#timer?.cancel()
    this.#timerDueMs = dueMs
    this.#timer = this.#clock.timer(dueMs - this.#clock.monoMs(), () => this.#fire())
  }

  #fire(): void {
    this.#timer = undefined
    this.#timerDueMs = Infinity
    const nowMs = this.#clock.monoMs()
    let nextMs = Infinity
    for (const [timeoutMs, queue] of this.#byTimeout) {
      for (const deadline of queue.waiting) if (!deadline.over && deadline.dueMs <= nowMs) deadline.expire()
      queue.waiting = queue.waiting.filter((deadline) => !deadline.over && deadline.dueMs > nowMs)
      if (queue.waiting.length === 0) this.#byTimeout.delete(timeoutMs)
      for (const { dueMs } of queue.waiting) nextMs = Math.min(nextMs, dueMs)
    }
    if (nextMs < this.#timerDueMs) this.#arm(nextMs)
  }
}

interface DeadlineQueue {
  waiting: Deadline[]
  sweepAt: number
}

const SWEEP_MIN = 64

function sweep(queue: DeadlineQueue): void {
  queue.waiting = queue.waiting.filter((deadline) => !deadline.over)
  queue.sweepAt = Math.max(SWEEP_MIN, queue.waiting.length * 2)
}
