// Time that stands still until a test moves it. Timers fire in order while it moves, and whatever they
// start gets its turn before the next one fires.
import type { Clock, Timer } from '../../src/runtime/clock.ts'

export interface TestClock {
  nowMs(): number
  advance(ms: number): Promise<void>
}

interface Waiting {
  readonly atMs: number
  readonly order: number
  readonly fire: () => void
}

/** An hour that is full: times in failing tests are easy to read. */
const START_MS = Date.UTC(2030, 0, 1, 12)

export class ManualClock implements Clock, TestClock {
  #nowMs = START_MS
  #order = 0
  readonly #waiting = new Set<Waiting>()

  nowMs(): number {
    return this.#nowMs
  }

  monoMs(): number {
    return this.#nowMs - START_MS
  }

  timer(delayMs: number, fire: () => void): Timer {
    const waiting = { atMs: this.#nowMs + Math.max(delayMs, 0), order: this.#order++, fire }
    this.#waiting.add(waiting)
    return { cancel: () => void this.#waiting.delete(waiting) }
  }

  breathe(): Promise<void> {
    return settled()
  }

  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    for (let next = this.#next(untilMs); next !== undefined; next = this.#next(untilMs)) {
      this.#waiting.delete(next)
      this.#nowMs = Math.max(this.#nowMs, next.atMs)
      next.fire()
      await settled()
    }
    this.#nowMs = untilMs
    await settled()
  }

  #next(untilMs: number): Waiting | undefined {
    let first: Waiting | undefined
    for (const waiting of this.#waiting) {
      if (waiting.atMs > untilMs) continue
      if (
        first === undefined ||
        waiting.atMs < first.atMs ||
        (waiting.atMs === first.atMs && waiting.order < first.order)
      ) {
        first = waiting
      }
    }
    return first
  }
}

/** Lets everything run that waits for nothing but its turn. */
function settled(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}
