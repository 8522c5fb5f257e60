// Forgetting what is over, a bounded number of entries at a time. The walk goes on where it stopped, so
// entries that stay cannot keep those behind them from ever being reached.

export class Sweep<Key, Value> {
  readonly #entries: Map<Key, Value>
  #walk: IterableIterator<[Key, Value]> | undefined

  constructor(entries: Map<Key, Value>) {
    this.#entries = entries
  }

  /** Looks at up to `limit` entries and deletes those that are over. Answers how many it deleted. */
  run(limit: number, isOver: (value: Value) => boolean): number {
    let deleted = 0
    for (let seen = 0; seen < limit; seen++) {
      this.#walk ??= this.#entries.entries()
      const { done, value } = this.#walk.next()
      if (done) {
        this.#walk = undefined
        return deleted
      }
      if (isOver(value[1]) && this.#entries.delete(value[0])) deleted += 1
    }
    return deleted
  }
}
