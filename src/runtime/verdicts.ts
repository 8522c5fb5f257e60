// What follows a verdict: events, log lines and the hooks for dead letters. A job is reported as completed
// or failed only after the store has said so.
import type { AttemptError } from '../core/attempt-error.ts'
import type { AnyJob, FailedHook, FailedInfo } from '../core/definition.ts'
import type { ClaimedJob, WorkerId } from '../core/job.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { EndedEvent, EventHub } from './events.ts'
import type { Logger } from './logger.ts'
import type { Probe } from './probe.ts'

export interface EndedRun {
  readonly claimed: ClaimedJob
  readonly worker: WorkerId
  readonly definition: AnyJob | undefined
}

export interface VerdictOptions {
  readonly events: EventHub
  readonly logger: Logger
  readonly connection: string
  readonly onFailed: FailedHook | undefined
  readonly probe?: Probe | undefined
}

export function reportVerdict(run: EndedRun, transition: Transition, verdict: Verdict, options: VerdictOptions): void {
  const { events, logger, probe } = options
  if (verdict === 'stale' || verdict === 'missing' || verdict === 'conflict') {
    if (transition.edge === 'return' || transition.edge === 'defer') return
    const { worker, claimed } = run
    const { id, name, queue, attemptCount } = claimed
    const event = { id, name, queue, worker, attempt: attemptCount + 1, edge: transition.edge, verdict }
    logger.warn(event, 'the result of a run was refused: the job was no longer its own')
    events.emit('stale', event)
    probe?.refused(claimed, transition, verdict, worker)
    return
  }
  const settled = verdict === 'alternative' ? (transition.ifCancelRequested ?? transition) : transition
  emitEnd(run, settled, events)
  probe?.ended(run.claimed, settled, run.worker)
  if (settled.edge !== 'fail' || settled.error === undefined) return
  const hooks = [run.definition?.onFailed, options.onFailed]
  tellFailed(failedInfo(run, settled.error, options.connection), hooks, logger)
}

function emitEnd(run: EndedRun, settled: Transition, events: EventHub): void {
  const name = END_EVENTS[settled.edge]
  if (name === undefined || !events.has(name)) return
  const { claimed } = run
  const event: EndedEvent = {
    id: claimed.id,
    name: claimed.name,
    queue: claimed.queue,
    worker: run.worker,
    attempt: claimed.attemptCount + 1,
    ranMs: settled.ranMs ?? 0,
  }
  if (name === 'completed' || name === 'cancelled') events.emit(name, event)
  else if (name === 'released') events.emit(name, { ...event, reason: settled.note ?? '' })
  else if (settled.error === undefined) return
  else if (name === 'failed') events.emit(name, { ...event, error: settled.error })
  else events.emit(name, { ...event, error: settled.error, delayMs: settled.delayMs ?? 0 })
}

const END_EVENTS: Partial<Record<Transition['edge'], 'completed' | 'cancelled' | 'released' | 'failed' | 'retried'>> = {
  complete: 'completed',
  cancelRunning: 'cancelled',
  snooze: 'released',
  release: 'released',
  fail: 'failed',
  retry: 'retried',
}

function failedInfo({ claimed }: EndedRun, error: AttemptError, connection: string): FailedInfo {
  const { id, name, queue, attemptCount } = claimed
  return { id, name, queue, connection, attempts: attemptCount + 1, error }
}

/** Runs the hooks of the kind and of the system; one that throws is reported and disturbs nobody. */
export function tellFailed(failed: FailedInfo, hooks: readonly (FailedHook | undefined)[], logger: Logger): void {
  for (const hook of hooks) {
    if (hook === undefined) continue
    Promise.resolve()
      .then(() => hook(failed))
      .catch((error: unknown) => logger.error({ jobId: failed.id, error }, 'a failed hook threw'))
  }
}
