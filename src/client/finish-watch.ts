// Waits for jobs to end. A hint of the store makes it look at once; behind it stands a poll that slows
// down from 20 ms to 1 s. Everybody who waits on one connection shares the reads.
import type { JobId, StoredJob } from '../core/job.ts'
import { isFinal } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { finishedTopic } from '../store/wakeups.ts'
import { isRetryable } from './store-retry.ts'

export interface FinishWatch {
  /** The job once it is final, or null when there is none. Rejects with the reason of the signal. */
  ended(id: JobId, signal: AbortSignal): Promise<StoredJob | null>
}

interface Waiter {
  readonly id: JobId
  readonly settle: (job: StoredJob | null) => void
  readonly fail: (error: unknown) => void
  waitMs: number
  timer: Timer | undefined
  ended: boolean
}

const POLL_MIN_MS = 20
const POLL_MAX_MS = 1_000

export function createFinishWatch(backend: Pick<Backend, 'query' | 'wakeups'>, runtime: Runtime): FinishWatch {
  let due = new Set<Waiter>()
  let looking = false

  function lookAt(waiter: Waiter): void {
    if (waiter.ended) return
    waiter.timer?.cancel()
    due.add(waiter)
    if (looking) return
    looking = true
    queueMicrotask(() => void lookAll())
  }

  async function lookAll(): Promise<void> {
    while (due.size > 0) {
      const chunk = [...due].slice(0, LIMITS.pageSizeMax)
      due = new Set([...due].slice(chunk.length))
      await look(chunk)
    }
    looking = false
  }

  async function look(chunk: readonly Waiter[]): Promise<void> {
    try {
      const jobs = await backend.query.get(chunk.map(({ id }) => id))
      for (const [index, waiter] of chunk.entries()) {
        const job = jobs[index] ?? null
        if (job === null || isFinal(job.status)) waiter.settle(job)
        else lookLater(waiter)
      }
    } catch (error) {
      for (const waiter of chunk) {
        if (isRetryable(error)) lookLater(waiter)
        else waiter.fail(error)
      }
    }
  }

  function lookLater(waiter: Waiter): void {
    // It may have been aborted while the store was asked.
    if (waiter.ended) return
    // The caller awaits this, so it must keep the process alive.
    const options = { keepAlive: true }
    waiter.timer = runtime.clock.timer(waiter.waitMs * (0.75 + runtime.random() / 2), () => lookAt(waiter), options)
    waiter.waitMs = Math.min(waiter.waitMs * 1.5, POLL_MAX_MS)
  }

  return {
    ended(id, signal) {
      if (signal.aborted) return Promise.reject(signal.reason)
      return new Promise((resolve, reject) => {
        const end = (answer: () => void): void => {
          if (waiter.ended) return
          waiter.ended = true
          waiter.timer?.cancel()
          due.delete(waiter)
          stopListening()
          signal.removeEventListener('abort', onAbort)
          answer()
        }
        const onAbort = (): void => end(() => reject(signal.reason))
        const settle = (job: StoredJob | null): void => end(() => resolve(job))
        const fail = (error: unknown): void => end(() => reject(error))
        const waiter: Waiter = { id, settle, fail, waitMs: POLL_MIN_MS, timer: undefined, ended: false }
        const stopListening = backend.wakeups.listen([finishedTopic(id)], () => lookAt(waiter))
        signal.addEventListener('abort', onAbort, { once: true })
        // Listening comes first: a job that ends between the two is seen by the look.
        lookAt(waiter)
      })
    },
  }
}
