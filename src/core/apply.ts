// The reference semantics of `apply` on plain data: which verdict a transition earns, and what it
// changes in the job itself. Moving the job to its new place is the store's part.
import { EDGES } from './edges.ts'
import type { Edge, EdgeName } from './edges.ts'
import { isFinal } from './job.ts'
import type { AttemptRow, JobId, LeaseNumber, StoredJob } from './job.ts'
import { isPlanted } from './planted.ts'
import type { Transition, Verdict } from './transition.ts'

/** A stored job that may be changed, with what is needed to recognise a repeated change. */
export type JobState = { -readonly [Field in keyof StoredJob]: StoredJob[Field] } & {
  /** The last change that moved it, and the lease that change named (0: none). */
  lastEdge: EdgeName
  lastEdgeLease: number
  removeRequested: boolean
  /** The parent that broke its policy, if one did. */
  readonly orphanOf: JobId | null
}

export function judge(job: JobState | undefined, transition: Transition): Verdict {
  if (job === undefined) return 'missing'
  if (transition.edge === 'markReplayed' && transition.into === job.replayedInto) return 'already'
  if (!guardHolds(job, transition)) return wasApplied(job, transition) ? 'already' : 'stale'
  return chooses(job, transition) === transition ? 'applied' : 'alternative'
}

/** The transition to apply: the one asked for, or the alternative for a job that is to be cancelled. */
export function chooses(job: JobState, transition: Transition): Transition {
  if (job.cancelRequested && transition.ifCancelRequested !== undefined && !isPlanted('cancel-overlooked')) {
    return transition.ifCancelRequested
  }
  return transition
}

function guardHolds(job: JobState, { guard, edge }: Transition): boolean {
  if (isPlanted('expire-without-status') && (edge === 'expire' || edge === 'expireForGood')) return true
  if (!guard.from.includes(job.status) && !isUnmarkedRun(job, guard)) return false
  if (guard.orphanOf !== undefined && guard.orphanOf !== job.orphanOf) return false
  return guard.lease === undefined || guard.lease === job.lease || isPlanted('settle-without-lease')
}

/** Hybrid: a run whose lease is named may not have been marked yet. */
function isUnmarkedRun({ status }: JobState, { from, lease }: Transition['guard']): boolean {
  return status === 'dispatched' && lease !== undefined && from.includes('running')
}

function wasApplied(job: JobState, transition: Transition): boolean {
  const lease = transition.guard.lease ?? 0
  const sameEdge = job.lastEdge === transition.edge || job.lastEdge === transition.ifCancelRequested?.edge
  return sameEdge && job.lastEdgeLease === lease
}

/** Changes everything of the job but its status and place. `settled` is what `chooses` answered. */
export function patch(job: JobState, settled: Transition, nowMs: number): void {
  job.updatedAtMs = nowMs
  if (settled.progress !== undefined) job.progress = settled.progress
  if (settled.edge === 'report') return
  if (settled.edge === 'requestCancel') {
    job.cancelRequested = true
    if (settled.thenRemove) job.removeRequested = true
    return
  }
  job.lastEdge = settled.edge
  job.lastEdgeLease = settled.guard.lease ?? 0
  if (settled.edge === 'markReplayed') {
    job.replayedAtMs = nowMs
    job.replayedBy = settled.actor ?? null
    job.replayedInto = settled.into ?? null
    return
  }
  if (settled.attempt === 'count' || (settled.edge === 'return' && isPlanted('return-counts-attempt')))
    job.attemptCount += 1
  if (settled.crash) job.crashCount += 1
  if (settled.error !== undefined) job.lastError = settled.error
  if (settled.result !== undefined) job.result = settled.result
  if (settled.ranMs !== undefined) job.startedAtMs = nowMs - settled.ranMs
  if (settled.delayMs !== undefined) job.runAtMs = nowMs + settled.delayMs
  if (settled.attempt === 'reset') {
    job.attemptCount = 0
    job.crashCount = 0
  }
  if (settled.edge === 'replay') {
    job.replayedAtMs = nowMs
    job.replayedBy = settled.actor ?? null
    job.runAtMs = nowMs
  }
  job.finishedAtMs = isFinal(settled.to) ? nowMs : null
  job.cancelRequested = false
}

/** The audit row of a change, to be taken after `patch` and before the worker is cleared; null for changes without one. */
export function auditRow(job: JobState, settled: Transition, nowMs: number): AttemptRow | null {
  const status = EDGES[settled.edge].audit
  if (status === null) return null
  // A run that was never started leaves no trace of a run.
  const { lease: isLeased, counts }: Edge = EDGES[settled.edge]
  const ran = isLeased && (counts || status === 'released')
  return {
    jobId: job.id,
    attempt: settled.attempt === 'count' ? job.attemptCount : job.attemptCount + (ran ? 1 : 0),
    lease: (ran ? (settled.guard.lease ?? 0) : 0) as LeaseNumber, // 0 names no run
    status,
    worker: ran ? job.worker : null,
    startedAtMs: ran ? job.startedAtMs : null,
    finishedAtMs: nowMs,
    durationMs: ran && job.startedAtMs !== null ? nowMs - job.startedAtMs : null,
    error: settled.error ?? null,
    note: settled.note ?? settled.actor ?? null,
  }
}
