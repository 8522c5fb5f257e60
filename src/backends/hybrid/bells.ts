// Wake-ups of the hybrid: those of PostgreSQL, the bell of Redis for tokens, and those that this process rings itself.
import type { Topic, Wakeups } from '../../store/wakeups.ts'

export class Bells implements Wakeups {
  readonly #store: Wakeups
  readonly #listeners = new Map<Topic, Set<(topic: Topic) => void>>()

  constructor(store: Wakeups) {
    this.#store = store
  }

  listen(topics: readonly Topic[], onHint: (topic: Topic) => void): () => void {
    const stop = this.#store.listen(topics, onHint)
    for (const topic of topics) {
      const listeners = this.#listeners.get(topic) ?? new Set()
      this.#listeners.set(topic, listeners.add(onHint))
    }
    return () => {
      stop()
      for (const topic of topics) {
        const listeners = this.#listeners.get(topic)
        listeners?.delete(onHint)
        if (listeners?.size === 0) this.#listeners.delete(topic)
      }
    }
  }

  /** In this process alone. */
  ring(topic: Topic): void {
    for (const listener of this.#listeners.get(topic) ?? []) {
      try {
        listener(topic)
      } catch {
        continue // a listener that throws hurts nobody else
      }
    }
  }
}
