// How many jobs may run at once in this process, shared by the engines of several connections.

export class Slots {
  readonly max: number
  #used = 0
  readonly #onFree = new Set<() => void>()

  constructor(max: number) {
    this.max = max
  }

  get used(): number {
    return this.#used
  }

  get free(): number {
    return this.max - this.#used
  }

  take(): void {
    this.#used += 1
  }

  giveBack(): void {
    this.#used -= 1
    for (const listener of this.#onFree) listener()
  }

  /** Called after a slot was given back; answers the way to stop. */
  onFree(listener: () => void): () => void {
    this.#onFree.add(listener)
    return () => this.#onFree.delete(listener)
  }
}
