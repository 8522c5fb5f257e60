// Waits for jobs to end. A hint of the store makes it look at once; behind it stands a poll that slows
// down from 5 ms to 1 s. Everybody who waits on one connection shares the reads.
import type { JobId, StoredJob } from '../core/job.ts'
import { isFinal } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { finishedTopic } from '../store/wakeups.ts'
import { isRetryable } from './store-retry.ts'

interface Waiter {
  readonly id: JobId
  readonly settle: (job: StoredJob | null) => void
  readonly fail: (error: unknown) => void
  waitMs: number
  timer: Timer | undefined
  ended: boolean
}

/** A quick job may have ended before its worker heard that somebody waits. */
const POLL_MIN_MS = 5
const POLL_MAX_MS = 1_000

export class FinishWatch {
  readonly #backend: Pick<Backend, 'query' | 'wakeups'>
  readonly #runtime: Runtime
  #due = new Set<Waiter>()
  #looking = false

  constructor(backend: Pick<Backend, 'query' | 'wakeups'>, runtime: Runtime) {
    this.#backend = backend
    this.#runtime = runtime
  }

  /** The job once it is final, or null when there is none. Rejects with the reason of the signal. */
  ended(id: JobId, signal: AbortSignal): Promise<StoredJob | null> {
    if (signal.aborted) return Promise.reject(signal.reason)
    return new Promise((resolve, reject) => {
      const end = (answer: () => void): void => {
        if (waiter.ended) return
        waiter.ended = true
        waiter.timer?.cancel()
        this.#due.delete(waiter)
        stopListening()
        signal.removeEventListener('abort', onAbort)
        answer()
      }
      const onAbort = (): void => end(() => reject(signal.reason))
      const settle = (job: StoredJob | null): void => end(() => resolve(job))
      const fail = (error: unknown): void => end(() => reject(error))
      const waiter: Waiter = { id, settle, fail, waitMs: POLL_MIN_MS, timer: undefined, ended: false }
      const stopListening = this.#backend.wakeups.listen([finishedTopic(id)], () => this.#lookAt(waiter))
      signal.addEventListener('abort', onAbort, { once: true })
      // Listening comes first: a job that ends between the two is seen by the look.
      this.#lookAt(waiter)
    })
  }

  #lookAt(waiter: Waiter): void {
    if (waiter.ended) return
    waiter.timer?.cancel()
    this.#due.add(waiter)
    if (this.#looking) return
    this.#looking = true
    queueMicrotask(() => void this.#lookAll())
  }

  async #lookAll(): Promise<void> {
    while (this.#due.size > 0) {
      const due = [...this.#due]
      this.#due = new Set(due.slice(LIMITS.pageSizeMax))
      await this.#look(due.slice(0, LIMITS.pageSizeMax))
    }
    this.#looking = false
  }

  /** Never rejects: an error is told to those who wait, or the look is repeated. */
  async #look(chunk: readonly Waiter[]): Promise<void> {
    try {
      const jobs = await this.#backend.query.get(chunk.map(({ id }) => id))
      for (const [index, waiter] of chunk.entries()) {
        const job = jobs[index] ?? null
        if (job === null || isFinal(job.status)) waiter.settle(job)
        else this.#lookLater(waiter)
      }
    } catch (error) {
      for (const waiter of chunk) {
        if (isRetryable(error)) this.#lookLater(waiter)
        else waiter.fail(error)
      }
    }
  }

  #lookLater(waiter: Waiter): void {
    // It may have been aborted, or hinted at, while the store was asked.
    if (waiter.ended || this.#due.has(waiter)) return
    const { clock, random } = this.#runtime
    // The caller awaits this, so it must keep the process alive.
    const options = { keepAlive: true }
    waiter.timer = clock.timer(waiter.waitMs * (0.75 + random() / 2), () => this.#lookAt(waiter), options)
    waiter.waitMs = Math.min(waiter.waitMs * 1.5, POLL_MAX_MS)
  }
}
