// Batches: counters that always equal a recount, and callbacks that are enqueued exactly once, in the
// atom that finishes the last job.
import type { BatchCounts } from '../core/batch.ts'
import type { BatchId, NewJob } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import type { Page, PageRequest } from './job-query.ts'

export interface BatchStore {
  /** Creating an id that exists changes nothing. */
  create(batch: NewBatch): Promise<void>
  get(id: BatchId): Promise<BatchRecord | null>
  list(page: PageRequest): Promise<Page<BatchRecord>>
  /** No more jobs from outside; a batch without pending jobs finishes at once. False: no such batch. */
  seal(id: BatchId): Promise<boolean>
  /** Deletes a batch that no job has joined, without callbacks. False: there is none, or it has jobs. */
  discard(id: BatchId): Promise<boolean>
  /** Takes no more jobs; `due('batch-cancelled')` lists its live ones until none is left. */
  cancel(id: BatchId): Promise<boolean>
}

export interface NewBatch {
  readonly id: BatchId
  readonly name: string
  readonly meta: JsonText | null
  readonly callbacks: BatchCallbacks
}

/** Jobs with ids minted beforehand, so that writing them twice is harmless. */
export interface BatchCallbacks {
  readonly complete: NewJob | null
  readonly success: NewJob | null
  readonly failure: NewJob | null
}

export interface BatchRecord extends NewBatch {
  readonly counts: BatchCounts
  readonly sealed: boolean
  readonly cancelled: boolean
  readonly createdAtMs: number
  readonly finishedAtMs: number | null
}
