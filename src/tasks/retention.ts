// Retention and archive: the passes that maintenance makes all the time (docs/retention.md), one after the other until nothing
// is due, with a count of what they did. Harmless beside maintenance: a pass that meets another gives way.
import type { StoredJob } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { pruneRules, retainPass } from '../maintenance/pruner.ts'
import { checkRetention } from '../maintenance/retention-options.ts'
import { sleep } from '../runtime/clock.ts'
import type { Backend, PruneRule } from '../store/ports.ts'
import { begin, checkCommon, overTime } from './task.ts'
import type { CommonOptions, Course, TaskContext, TaskCounts, TaskResult } from './task.ts'

/** Somebody was in the way: asked again after this long, so often. */
const PUT_OFF_WAIT_MS = 6_000
const PUT_OFF_MAX = 10
/** A dry run counts up to this many jobs per rule. */
const DRY_RUN_PAGES = 50

export type RetentionTaskOptions = CommonOptions

export async function runRetention(context: TaskContext, options: RetentionTaskOptions = {}): Promise<TaskResult> {
  checkRetentionTask(options)
  const course = begin(context, options)
  if (course.dryRun) return countDue(context, course)
  const { counts, left } = await retainAll(context, course)
  const { deleted = 0, passes = 0 } = counts
  return course.finish({ summary: `${deleted} jobs deleted one by one in ${passes} passes`, counts, left })
}

export function checkRetentionTask(options: RetentionTaskOptions): void {
  checkCommon(options, [], 'task retention')
}

/** Passes until nothing is due, time is over, or somebody stays in the way. Counts them, and the steps they took. */
export async function retainAll(
  { runtime, backend, signal, retention, report }: TaskContext,
  course: Course,
): Promise<{ readonly counts: TaskCounts; readonly left: string | null }> {
  const periods = checkRetention(retention, backend.capabilities.retention)
  const counts: Record<string, number> = { passes: 0, deleted: 0 }
  const add = (name: string, more: number): void => void (counts[name] = (counts[name] ?? 0) + more)
  let putOff = 0
  while (course.mayGoOn() && (counts['passes'] ?? 0) < LIMITS.taskPassesMax) {
    const rules = pruneRules(await backend.queues.list(), periods)
    const { deleted, next, did = [] } = await retainPass(backend.jobs, rules, periods)
    add('passes', 1)
    add('deleted', deleted)
    for (const step of did) add(step, 1)
    report?.({ step: 'retention', counts: { ...counts } })
    if (next === 'later') return { counts, left: null }
    putOff = next === 'soon' ? putOff + 1 : 0
    if (putOff >= PUT_OFF_MAX) return { counts, left: 'put off: a long transaction uses the tables of jobs' }
    if (next === 'soon') await sleep(runtime.clock, PUT_OFF_WAIT_MS, signal)
  }
  return { counts, left: overTime(course) }
}

async function countDue({ backend, retention }: TaskContext, course: Course): Promise<TaskResult> {
  const periods = checkRetention(retention, backend.capabilities.retention)
  const rules = pruneRules(await backend.queues.list(), periods)
  const { nowMs } = await backend.schedules.due(0)
  const counts: Record<string, number> = {}
  let isMore = false
  for (const rule of rules) {
    const found = await countRule(backend, rules, rule, nowMs, course)
    counts[rule.status] = (counts[rule.status] ?? 0) + found.count
    isMore ||= found.isMore
  }
  const sum = Object.values(counts).reduce((total, count) => total + count, 0)
  return course.finish({
    summary: `${isMore ? 'over ' : ''}${sum} finished jobs are over their period`,
    counts,
    warnings: isMore ? ['there are more than a dry run counts'] : [],
  })
}

async function countRule(
  backend: Backend,
  rules: readonly PruneRule[],
  rule: PruneRule,
  nowMs: number,
  course: Course,
) {
  const { queue, status, olderThanMs } = rule
  // A rule without a queue is for those that no other rule of this status names.
  const named = new Set(rules.filter((other) => other.status === status).map((other) => other.queue))
  const isOurs = (job: StoredJob): boolean => queue !== undefined || !named.has(job.queue)
  const filter = { status: [status], finishedUntilMs: nowMs - olderThanMs, ...(queue !== undefined && { queue }) }
  let count = 0
  let cursor: string | undefined
  for (let page = 0; page < DRY_RUN_PAGES && course.mayGoOn(); page++) {
    const found = await backend.query.list(filter, {
      limit: LIMITS.pageSizeMax,
      ...(cursor !== undefined && { cursor }),
    })
    count += found.items.filter(isOurs).length
    cursor = found.nextCursor
    if (cursor === undefined) return { count, isMore: false }
  }
  return { count, isMore: true }
}
