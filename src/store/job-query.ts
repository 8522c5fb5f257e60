// Reading: never on the hot path, always bounded by a page.
import type { AttemptRow, BatchId, JobId, JobStatus, LogLine, StoredJob, WorkerId } from '../core/job.ts'
import type { Json } from '../core/json.ts'

export interface JobQuery {
  /** In the order asked; null where there is no such job. */
  get(ids: readonly JobId[]): Promise<readonly (StoredJob | null)[]>
  /** Newest first. */
  list(filter: JobFilter, page: PageRequest): Promise<Page<StoredJob>>
  counts(queue?: string): Promise<readonly QueueCounts[]>
  /** Jobs of a queue that could start now, by lane: high, normal, low. About right is enough. */
  lanes?(queue: string): Promise<LaneDepths>
  /** The audit trail, oldest first; a running attempt is the last row. */
  attempts(id: JobId): Promise<readonly AttemptRow[]>
  logs(id: JobId): Promise<readonly LogLine[]>
  /** As `get`, of jobs whose time is over and of which only the archive knows; where there is one. */
  archived?(ids: readonly JobId[]): Promise<readonly (StoredJob | null)[]>
}

export interface JobFilter {
  readonly queue?: string
  readonly name?: string
  readonly status?: readonly JobStatus[]
  readonly tag?: string
  readonly batch?: BatchId
  readonly worker?: WorkerId
  readonly schedule?: string
  readonly group?: string
  readonly enqueuedFromMs?: number
  readonly enqueuedUntilMs?: number
  readonly finishedFromMs?: number
  readonly finishedUntilMs?: number
  /** Case-insensitive part of the last error: its name, message or code. */
  readonly errorText?: string
  /** Backends with `payloadSearch`: the field at this path equals this value. */
  readonly payload?: { readonly path: readonly string[]; readonly equals: Json }
}

export interface PageRequest {
  readonly limit: number
  readonly cursor?: string
  /** Something is changed by what it says: never from a replica, which may lag. */
  readonly isFresh?: boolean
}

export interface Page<Item> {
  readonly items: readonly Item[]
  /** Absent on the last page. */
  readonly nextCursor?: string
}

export type LaneDepths = readonly [high: number, normal: number, low: number]

export interface QueueCounts {
  readonly queue: string
  readonly counts: Readonly<Record<JobStatus, number>>
  /** When the oldest ready job became ready. */
  readonly oldestReadyAtMs: number | null
}
