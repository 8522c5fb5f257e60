// The policy: what an outcome, a dead worker, a lost parent or an operator means for a job. Pure; the
// only place that builds transitions.
import { toAttemptError } from './attempt-error.ts'
import type { AttemptError } from './attempt-error.ts'
import { classify } from './classify.ts'
import { EDGES } from './edges.ts'
import type { EdgeName } from './edges.ts'
import { MillraceError, assertNever } from './errors.ts'
import type { JobId, LeaseNumber, LogLine, StoredJob } from './job.ts'
import type { JsonText } from './json.ts'
import { DEFAULTS } from './limits.ts'
import type { Outcome } from './outcome.ts'
import type { RunPolicy } from './policy.ts'
import { retryDelayMs } from './retry.ts'
import type { Transition } from './transition.ts'

/** What the decision needs to know of a run. */
export interface RunFacts {
  readonly id: JobId
  readonly lease: LeaseNumber
  readonly attemptCount: number
  readonly maxAttempts: number
  readonly crashCount: number
}

export interface RunEnd {
  readonly outcome: Outcome
  readonly ranMs: number
  /** Wall clock, only to read an HTTP date in Retry-After. */
  readonly nowMs: number
}

export function hasAttemptsLeft(run: RunFacts): boolean {
  return run.attemptCount + 1 < run.maxAttempts
}

export function decideOutcome(run: RunFacts, end: RunEnd, policy: RunPolicy, random: () => number): Transition {
  const { outcome, ranMs } = end
  switch (outcome.kind) {
    case 'done':
      return {
        jobId: run.id,
        edge: 'complete',
        guard: { from: EDGES.complete.from, lease: run.lease },
        to: 'completed',
        attempt: 'count',
        ranMs,
        ...(outcome.result !== null && { result: outcome.result }),
      }
    case 'threw':
      return decideFailure(run, outcome.error, end, policy, random)
    case 'timed-out': {
      const message = `the handler ran longer than its timeout of ${outcome.timeoutMs} ms`
      return decideFailure(run, new MillraceError('JOB_TIMEOUT', message), end, policy, random)
    }
    case 'fail':
      return failed(run, toAttemptError(outcome.error, 'permanent'), ranMs)
    case 'retry-after': {
      const error = toAttemptError(new Error(outcome.reason), 'unknown')
      return hasAttemptsLeft(run) ? retried(run, error, outcome.delayMs, ranMs) : failed(run, error, ranMs)
    }
    case 'snooze':
      return {
        ...leased(run, 'snooze'),
        to: outcome.delayMs > 0 ? 'scheduled' : 'queued',
        delayMs: outcome.delayMs,
        waitsFor: 'snooze',
        ranMs,
        note: outcome.reason,
        ifCancelRequested: cancelled(run, ranMs),
      }
    case 'release':
      return {
        ...leased(run, 'release'),
        to: 'queued',
        ranMs,
        note: outcome.reason,
        ifCancelRequested: cancelled(run, ranMs),
      }
    case 'cancel':
      return cancelled(run, ranMs, outcome.reason)
    case 'returned':
      return { ...leased(run, 'return'), to: 'queued', ifCancelRequested: cancelledUnstarted(run) }
    case 'deferred':
      return {
        ...leased(run, 'defer'),
        to: 'scheduled',
        delayMs: outcome.waitMs,
        waitsFor: 'rate',
        ifCancelRequested: cancelledUnstarted(run),
      }
    default:
      return assertNever(outcome)
  }
}

/**
 * The run completed its job inside a transaction of its own. This is what becomes of the job if that was not
 * committed: a handler that believes in its completion has failed, any other end is what it is.
 */
export function decideNotCommitted(run: RunFacts, end: RunEnd, policy: RunPolicy, random: () => number): Transition {
  if (end.outcome.kind !== 'done') return decideOutcome(run, end, policy, random)
  const message = 'the transaction in which the job was completed was not committed'
  return decideFailure(run, new MillraceError('NOT_COMMITTED', message), end, policy, random)
}

function decideFailure(
  run: RunFacts,
  thrown: unknown,
  end: RunEnd,
  policy: RunPolicy,
  random: () => number,
): Transition {
  const verdict = classify(thrown, { custom: policy.classifiers, unknown: policy.unknownErrors, nowMs: end.nowMs })
  const error = toAttemptError(thrown, verdict.class)
  if (verdict.retry === 'never' || !hasAttemptsLeft(run)) return failed(run, error, end.ranMs)
  const delay =
    typeof verdict.retry === 'object'
      ? verdict.retry.afterMs
      : retryDelayMs(policy.retry, run.attemptCount + 1, random, thrown)
  return delay === 'give-up' ? failed(run, error, end.ranMs) : retried(run, error, delay, end.ranMs)
}

/**
 * The worker of this run is dead: the first crashes are forgiven, then it is poison. Or its visibility lapsed:
 * the consumer was too slow, which is an attempt and no crash.
 */
export function decideExpiry(
  job: StoredJob,
  policy: Pick<RunPolicy, 'retry'>,
  random: () => number,
  why: 'worker-dead' | 'visibility-lapsed' = 'worker-dead',
): Transition {
  const crashes = job.crashCount + (why === 'worker-dead' ? 1 : 0)
  const poison = why === 'worker-dead' && crashes >= DEFAULTS.crashesBeforePoison
  const crash = why === 'worker-dead' ? ({ crash: true } as const) : {}
  const cause = poison
    ? new MillraceError('POISON', `the worker died ${crashes} times while it ran this job`)
    : why === 'worker-dead'
      ? new MillraceError('WORKER_DIED', `worker ${job.worker ?? 'unknown'} disappeared while it ran this job`)
      : new MillraceError('JOB_TIMEOUT', 'the visibility of the claim lapsed before it was settled or extended')
  const error = withoutStack(toAttemptError(cause, why === 'worker-dead' ? 'crash' : 'timeout'))
  const base = { jobId: job.id, guard: { from: EDGES.expire.from, lease: job.lease } } as const
  const ifCancelRequested = cancelled(job, undefined, 'the worker died after cancellation was asked for')
  // The first crash may be a deploy: start again at once. Later ones wait as the policy says.
  const delay = crashes <= 1 ? 0 : retryDelayMs(policy.retry, job.attemptCount + 1, random)
  if (poison || delay === 'give-up' || !hasAttemptsLeft(job)) {
    const ended = { ...base, edge: 'expireForGood', to: 'failed', attempt: 'count', ...crash, error } as const
    return { ...ended, ifCancelRequested, note: poison ? 'poison' : 'no attempts left' }
  }
  const again = { ...base, edge: 'expire', to: delay > 0 ? 'scheduled' : 'queued', delayMs: delay } as const
  return { ...again, waitsFor: 'retry', attempt: 'count', ...crash, error, ifCancelRequested }
}

/** Must the run of this job have the process for itself? */
export function runsAlone(job: { readonly crashCount: number }): boolean {
  return job.crashCount >= DEFAULTS.crashesBeforeAlone
}

export function decideOrphan(
  job: StoredJob,
  orphan: { readonly parent: JobId; readonly parentStatus: string; readonly policy: 'fail' | 'cancel' },
): Transition {
  const message = `parent job ${orphan.parent} ended as ${orphan.parentStatus}`
  const error = withoutStack(toAttemptError(new MillraceError('PARENT_FAILED', message), 'permanent'))
  const guard = { from: EDGES.failOrphan.from, orphanOf: orphan.parent }
  return orphan.policy === 'fail'
    ? { jobId: job.id, edge: 'failOrphan', guard, to: 'failed', error, note: message }
    : { jobId: job.id, edge: 'cancelOrphan', guard, to: 'cancelled', error, note: message }
}

/** Cancelling is two decisions sent together: one for a waiting job, one for a running job. Only one can hold. */
export function decideCancel(jobId: JobId, reason: string, actor?: string): readonly [Transition, Transition] {
  const who = actor === undefined ? {} : { actor }
  return [
    { jobId, edge: 'cancel', guard: { from: EDGES.cancel.from }, to: 'cancelled', note: reason, ...who },
    { jobId, edge: 'requestCancel', guard: { from: EDGES.requestCancel.from }, to: 'running', note: reason, ...who },
  ]
}

export function decideRemove(jobId: JobId, actor?: string): readonly [Transition, Transition] {
  const [, request] = decideCancel(jobId, 'deleted', actor)
  const remove: Transition = { jobId, edge: 'remove', guard: { from: EDGES.remove.from }, to: 'cancelled' }
  return [remove, { ...request, thenRemove: true }]
}

/** With the lease that was seen, a command that is repeated after the job failed again replays it once, not twice. */
export function decideReplay(jobId: JobId, actor: string, seenLease?: LeaseNumber): Transition {
  const guard = { from: EDGES.replay.from, ...(seenLease !== undefined && { lease: seenLease }) }
  return { jobId, edge: 'replay', guard, to: 'queued', attempt: 'reset', actor, waitsFor: 'delay' }
}

export function decideMarkReplayed(jobId: JobId, into: JobId, actor: string): Transition {
  return { jobId, edge: 'markReplayed', guard: { from: EDGES.markReplayed.from }, to: 'failed', into, actor }
}

export interface Report {
  readonly progress?: JsonText
  readonly logLines?: readonly LogLine[]
  /** Index of the first of these lines within the run, so that a repeated report adds nothing. */
  readonly logFrom?: number
  readonly ifFree?: true
}

export function decideReport(run: { readonly id: JobId; readonly lease: LeaseNumber }, report: Report): Transition {
  return { ...leased(run, 'report'), to: 'running', ...report }
}

function retried(run: RunFacts, error: AttemptError, delayMs: number, ranMs: number): Transition {
  const to = delayMs > 0 ? 'scheduled' : 'queued'
  const ifCancelRequested = cancelled(run, ranMs)
  return { ...leased(run, 'retry'), to, delayMs, waitsFor: 'retry', attempt: 'count', error, ranMs, ifCancelRequested }
}

function failed(run: RunFacts, error: AttemptError, ranMs: number): Transition {
  const ifCancelRequested = cancelled(run, ranMs)
  return { ...leased(run, 'fail'), to: 'failed', attempt: 'count', error, ranMs, ifCancelRequested }
}

function cancelled(run: Leased, ranMs: number | undefined, note?: string): Transition {
  const base = { ...leased(run, 'cancelRunning'), to: 'cancelled', attempt: 'count' } as const
  return { ...base, ...(ranMs !== undefined && { ranMs }), ...(note !== undefined && { note }) }
}

function cancelledUnstarted(run: Leased): Transition {
  return { ...leased(run, 'cancelUnstarted'), to: 'cancelled', note: 'cancelled before it started' }
}

type Leased = { readonly id: JobId; readonly lease: LeaseNumber }

function leased<Name extends EdgeName>(run: Leased, edge: Name) {
  return { jobId: run.id, edge, guard: { from: EDGES[edge].from, lease: run.lease } } as const
}

// A stack of Millrace's own maintenance code would only mislead the reader of the dead letter.
function withoutStack(error: AttemptError): AttemptError {
  return {
    name: error.name,
    message: error.message,
    class: error.class,
    ...(error.code !== undefined && { code: error.code }),
  }
}

/** The job as it is here: with no more attempts than its worker allows, this one not counted against it. */
export function withinAttempts<Job extends Pick<StoredJob, 'attemptCount' | 'maxAttempts'>>(
  job: Job,
  attemptsMax: number,
): Job {
  const maxAttempts = Math.max(attemptsMax, job.attemptCount + 1)
  return job.maxAttempts <= maxAttempts ? job : { ...job, maxAttempts }
}
