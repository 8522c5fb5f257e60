// What a worker knows of its queues: which are paused, their lanes and their retry defaults. The claim in the store is
// the truth about pauses; this view only lets unstarted jobs go back at once.
import { DEFAULT_LANES } from '../core/priority.ts'
import type { LaneBounds } from '../core/priority.ts'
import type { RetryPolicyRecord } from '../core/retry.ts'
import { createLoop } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { CONFIG_TOPIC } from '../store/wakeups.ts'
import type { QueueRecord } from '../store/queue-store.ts'

/** Retry defaults of a queue may be this old; pauses are learned from hints and claims. */
const REFRESH_MS = 10_000

export interface QueueViewOptions {
  readonly runtime: Runtime
  readonly backend: Backend
  readonly queues: readonly string[]
  readonly onChange: () => void
}

export class QueueView {
  readonly #options: QueueViewOptions
  readonly #records = new Map<string, QueueRecord>()
  readonly #paused = new Set<string>()
  readonly #refresh
  #stopListening: (() => void) | undefined

  constructor(options: QueueViewOptions) {
    this.#options = options
    const pass = async (): Promise<number> => {
      await this.#load()
      options.onChange()
      return REFRESH_MS
    }
    this.#refresh = createLoop({ name: 'queue settings', runtime: options.runtime, pass })
  }

  async start(): Promise<void> {
    await this.#load()
    this.#stopListening = this.#options.backend.wakeups.listen([CONFIG_TOPIC], () => this.#refresh.wake())
    await this.#refresh.start()
  }

  stop(): void {
    this.#stopListening?.()
    void this.#refresh.stop()
  }

  isPaused(queue: string): boolean {
    return this.#paused.has(queue)
  }

  retryOf(queue: string): RetryPolicyRecord | null {
    return this.#records.get(queue)?.retry ?? null
  }

  lanesOf(queue: string): LaneBounds {
    return this.#records.get(queue)?.lanes ?? DEFAULT_LANES
  }

  sawPaused(asked: readonly string[], paused: readonly string[]): void {
    if (paused.length === 0 && this.#paused.size === 0) return
    for (const queue of asked) {
      if (paused.includes(queue)) this.#paused.add(queue)
      else this.#paused.delete(queue)
    }
  }

  async #load(): Promise<void> {
    const { backend, queues } = this.#options
    const records = await backend.queues.list()
    this.#paused.clear()
    for (const record of records) {
      if (!queues.includes(record.name)) continue
      this.#records.set(record.name, record)
      if (record.paused) this.#paused.add(record.name)
    }
  }
}
