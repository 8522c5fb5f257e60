// Who watches the life of jobs: metrics and diagnostics channels. Called where the truth is known, once for each job and
// step, on the hot path: whoever implements it counts and returns.
import type { ClaimedJob, JobId, NewJob, StoredJob, WorkerId } from '../core/job.ts'
import type { Lane } from '../core/priority.ts'
import type { Transition, Verdict } from '../core/transition.ts'

export interface Probe {
  /** The store has it, or had it: then `id` is the one that was there. */
  enqueued(job: Pick<NewJob, 'queue' | 'name'>, id: JobId, isDuplicate: boolean): void
  /** Its handler is about to be called. */
  started(claimed: ClaimedJob, lane: Lane, worker: WorkerId): void
  /** The store has applied this end of a run. */
  ended(claimed: ClaimedJob, settled: Transition, worker: WorkerId): void
  /** The run no longer owned its job. */
  refused(claimed: ClaimedJob, transition: Transition, verdict: Verdict, worker: WorkerId): void
  /** It waited, and somebody has cancelled it. Absent: nobody wants to know, and what it was need not be looked up. */
  readonly cancelled?: (job: Pick<StoredJob, 'queue' | 'name'>) => void
  /** Maintenance has ended a run or a job that nobody else would have ended. */
  rescued(job: StoredJob, transition: Transition): void
}

/** Told of the end of every store call: which, how long it took, and its error if it failed. */
export type CallWatch = (what: string, tookMs: number, error?: unknown) => void
