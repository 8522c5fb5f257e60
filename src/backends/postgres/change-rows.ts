// Transitions as rows of type job_change: everything SQL needs to know about an edge, looked up here in the one
// transition table, so that SQL compares and moves without knowing what an edge means.
import { clean } from '../../core/attempt-error.ts'
import { EDGES } from '../../core/edges.ts'
import type { Edge } from '../../core/edges.ts'
import { isFinal } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { AUDIT, ENDED, WAITS_FOR } from './words.ts'

/** Changes that leave the job where it is, or take it away. */
const STAYS: ReadonlySet<string> = new Set(['report', 'requestCancel', 'markReplayed', 'remove'])

export interface ChangeRow {
  readonly [column: string]: unknown
}

/** `worker`: whose run it ends, should the row not know. */
export function changeRow(transition: Transition, worker?: string | null): ChangeRow {
  const edge: Edge = EDGES[transition.edge]
  const { guard, to } = transition
  return {
    job_id: transition.jobId,
    edge: transition.edge,
    guard_from: guard.from,
    guard_lease: guard.lease,
    guard_orphan_of: guard.orphanOf,
    goes_to: to,
    delay_ms: transition.delayMs === undefined ? undefined : Math.ceil(transition.delayMs),
    waits_for: transition.waitsFor === undefined ? undefined : WAITS_FOR[transition.waitsFor as keyof typeof WAITS_FOR],
    counts: transition.attempt === 'count',
    resets: transition.attempt === 'reset',
    crashed: transition.crash,
    error: transition.error,
    result: transition.result,
    progress: transition.progress,
    log_lines: transition.logLines,
    log_from: transition.logFrom,
    if_free: transition.ifFree,
    ran_ms: transition.ranMs === undefined ? undefined : Math.round(transition.ranMs),
    note: transition.note,
    actor: transition.actor,
    into_id: transition.into,
    then_remove: transition.thenRemove,
    audit: edge.audit === null ? undefined : AUDIT[edge.audit],
    // A run that was never started leaves no trace of a run (core/apply.ts auditRow).
    audits_run: edge.lease && (edge.counts || edge.audit === 'released'),
    ended: isFinal(to) && !STAYS.has(transition.edge) ? ENDED[to] : undefined,
    if_cancel: transition.ifCancelRequested === undefined ? undefined : changeRow(transition.ifCancelRequested),
    worker: worker ?? undefined,
  }
}

/**
 * Rows as one JSON text; results and progress are opaque texts in it. A character in a note that the store does not take
 * must not hold up the whole flush.
 */
export function changesJson(
  transitions: readonly Transition[],
  workerOf: (transition: Transition) => string | null = () => null,
): string {
  const rows = transitions.map((transition) => changeRow(transition, workerOf(transition)))
  return JSON.stringify(rows, (_, value: unknown) => (typeof value === 'string' ? clean(value) : value))
}

/**
 * The words of core/transition.ts, and one more: `dispatched <lease> <queue>` for a row that nobody may change without its
 * lease. Who cannot revoke its token leaves it at `stale`, and asks for cancellation.
 */
export function verdictOf(text: string): Verdict {
  return text.startsWith('dispatched ') ? 'stale' : (text as Verdict)
}
