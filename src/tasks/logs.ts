// Logs: files of one directory that are named like a log and that nobody has written to for two weeks are removed; attempts
// and log lines of jobs that are older than their period become sums per day, where the store can do that.
//
// The directory is read flat. What is a link, a directory or anything else than a plain file is left alone, so nothing
// outside of it can be reached; what is removed is an entry of it.
import { lstat, opendir, realpath, unlink } from 'node:fs/promises'
import { isAbsolute, join } from 'node:path'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { LIMITS, DEFAULTS } from '../core/limits.ts'
import { isLogName, isOverLog } from '../core/log-files.ts'
import { invalidOption } from '../core/names.ts'
import { retainAll } from './retention.ts'
import { begin, checkCommon, overTime } from './task.ts'
import type { CommonOptions, Course, TaskContext, TaskResult } from './task.ts'

export interface LogsTaskOptions extends CommonOptions {
  /** Absolute. Without it files are left alone. */
  readonly dir?: string
  /** Files that were not written to for longer go. Default 14 days. */
  readonly keep?: Duration
}

interface Cleaned {
  readonly files: number
  readonly bytes: number
  readonly left: string | null
  readonly warnings: readonly string[]
}

const NO_FILES: Cleaned = { files: 0, bytes: 0, left: null, warnings: [] }

export async function cleanLogs(context: TaskContext, options: LogsTaskOptions = {}): Promise<TaskResult> {
  const { dir, keepMs } = checkLogsTask(options)
  const course = begin(context, options)
  const cleaned = dir === undefined ? NO_FILES : await cleanFiles(context, course, await rootOf(dir), keepMs)
  const canSum = context.backend.jobs.retain !== undefined && !course.dryRun
  const summed = canSum ? await retainAll(context, course) : { counts: {}, left: null }
  const { files, bytes } = cleaned
  return course.finish({
    summary: `${files} log files removed${canSum ? ', logs of jobs summarised by day' : ''}`,
    counts: { files, ...summed.counts },
    bytes,
    left: cleaned.left ?? summed.left,
    warnings: cleaned.warnings,
  })
}

export function checkLogsTask(options: LogsTaskOptions): { readonly dir: string | undefined; readonly keepMs: number } {
  checkCommon(options, ['dir', 'keep'], 'task logs')
  const { dir, keep = DEFAULTS.logFileKeepMs } = options
  if (dir !== undefined && (typeof dir !== 'string' || !isAbsolute(dir)))
    throw invalidOption('dir', dir, 'an absolute path')
  return { dir, keepMs: parseDuration(keep, 'keep') }
}

/** The directory itself may be a link, its entries may not. */
async function rootOf(dir: string): Promise<string> {
  const root = await realpath(dir).catch((cause: unknown) => {
    throw Object.assign(invalidOption('dir', dir, 'a directory that exists'), { cause })
  })
  if (root === '/') throw invalidOption('dir', dir, 'a directory of logs, not the root of the disk')
  return root
}

async function cleanFiles(
  { runtime, backend }: TaskContext,
  course: Course,
  root: string,
  keepMs: number,
): Promise<Cleaned> {
  // Of two clocks the one that is behind: a clock that jumped ahead would make everything old.
  const nowMs = Math.min(runtime.clock.nowMs(), (await backend.schedules.due(0)).nowMs)
  const warnings: string[] = []
  let [seen, files, bytes] = [0, 0, 0]
  for await (const entry of await opendir(root)) {
    if (++seen > LIMITS.logFilesMax || !course.mayGoOn()) return { files, bytes, left: overTime(course), warnings }
    if (!isLogName(entry.name)) continue
    const path = join(root, entry.name)
    try {
      const found = await lstat(path)
      const file = { name: entry.name, isFile: found.isFile(), modifiedAtMs: found.mtimeMs }
      if (!isOverLog(file, nowMs, keepMs)) continue
      if (!course.dryRun) await unlink(path)
      files += 1
      bytes += found.size
    } catch (error) {
      // Another may have taken it away first.
      if ((error as NodeJS.ErrnoException).code === 'ENOENT') continue
      if (warnings.length < LIMITS.taskWarningsMax) warnings.push(`${entry.name}: ${(error as Error).message}`)
    }
  }
  return { files, bytes, left: null, warnings }
}
