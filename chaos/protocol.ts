// What the harness and the processes that it starts say to each other, over the channel of `fork`.
import type { Failpoint } from '../src/runtime/failpoints.ts'
import type { Place } from './system.ts'

interface ProcessSettings {
  readonly system: string
  readonly place: Place
}

export interface WorkerProcessSettings extends ProcessSettings {
  readonly role: 'worker'
  readonly runs: string
  readonly concurrency: number
  readonly workers?: number
  readonly ttlMs?: number
  /** The job that kills its process. */
  readonly pill: string
  /** The job that blocks the loop of its process for its `longMs`. */
  readonly blocker: string
}

export interface ProducerProcessSettings extends ProcessSettings {
  readonly role: 'producer'
  readonly ledger: string
  /** Offered, whatever becomes of it. */
  readonly ratePerS: number
  /** One of so many jobs is long and runs for `longMs`. */
  readonly longEvery: number
  readonly longMs: number
  /** One job of ten belongs to one of so many groups, ten in a row to the same. 0: none does. */
  readonly groups: number
}

export type Settings = WorkerProcessSettings | ProducerProcessSettings

/** To the harness. */
export type Said =
  | { readonly kind: 'ready'; readonly nowMs: number }
  | { readonly kind: 'refused'; readonly message: string }
  | { readonly kind: 'measured'; readonly rssMaxBytes: number }

/**
 * To a process: end in order; fill the heap in the next handler; say how much memory you have had at the most; send yourself
 * a signal where you come by next; forget that.
 */
export type Told = 'stop' | 'exhaust' | 'measure' | Ambush | 'spare'

export interface Ambush {
  readonly at: Failpoint
  readonly signal: 'SIGKILL' | 'SIGSTOP'
}

/** How the process of a worker differs from others. */
export interface Look {
  /** Its clock on the wall is wrong by this. */
  readonly aheadMs?: number
  readonly heapMaxMiB?: number
  readonly workers?: number
  /** Of each worker. */
  readonly concurrency?: number
}
