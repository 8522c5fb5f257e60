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
  readonly #byTimeout = new Map<number, Deadline[]>()
  #timer: Timer | undefined
  #timerDueMs = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  add(deadline: Deadline, timeoutMs: number): void {
    const queue = this.#byTimeout.get(timeoutMs)
    if (queue === undefined) this.#byTimeout.set(timeoutMs, [deadline])
    else queue.push(deadline)
    if (deadline.dueMs < this.#timerDueMs) this.#arm(deadline.dueMs)
    else if (queue !== undefined && queue.length > 1024) this.#sweep(timeoutMs, queue)
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
      const waiting = queue.filter((deadline) => !deadline.over)
      for (const deadline of waiting) if (deadline.dueMs <= nowMs) deadline.expire()
      const left = waiting.filter((deadline) => !deadline.over && deadline.dueMs > nowMs)
      if (left.length === 0) this.#byTimeout.delete(timeoutMs)
      else this.#byTimeout.set(timeoutMs, left)
      for (const { dueMs } of left) nextMs = Math.min(nextMs, dueMs)
    }
    if (nextMs < this.#timerDueMs) this.#arm(nextMs)
  }

  // Ended runs are dropped in bulk: amortised, each is looked at twice.
  #sweep(timeoutMs: number, queue: readonly Deadline[]): void {
    this.#byTimeout.set(
      timeoutMs,
      queue.filter((deadline) => !deadline.over),
    )
  }
}
