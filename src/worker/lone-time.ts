// How much of a process goes to jobs that must run alone. While one does, everything else stands still: a machine that has
// died twice under a hundred long jobs would stop its queues for as long as all of them take. So they get a stretch at once,
// and then no more than half of the time; who finds it used up comes back later.

/** A few of them are cleared at once, within the time that a dead worker takes to be noticed. */
const STRETCH_MS = 10_000

export class LoneTime {
  /** What was used and not yet made up for by time for the others. */
  #usedMs = 0
  #asOfMs = 0

  /** Until the next one may run: 0 is now. */
  waitMs(nowMs: number): number {
    return Math.max(0, this.#leftOf(nowMs) - STRETCH_MS)
  }

  /** Whoever ran for long is made up for within a stretch: the others are not to wait for hours. */
  used(ranMs: number, nowMs: number): void {
    this.#usedMs = Math.min(this.#leftOf(nowMs - ranMs) + ranMs, 2 * STRETCH_MS)
    this.#asOfMs = nowMs
  }

  #leftOf(nowMs: number): number {
    return Math.max(0, this.#usedMs - Math.max(0, nowMs - this.#asOfMs))
  }
}
