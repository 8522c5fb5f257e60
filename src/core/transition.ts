// A transition is a decision already made, as a value. The store applies it if the guard still holds
// and never reconsiders it. Only `core/decide.ts` builds transitions.
import type { AttemptError } from './attempt-error.ts'
import type { EdgeName } from './edges.ts'
import type { JobId, JobStatus, LeaseNumber, LogLine, WaitReason } from './job.ts'
import type { JsonText } from './json.ts'

export interface Guard {
  readonly from: readonly JobStatus[]
  readonly lease?: LeaseNumber
  /** Of orphan edges: the job must still be orphaned by this parent. */
  readonly orphanOf?: JobId
}

export interface Transition {
  readonly jobId: JobId
  readonly edge: EdgeName
  readonly guard: Guard
  /** Where it should land; `queued` means "towards ready": the gates may still hold it. */
  readonly to: JobStatus
  /** A duration: the store adds it to its own clock. */
  readonly delayMs?: number
  readonly waitsFor?: WaitReason
  /** Count the run as an attempt. */
  readonly attempt?: 'count' | 'reset'
  /** The worker died with it: counted apart from attempts. */
  readonly crash?: true
  readonly error?: AttemptError
  readonly result?: JsonText
  readonly progress?: JsonText
  readonly logLines?: readonly LogLine[]
  /** Index of the first line within the run, so that a repeated report adds nothing. */
  readonly logFrom?: number
  /** Of a report: when somebody else has locked the job, the verdict is `busy` instead of a wait. */
  readonly ifFree?: true
  /** How long the run took on the monotonic clock of the worker. */
  readonly ranMs?: number
  /** Goes into the audit row. */
  readonly note?: string
  /** Who asked, for operator actions. */
  readonly actor?: string
  /** With `markReplayed`: the new job. */
  readonly into?: JobId
  /** With `requestCancel`: delete the job when its run has ended. */
  readonly thenRemove?: true
  /** Decided in advance; the store only chooses. */
  readonly ifCancelRequested?: Transition
}

/**
 * What became of a transition.
 * - `applied`: the change was made now.
 * - `alternative`: cancellation had been asked for, so `ifCancelRequested` was applied instead.
 * - `already`: this very change had been made before; nothing happened now.
 * - `stale`: the guard does not hold; the decision is void.
 * - `conflict`: a replay whose unique key is held by another live job.
 * - `missing`: there is no such job.
 * - `busy`: with `ifFree` only: a transaction has locked the job; nothing happened.
 */
export const VERDICTS = ['applied', 'alternative', 'already', 'stale', 'conflict', 'missing', 'busy'] as const
export type Verdict = (typeof VERDICTS)[number]
