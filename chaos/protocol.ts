// What the harness and the processes that it starts say to each other, over the channel of `fork`.
import type { Failpoint } from '../src/runtime/failpoints.ts'
import type { Place } from './system.ts'

interface ProcessSettings {
  readonly system: string
  readonly place: Place
  /** Told to `die`, it kills itself where it comes by next. */
  readonly dieAt?: Failpoint
}

export interface WorkerProcessSettings extends ProcessSettings {
  readonly role: 'worker'
  readonly runs: string
  readonly concurrency: number
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
  /** One job of ten belongs to one of so many groups. 0: none does. */
  readonly groups: number
}

export type Settings = WorkerProcessSettings | ProducerProcessSettings

/** To the harness. */
export type Said = { readonly kind: 'ready' } | { readonly kind: 'refused'; readonly message: string }

/** To a process: end in order; die at the failpoint of your settings. */
export type Told = 'stop' | 'die'
