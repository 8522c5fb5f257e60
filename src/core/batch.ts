// Batches as numbers: how the counters follow the statuses of the jobs, when a batch may take a job,
// when it is finished and which callbacks that releases.
import { isFinal } from './job.ts'
import type { FinalStatus, JobStatus } from './job.ts'

export interface BatchCounts {
  readonly total: number
  readonly pending: number
  readonly completed: number
  readonly failed: number
  readonly cancelled: number
}

export const EMPTY_COUNTS: BatchCounts = { total: 0, pending: 0, completed: 0, failed: 0, cancelled: 0 }

export type CountedAs = 'pending' | FinalStatus

export function countedAs(status: JobStatus): CountedAs {
  return isFinal(status) ? status : 'pending'
}

/** The counters after one job moved. `null` stands for "not there": before its insert, after its removal. */
export function moveCount(counts: BatchCounts, from: CountedAs | null, to: CountedAs | null): BatchCounts {
  if (from === to) return counts
  const next = { ...counts }
  if (from === null) next.total += 1
  else next[from] -= 1
  if (to === null) next.total -= 1
  else next[to] += 1
  return next
}

export interface BatchState {
  readonly counts: BatchCounts
  readonly sealed: boolean
  readonly cancelled: boolean
  readonly finishedAtMs: number | null
}

/** A sealed batch still takes jobs from its own running jobs: they keep it unfinished. */
export function mayJoin(batch: BatchState, inside: boolean): boolean {
  if (batch.cancelled || batch.finishedAtMs !== null) return false
  return !batch.sealed || (inside && batch.counts.pending > 0)
}

export function isDone(batch: BatchState): boolean {
  return batch.finishedAtMs === null && batch.sealed && batch.counts.pending === 0
}

export type CallbackName = 'complete' | 'success' | 'failure'

/** `complete` always; `success` when every job completed; `failure` when one did not, or the batch was cancelled. */
export function callbacksDue({ counts, cancelled }: Pick<BatchState, 'counts' | 'cancelled'>): readonly CallbackName[] {
  return counts.completed === counts.total && !cancelled ? ['complete', 'success'] : ['complete', 'failure']
}

export interface BatchProgress extends BatchCounts {
  /** completed / total, 0-100. */
  readonly percent: number
  /** completed / (completed + failed), 0-1. */
  readonly successRate: number
}

export function batchProgress(counts: BatchCounts): BatchProgress {
  const ended = counts.completed + counts.failed
  return {
    ...counts,
    percent: counts.total === 0 ? 0 : (counts.completed / counts.total) * 100,
    successRate: ended === 0 ? 0 : counts.completed / ended,
  }
}
