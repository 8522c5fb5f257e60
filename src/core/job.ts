// The vocabulary of the domain: what a job is, before and after it is stored. Every backend speaks
// exactly these types; times are milliseconds since 1970 on the clock of the store.
import type { AttemptError } from './attempt-error.ts'
import type { JsonText } from './json.ts'
import type { UniqueHold } from './unique.ts'

declare const brand: unique symbol
type Brand<Base, Name extends string> = Base & { readonly [brand]: Name }

export type JobId = Brand<string, 'JobId'>
export type BatchId = Brand<string, 'BatchId'>
export type WorkerId = Brand<string, 'WorkerId'>
/** Minted by the store at each claim, strictly increasing per job: the fencing token of one run. */
export type LeaseNumber = Brand<number, 'LeaseNumber'>

export const JOB_STATUSES = [
  'scheduled',
  'queued',
  'blocked',
  'dispatched',
  'running',
  'completed',
  'failed',
  'cancelled',
] as const
export type JobStatus = (typeof JOB_STATUSES)[number]

export const FINAL_STATUSES = ['completed', 'failed', 'cancelled'] as const satisfies readonly JobStatus[]
export type FinalStatus = (typeof FINAL_STATUSES)[number]

export type StatusCounts = Readonly<Record<JobStatus, number>>

/** Jobs that could start now. Dispatched ones are ready as well, in the half of a store that is faster. */
export function readyIn({ queued, dispatched }: Pick<StatusCounts, 'queued' | 'dispatched'>): number {
  return queued + dispatched
}

export function isFinal(status: JobStatus): status is FinalStatus {
  return status === 'completed' || status === 'failed' || status === 'cancelled'
}

/** What becomes of a job when one of its parents does not complete. */
export type ParentFailurePolicy = 'fail' | 'cancel' | 'continue'

export interface Dependency {
  readonly parent: JobId
  readonly onFailure: ParentFailurePolicy
}

export interface ScheduleRef {
  readonly name: string
  readonly tickMs: number
}

/** A job as the client hands it to the store: decided, validated, encoded. */
export interface NewJob {
  readonly id: JobId
  /** Its caller chose the id: a job of any queue may have it, not only a copy of this very request. */
  readonly ownId?: boolean
  readonly queue: string
  readonly name: string
  readonly payload: JsonText
  readonly timeoutMs: number
  /** Absent: the default of the queue. */
  readonly priority?: number
  /** Absent: the default of the queue. */
  readonly maxAttempts?: number
  /** A duration: the store adds it to its own clock. */
  readonly delayMs?: number
  /** A moment chosen by the user, compared with the clock of the store. */
  readonly runAtMs?: number
  readonly tags?: readonly string[]
  readonly meta?: JsonText
  readonly batch?: BatchId
  /** Enqueued by a running job of the same batch, so a sealed batch still takes it. */
  readonly insideBatch?: boolean
  readonly dependsOn?: readonly Dependency[]
  readonly group?: string
  readonly limitKey?: string
  readonly unique?: UniqueHold
  readonly schedule?: ScheduleRef
  readonly replayOf?: JobId
}

/** Which gate keeps a `blocked` job, or why a `scheduled` one waits. */
export type WaitReason = 'parents' | 'group' | 'queue-slot' | 'key-slot' | 'delay' | 'rate' | 'retry' | 'snooze'

/** A job as the store knows it. */
export interface StoredJob {
  readonly id: JobId
  readonly queue: string
  readonly name: string
  readonly payload: JsonText
  readonly priority: number
  readonly status: JobStatus
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly crashCount: number
  readonly timeoutMs: number
  readonly runAtMs: number
  /** First enqueued; survives retry and replay. */
  readonly enqueuedAtMs: number
  readonly updatedAtMs: number
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly lastError: AttemptError | null
  readonly result: JsonText | null
  readonly progress: JsonText | null
  readonly worker: WorkerId | null
  readonly lease: LeaseNumber
  readonly batch: BatchId | null
  readonly tags: readonly string[]
  readonly meta: JsonText | null
  readonly group: string | null
  readonly limitKey: string | null
  readonly uniqueKey: string | null
  readonly parents: readonly JobId[]
  readonly schedule: ScheduleRef | null
  readonly waitsFor: WaitReason | null
  readonly cancelRequested: boolean
  readonly replayOf: JobId | null
  readonly replayedAtMs: number | null
  readonly replayedBy: string | null
  readonly replayedInto: JobId | null
}

/** What a claim hands to a worker: the job and the lease that every later change must name. */
export interface ClaimedJob {
  readonly id: JobId
  readonly lease: LeaseNumber
  readonly queue: string
  readonly name: string
  readonly payload: JsonText
  readonly priority: number
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly crashCount: number
  readonly timeoutMs: number
  readonly enqueuedAtMs: number
  readonly runAtMs: number
  readonly tags: readonly string[]
  readonly meta: JsonText | null
  readonly batch: BatchId | null
  readonly parents: readonly JobId[]
  readonly group: string | null
  readonly limitKey: string | null
  /** The queue has a rate limit that applies: take a token before the start. */
  readonly rateLimited: boolean
}

export interface LeaseRef {
  readonly jobId: JobId
  readonly lease: LeaseNumber
}

export const ATTEMPT_STATUSES = [
  'attempting',
  'success',
  'retry',
  'failed',
  'cancelled',
  'expired',
  'released',
  'replayed',
] as const
export type AttemptStatus = (typeof ATTEMPT_STATUSES)[number]

/** One row of the audit trail: a run that ended, the one that is running, or a replay. */
export interface AttemptRow {
  readonly jobId: JobId
  /** 1 for the first run that counted. */
  readonly attempt: number
  readonly lease: LeaseNumber
  readonly status: AttemptStatus
  readonly worker: WorkerId | null
  readonly startedAtMs: number | null
  readonly finishedAtMs: number | null
  readonly durationMs: number | null
  readonly error: AttemptError | null
  /** Free words: why it was released, who replayed it. */
  readonly note: string | null
}

export interface LogLine {
  readonly atMs: number
  readonly attempt: number
  readonly level: 'debug' | 'info' | 'warn' | 'error'
  readonly message: string
}
