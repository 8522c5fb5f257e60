// Where the living rows of a queue begin, per priority, as far as this process has seen. While a transaction is
// held open somewhere, rows that were claimed cannot be cleaned up, and every claim would walk over all of them;
// with a floor it starts behind them (measured in docs/adr/004). Only a shortcut: jobs below the floor (returned
// ones, late commits) are found by a claim without floors, one a second, and whenever a claim finds too little.
import type { Clock } from '../../runtime/clock.ts'

const SWEEP_MS = 1_000
/** Distinct priorities remembered per queue; a queue with more goes without floors. */
const PRIORITIES_MAX = 16

export class Floors {
  readonly #clock: Clock
  readonly #seqs = new Map<number, number>()
  #sweptMs = -Infinity
  #wasFull = false

  constructor(clock: Clock) {
    this.#clock = clock
  }

  /** Sorted by priority; empty when it is time to look at everything: a claim after one that came short does anyway. */
  get(): readonly (readonly [priority: number, seq: number])[] {
    if (!this.#wasFull || this.#seqs.size === 0 || this.#clock.monoMs() - this.#sweptMs >= SWEEP_MS) return []
    return [...this.#seqs].sort((a, b) => a[0] - b[0])
  }

  /** Learns from what a claim took. */
  learn(
    claimed: readonly { readonly job: { readonly priority: number }; readonly seq: number }[],
    swept: boolean,
    isFull: boolean,
  ): void {
    this.#wasFull = isFull
    if (swept) {
      this.#sweptMs = this.#clock.monoMs()
      this.#seqs.clear()
    }
    const lowest = new Map<number, number>()
    for (const { job, seq } of claimed) {
      const known = lowest.get(job.priority)
      if (known === undefined || seq < known) lowest.set(job.priority, seq)
    }
    for (const [priority, seq] of lowest) this.#seqs.set(priority, seq)
    if (this.#seqs.size > PRIORITIES_MAX) this.#seqs.clear()
  }

  /** A job went back to its old place: the next claim looks at everything. */
  forget(): void {
    this.#seqs.clear()
  }
}
