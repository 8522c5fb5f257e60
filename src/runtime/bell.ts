// Something that several may hear.
export class Bell {
  readonly #listeners = new Set<() => void>()

  /** Answers the way to stop listening. */
  listen(listener: () => void): () => void {
    this.#listeners.add(listener)
    return () => void this.#listeners.delete(listener)
  }

  ring(): void {
    for (const listener of this.#listeners) listener()
  }
}
