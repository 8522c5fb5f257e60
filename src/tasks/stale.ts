// What outlived its use: records of workers that are dead and hold nothing, and notes whose time is over, such as those of
// idempotent work. In bounded passes; both are harmless to repeat and to run beside maintenance.
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { begin, checkCommon, overTime } from './task.ts'
import type { CommonOptions, Course, TaskContext, TaskResult } from './task.ts'

export interface StaleTaskOptions extends CommonOptions {
  /** Dead workers are told of for this long. Default 1 hour. */
  readonly workersAfter?: Duration
}

export async function cleanStale(context: TaskContext, options: StaleTaskOptions = {}): Promise<TaskResult> {
  const { keptMs } = checkStaleTask(options)
  const course = begin(context, options)
  const { workers, notes } = context.backend
  if (course.dryRun) return look(context, course, keptMs)
  const gone = await inPasses(course, () => notes.prune(LIMITS.maintenanceBatchMax))
  const forget = workers.forget?.bind(workers)
  const forgotten =
    forget === undefined
      ? { count: 0, isOver: true }
      : await inPasses(course, () => forget(keptMs, LIMITS.maintenanceBatchMax))
  // Where nothing can be forgotten the history of jobs names its workers, and they go with it.
  const alsoWorkers = forget === undefined ? '' : ` and ${forgotten.count} dead workers`
  return course.finish({
    summary: `${gone.count} expired notes${alsoWorkers} removed`,
    counts: { notes: gone.count, workers: forgotten.count },
    left: gone.isOver && forgotten.isOver ? null : overTime(course),
  })
}

export function checkStaleTask(options: StaleTaskOptions): { readonly keptMs: number } {
  checkCommon(options, ['workersAfter'], 'task stale')
  return { keptMs: parseDuration(options.workersAfter ?? DEFAULTS.deadWorkerKeptMs, 'workersAfter') }
}

/** Until a pass finds less than it may take. */
async function inPasses(course: Course, pass: () => Promise<number>) {
  let count = 0
  for (let passes = 0; passes < LIMITS.taskPassesMax && course.mayGoOn(); passes++) {
    const more = await pass()
    count += more
    if (more < LIMITS.maintenanceBatchMax) return { count, isOver: true }
  }
  return { count, isOver: false }
}

async function look({ backend }: TaskContext, course: Course, keptMs: number): Promise<TaskResult> {
  const { nowMs } = await backend.schedules.due(0)
  const dead = (await backend.workers.list()).filter(
    ({ state, lastBeatAtMs }) => state === 'dead' && lastBeatAtMs < nowMs - keptMs,
  )
  return course.finish({
    summary: `${dead.length} workers are dead for long enough`,
    counts: { workers: dead.length },
    warnings: ['expired notes cannot be counted without removing them: nobody can read them any more'],
  })
}
