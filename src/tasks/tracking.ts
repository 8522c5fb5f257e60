// Redis tracking: what is kept about jobs beside them, and was left behind by a crash, an eviction or a hand. The store says
// which keys are dead; this walks it over its keys in small steps (SCAN), and goes on where an earlier run has stopped.
import { MillraceError } from '../core/errors.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { bounded } from '../runtime/bounded.ts'
import { isSweepable } from '../store/tracking.ts'
import type { SweepCounts } from '../store/tracking.ts'
import { begin, checkCommon, overTime } from './task.ts'
import type { CommonOptions, TaskContext, TaskResult } from './task.ts'

export type TrackingTaskOptions = CommonOptions

const SPACE = 'tasks'
const CURSOR_KEY = 'tracking:cursor'
/** A cursor this old may be of another server. */
const CURSOR_KEPT_MS = 24 * 60 * 60_000
const NOTHING: SweepCounts = { seen: 0, dead: 0, endless: 0, foreign: 0 }

export async function cleanTracking(context: TaskContext, options: TrackingTaskOptions = {}): Promise<TaskResult> {
  checkTrackingTask(options)
  const { backend, runtime, report } = context
  if (!isSweepable(backend)) {
    throw new MillraceError('TASK_NOT_FOUND', 'this store keeps nothing in Redis: there is no tracking to clean up')
  }
  const course = begin(context, options)
  let counts = NOTHING
  let cursor = course.dryRun ? null : await readCursor(context)
  let steps = 0
  for (; steps < LIMITS.taskPassesMax && course.mayGoOn(); steps++) {
    const step = backend.sweepTracking({ cursor, count: LIMITS.scanCount, isDryRun: course.dryRun })
    const reply = await bounded(runtime.clock, DEFAULTS.storeTimeoutMs, 'a step over the keys of Redis', step)
    counts = sum(counts, reply.counts)
    cursor = reply.cursor
    report?.({ step: 'tracking', counts: { ...counts } })
    if (cursor === null) break
    await runtime.clock.breathe()
  }
  if (!course.dryRun) await writeCursor(context, cursor)
  const { seen, dead, endless, foreign } = counts
  const verb = course.dryRun ? 'would go' : 'removed'
  return course.finish({
    summary: `${seen} keys looked at: ${dead} dead ones ${verb}, ${endless} without an end ${course.dryRun ? 'would get' : 'got'} one`,
    counts: { ...counts, steps },
    left: cursor === null ? null : overTime(course),
    warnings: foreign === 0 ? [] : [`${foreign} keys under our prefix are not of this store and were left alone`],
  })
}

export function checkTrackingTask(options: TrackingTaskOptions): void {
  checkCommon(options, [], 'task tracking')
}

function sum(a: SweepCounts, b: SweepCounts): SweepCounts {
  return {
    seen: a.seen + b.seen,
    dead: a.dead + b.dead,
    endless: a.endless + b.endless,
    foreign: a.foreign + b.foreign,
  }
}

async function readCursor({ backend }: TaskContext): Promise<string | null> {
  const note = await backend.notes.get(SPACE, CURSOR_KEY)
  const value: unknown = note === null ? null : JSON.parse(note.value)
  return typeof value === 'string' ? value : null
}

async function writeCursor({ backend }: TaskContext, cursor: string | null): Promise<void> {
  if (cursor === null) await backend.notes.remove(SPACE, CURSOR_KEY)
  else await backend.notes.put({ space: SPACE, key: CURSOR_KEY, value: JSON.stringify(cursor), ttlMs: CURSOR_KEPT_MS })
}
