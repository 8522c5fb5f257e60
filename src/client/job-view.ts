// A job as people read it: decoded values, Dates, and the connection it lives on.
import { userMeta } from '../core/carried.ts'
import type { AttemptError } from '../core/attempt-error.ts'
import type { AttemptRow, BatchId, JobId, JobStatus, LogLine, StoredJob, WaitReason, WorkerId } from '../core/job.ts'
import type { Json, JsonText } from '../core/json.ts'
import { decodePayload } from '../core/payload.ts'

export interface Job {
  readonly id: JobId
  /** Its time is over: it can be read, and nothing else. */
  readonly archived?: true
  readonly connection: string
  readonly queue: string
  readonly name: string
  readonly payload: Json
  readonly priority: number
  readonly status: JobStatus
  /** Why it does not run yet. */
  readonly waitsFor: WaitReason | null
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly crashCount: number
  readonly timeoutMs: number
  readonly runAt: Date
  /** First enqueued; survives retry and replay. */
  readonly enqueuedAt: Date
  readonly updatedAt: Date
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
  readonly lastError: AttemptError | null
  readonly result: Json | null
  readonly progress: Json | null
  readonly worker: WorkerId | null
  readonly batch: BatchId | null
  readonly tags: readonly string[]
  readonly meta: Json | null
  readonly group: string | null
  readonly limitKey: string | null
  readonly uniqueKey: string | null
  readonly parents: readonly JobId[]
  readonly schedule: { readonly name: string; readonly tick: Date } | null
  readonly cancelRequested: boolean
  readonly replayOf: JobId | null
  readonly replayedAt: Date | null
  readonly replayedBy: string | null
  readonly replayedInto: JobId | null
}

export interface Attempt extends Omit<AttemptRow, 'startedAtMs' | 'finishedAtMs' | 'lease'> {
  readonly startedAt: Date | null
  readonly finishedAt: Date | null
}

export interface JobLogLine extends Omit<LogLine, 'atMs'> {
  readonly at: Date
}

export function viewJob(job: StoredJob, connection: string): Job {
  return {
    id: job.id,
    connection,
    queue: job.queue,
    name: job.name,
    payload: decodePayload(job.payload),
    priority: job.priority,
    status: job.status,
    waitsFor: job.waitsFor,
    attemptCount: job.attemptCount,
    maxAttempts: job.maxAttempts,
    crashCount: job.crashCount,
    timeoutMs: job.timeoutMs,
    runAt: new Date(job.runAtMs),
    enqueuedAt: new Date(job.enqueuedAtMs),
    updatedAt: new Date(job.updatedAtMs),
    startedAt: dateOrNull(job.startedAtMs),
    finishedAt: dateOrNull(job.finishedAtMs),
    lastError: job.lastError,
    result: decodedOrNull(job.result),
    progress: decodedOrNull(job.progress),
    worker: job.worker,
    batch: job.batch,
    tags: job.tags,
    meta: userMeta(job.meta),
    group: job.group,
    limitKey: job.limitKey,
    uniqueKey: job.uniqueKey,
    parents: job.parents,
    schedule: job.schedule === null ? null : { name: job.schedule.name, tick: new Date(job.schedule.tickMs) },
    cancelRequested: job.cancelRequested,
    replayOf: job.replayOf,
    replayedAt: dateOrNull(job.replayedAtMs),
    replayedBy: job.replayedBy,
    replayedInto: job.replayedInto,
  }
}

export function viewAttempt(row: AttemptRow): Attempt {
  const { jobId, attempt, status, worker, startedAtMs, finishedAtMs, durationMs, error, note } = row
  const [startedAt, finishedAt] = [dateOrNull(startedAtMs), dateOrNull(finishedAtMs)]
  return { jobId, attempt, status, worker, startedAt, finishedAt, durationMs, error, note }
}

export function viewLogLine({ atMs, ...line }: LogLine): JobLogLine {
  return { ...line, at: new Date(atMs) }
}

export function dateOrNull(ms: number | null): Date | null {
  return ms === null ? null : new Date(ms)
}

function decodedOrNull(text: JsonText | null): Json | null {
  return text === null ? null : decodePayload(text)
}
