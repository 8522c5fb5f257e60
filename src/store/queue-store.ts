// Queues are configured records. A queue is created by its first job or declared beforehand.
import type { RateLimit } from '../core/rate.ts'
import type { RetryPolicyRecord } from '../core/retry.ts'

export interface QueueStore {
  /** Creates the missing ones with these settings; existing ones keep theirs. Answers all of them. */
  ensure(queues: readonly QueueSettings[]): Promise<readonly QueueRecord[]>
  /**
   * Creates or changes; fields that are absent stay. With `expectVersion` (0: there is none) only if nobody
   * changed it meanwhile. Answers the record after the change, or null.
   */
  configure(queue: string, change: QueueChange, expectVersion?: number): Promise<QueueRecord | null>
  get(queue: string): Promise<QueueRecord | null>
  list(): Promise<readonly QueueRecord[]>
}

export interface QueueSettings {
  readonly name: string
  readonly defaultPriority: number
  readonly defaultAttempts: number
  readonly retry: RetryPolicyRecord | null
  readonly limits: QueueLimits
  readonly retention: QueueRetention
  /** 1 of this many starts goes to a waiting lower lane; 0: strict priority. */
  readonly lowerLaneShare: number
  /** Highest priority number of the high and the normal lane. */
  readonly lanes: readonly [highMax: number, normalMax: number]
}

export interface QueueLimits {
  readonly concurrency: number | null
  readonly rate: RateLimit | null
  readonly perKeyConcurrency: number | null
  readonly perKeyRate: RateLimit | null
}

/** How long finished jobs are kept; null: the default of the system. */
export interface QueueRetention {
  readonly completedMs: number | null
  readonly failedMs: number | null
  readonly cancelledMs: number | null
}

export interface QueueRecord extends QueueSettings {
  readonly paused: boolean
  readonly createdAtMs: number
  /** Rises with every change. */
  readonly version: number
}

export type QueueChange = Partial<Omit<QueueSettings, 'name'>> & { readonly paused?: boolean }
