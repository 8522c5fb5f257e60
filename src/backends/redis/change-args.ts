// Transitions as the values of lua/cycle.lua: plain completions by queue, all others as JSON with everything Lua needs to
// know about an edge, looked up here in the one transition table.
import { clean } from '../../core/attempt-error.ts'
import { EDGES } from '../../core/edges.ts'
import type { Edge } from '../../core/edges.ts'
import { isFinal } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { bytesOf } from './ids.ts'
import type { RedisValue } from './link.ts'
import type { Whereabouts } from './whereabouts.ts'

/** As lua/_complete.lua cuts them. */
const LEASE_DIGITS = 16
const RAN_DIGITS = 12

/** Changes that leave the job where it is, or take it away. */
const STAYS: ReadonlySet<string> = new Set(['report', 'requestCancel', 'markReplayed', 'remove'])

function changeOf(transition: Transition, where: Whereabouts): object {
  const { guard, edge, to } = transition
  const { audit, lease, counts }: Edge = EDGES[edge]
  return {
    id: transition.jobId,
    queue: where.of(transition.jobId),
    edge,
    from: guard.from,
    lease: guard.lease,
    orphanOf: guard.orphanOf,
    delay: transition.delayMs === undefined ? undefined : Math.ceil(transition.delayMs),
    waits: transition.waitsFor,
    counts: transition.attempt === 'count' || undefined,
    resets: transition.attempt === 'reset' || undefined,
    crash: transition.crash,
    error: transition.error === undefined ? undefined : JSON.stringify(transition.error, cleanly),
    result: transition.result,
    progress: transition.progress,
    lines: transition.logLines?.map((line) => JSON.stringify(line, cleanly)),
    logFrom: transition.logFrom,
    ran: transition.ranMs === undefined ? undefined : Math.round(transition.ranMs),
    note: transition.note,
    actor: transition.actor,
    into: transition.into,
    remove: transition.thenRemove,
    replays: edge === 'replay' || edge === 'markReplayed' || undefined,
    audit: audit ?? undefined,
    // A run that was never started leaves no trace of a run (core/apply.ts auditRow).
    auditsRun: (lease && (counts || audit === 'released')) || undefined,
    ended: isFinal(to) && !STAYS.has(edge) ? to : undefined,
    alt: transition.ifCancelRequested && changeOf(transition.ifCancelRequested, where),
  }
}

function cleanly(_: string, value: unknown): unknown {
  return typeof value === 'string' ? clean(value) : value
}

const COMPLETION = JSON.stringify(
  changeOf(
    { jobId: '', edge: 'complete', guard: { from: ['running'] }, to: 'completed', attempt: 'count' } as never,
    {
      of: () => '',
    } as never,
  ),
)

export interface SettleArgs {
  readonly args: readonly RedisValue[]
  /** Of each plain completion and of each other change, its place in the call. */
  readonly plain: readonly number[]
  readonly others: readonly number[]
}

export function settleArgs(transitions: readonly Transition[], where: Whereabouts): SettleArgs {
  const sections = new Map<string, number[]>()
  const others: number[] = []
  const seen = repeated(transitions)
  for (let index = 0; index < transitions.length; index++) {
    const transition = transitions[index]!
    const queue =
      seen?.has(transition.jobId) !== true && isPlainCompletion(transition) ? where.of(transition.jobId) : ''
    const known = sections.get(queue)
    if (queue === '') others.push(index)
    else if (known === undefined) sections.set(queue, [index])
    else known.push(index)
  }
  const args: RedisValue[] = [COMPLETION, sections.size]
  const plain: number[] = []
  for (const [queue, indexes] of sections) {
    args.push(...sectionArgs(queue, indexes, transitions))
    plain.push(...indexes)
  }
  args.push(others.length)
  for (const index of others) args.push(JSON.stringify(changeOf(transitions[index]!, where), cleanly))
  return { args, plain, others }
}

/** Everything of the same kind in one text: each value of its own costs both sides half a microsecond. */
function sectionArgs(
  queue: string,
  indexes: readonly number[],
  transitions: readonly Transition[],
): readonly RedisValue[] {
  const ids: string[] = []
  let [runs, lastLease, lease] = ['', -1, '']
  const results: RedisValue[] = []
  for (let at = 0; at < indexes.length; at++) {
    const { jobId, guard, ranMs = 0, result } = transitions[indexes[at]!]!
    ids.push(jobId)
    // Jobs of one claim have the same, as a rule.
    if (guard.lease !== lastLease) [lastLease, lease] = [guard.lease ?? 0, digits(guard.lease ?? 0, LEASE_DIGITS)]
    runs += lease + digits(Math.max(Math.round(ranMs), 0), RAN_DIGITS)
    if (result !== undefined) results.push(at + 1, result)
  }
  return [queue, indexes.length, bytesOf(ids), ids.join(''), runs, results.length / 2, ...results]
}

function digits(value: number, width: number): string {
  return String(value).padStart(width, '0')
}

export function verdictsOf(
  count: number,
  { plain, others }: SettleArgs,
  unapplied: readonly (number | Buffer)[],
  verdicts: readonly Buffer[],
): readonly Verdict[] {
  const all = Array.from({ length: count }, (): Verdict => 'applied')
  // Lua answers with the words of core/transition.ts.
  for (let i = 0; i < unapplied.length; i += 2)
    all[plain[Number(unapplied[i]) - 1]!] = String(unapplied[i + 1]) as Verdict
  for (const [index, verdict] of verdicts.entries()) all[others[index]!] = String(verdict) as Verdict
  return all
}

/** Jobs that a call names more than once: their changes go in order. */
function repeated(transitions: readonly Transition[]): ReadonlySet<string> | undefined {
  const seen = new Set<string>()
  let twice: Set<string> | undefined
  for (let index = 0; index < transitions.length; index++) {
    const { jobId } = transitions[index]!
    const known = seen.size
    seen.add(jobId)
    if (seen.size === known) (twice ??= new Set()).add(jobId)
  }
  return twice
}

function isPlainCompletion(transition: Transition): boolean {
  return (
    transition.edge === 'complete' &&
    transition.guard.lease !== undefined &&
    transition.guard.from.length === 1 &&
    transition.ranMs !== undefined &&
    transition.attempt === 'count' &&
    transition.progress === undefined &&
    transition.logLines === undefined &&
    transition.ifCancelRequested === undefined
  )
}
