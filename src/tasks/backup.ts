// A backup of the schema, by pg_dump, in its own compressed format: dumped under another name, read back to the end by
// pg_restore, forced to the disk, named, and then old ones go. Whatever goes wrong before leaves no file, and the backups that
// were there stay. The password is in the environment of pg_dump alone.
import { isAbsolute, join } from 'node:path'
import { DEFAULT_CONNECTION } from '../client/connections.ts'
import { backupLabel, backupName, checkLabel, roomFor, serverMajor } from '../core/backup.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import { DEFAULTS } from '../core/limits.ts'
import { checkInteger, invalidOption } from '../core/names.ts'
import { isInDatabase } from '../store/database.ts'
import {
  commitBackup,
  freeBytes,
  hashFile,
  lastBackupBytes,
  makeDir,
  openPart,
  removeQuietly,
  rotate,
} from './backup-files.ts'
import { askServer } from './pg-server.ts'
import { pgTarget } from './pg-env.ts'
import type { PgTarget } from './pg-env.ts'
import { findTools } from './pg-tools.ts'
import type { PgTools } from './pg-tools.ts'
import { runTool } from './run-tool.ts'
import type { ToolEnd } from './run-tool.ts'
import { begin, checkCommon } from './task.ts'
import type { CommonOptions, Course, TaskContext, TaskResult } from './task.ts'

export interface BackupTaskOptions extends CommonOptions {
  /** Absolute; made if it is not there. On the host that runs the task. */
  readonly dir?: string
  /** Older ones go; the newest one always stays. Default 7 days. */
  readonly keep?: Duration
  /** Where pg_dump and pg_restore are. Default: the PATH, then where packages put them. */
  readonly bin?: string
  /** In the names of files; needed where several servers write into one directory. Default: database and schema. With the connection, if it is not the default one. */
  readonly label?: string
  /** 1 (fast) to 9 (small). Default 6. */
  readonly level?: number
}

const OPTIONS = ['dir', 'keep', 'bin', 'label', 'level'] as const
const LEVEL = 6
const LOCK_WAIT_MS = 60_000

interface Terms {
  readonly dir: string
  readonly keepMs: number
  readonly label: string | undefined
  readonly level: number
}

export async function backupDatabase(context: TaskContext, options: BackupTaskOptions = {}): Promise<TaskResult> {
  const terms = checkBackupTask(options)
  const { backend, runtime, signal, env = process.env } = context
  if (!isInDatabase(backend)) {
    throw new MillraceError('TASK_NOT_FOUND', 'this store is in no PostgreSQL: there is no database to back up')
  }
  const course = begin(context, options, DEFAULTS.backupMaxMs)
  const { url, schema } = backend.databasePlace()
  const server = await askServer(url, schema)
  const major = serverMajor(server.versionNumber)
  const tools = await findTools({ bin: options.bin, serverMajor: major, env, signal, clock: runtime.clock })
  const target = pgTarget(url, tools.major)
  const label = labelOf(terms.label === undefined ? [target.database, schema] : [terms.label], context.connection)
  await makeDir(terms.dir)
  await checkRoom(terms.dir, label, server.tableBytes)
  // Of two clocks the one that is behind: a clock that jumped ahead would take all but one.
  const rotation = { label, keepMs: terms.keepMs, nowMs: Math.min(runtime.clock.nowMs(), server.nowMs) }
  if (course.dryRun) {
    const old = await rotate(terms.dir, rotation, true)
    const summary = `would dump ${schema} of ${target.database} with pg_dump ${tools.major}, and remove ${old.removed} old backups`
    return course.finish({
      summary,
      counts: { removed: old.removed },
      bytes: server.tableBytes,
      warnings: target.warnings,
    })
  }
  const name = backupName(label, runtime.clock.nowMs())
  const { bytes } = await dump(context, course, { terms, name, tools, target, schema })
  const old = await rotate(terms.dir, rotation, false)
  return course.finish({
    summary: `${schema} of ${target.database} is in ${name}, ${bytes} bytes, verified; ${old.removed} old backups removed`,
    counts: { removed: old.removed, tool: tools.major, server: major },
    bytes,
    files: [join(terms.dir, name)],
    warnings: [...target.warnings, ...old.warnings],
  })
}

/** Two stores that one configuration backs up never share a label: the backups of one would make those of the other old. */
function labelOf(names: readonly [string, ...string[]], connection = DEFAULT_CONNECTION): string {
  if (connection !== DEFAULT_CONNECTION) return backupLabel(...names, connection)
  return names.length === 1 ? names[0] : backupLabel(...names)
}

interface Dump {
  readonly terms: Terms
  readonly name: string
  readonly tools: PgTools
  readonly target: PgTarget
  readonly schema: string
}

async function dump(context: TaskContext, course: Course, asked: Dump): Promise<{ readonly bytes: number }> {
  const { terms, name, tools, target, schema } = asked
  const { runtime, report } = context
  const bound = boundBy(context, course)
  const part = await openPart(terms.dir, name)
  const tool = { env: { ...(context.env ?? process.env), ...target.env }, signal: bound.signal, clock: runtime.clock }
  try {
    report?.({ step: 'pg_dump', counts: {} })
    const args = [
      '--format=custom',
      `--compress=${terms.level}`,
      `--schema=${quoted(schema)}`,
      `--lock-wait-timeout=${LOCK_WAIT_MS}`,
      '--no-password',
      `--file=${part}`,
    ]
    check('pg_dump', await runTool({ ...tool, program: tools.pgDump, args }), target, bound.signal)
    const { sha256, bytes } = await hashFile(part, bound.signal)
    report?.({ step: 'pg_restore', counts: { bytes } })
    // Reads all of it and restores nothing: a list of contents would be whole in a file that is cut in half.
    const verify = { ...tool, program: tools.pgRestore, args: ['--file=/dev/null', part] }
    check('pg_restore', await runTool(verify), target, bound.signal)
    bound.signal.throwIfAborted()
    await commitBackup(terms.dir, name, part, sha256)
    return { bytes }
  } catch (error) {
    await removeQuietly(part)
    throw stopped(error, bound.signal)
  } finally {
    bound.end()
  }
}

/** The signal of the task, and the end of its time. */
function boundBy({ runtime, signal }: TaskContext, { maxMs }: Course) {
  const controller = new AbortController()
  const abort = (): void => controller.abort(signal.reason)
  const timer = runtime.clock.timer(maxMs, () => {
    controller.abort(new MillraceError('BACKUP_FAILED', `the backup took longer than ${maxMs} ms: raise maxTime`))
  })
  signal.addEventListener('abort', abort, { once: true })
  if (signal.aborted) abort()
  return {
    signal: controller.signal,
    end() {
      timer.cancel()
      signal.removeEventListener('abort', abort)
    },
  }
}

/** What a stopped program said of its end is not why it ended. */
function stopped(error: unknown, signal: AbortSignal): unknown {
  return signal.aborted ? signal.reason : error
}

function check(program: string, { code, stderr }: ToolEnd, { env }: PgTarget, signal: AbortSignal): void {
  signal.throwIfAborted()
  if (code === 0) return
  const password = env['PGPASSWORD']
  const said = password === undefined ? stderr : stderr.replaceAll(password, '***')
  const message = `${program} failed${code === null ? ', ended by a signal' : ` with code ${code}`}: ${said.trim().slice(-1_000) || 'it said nothing'}`
  throw new MillraceError('BACKUP_FAILED', message, { details: { program, code } })
}

async function checkRoom(dir: string, label: string, tableBytes: number): Promise<void> {
  const needed = roomFor(await lastBackupBytes(dir, label), tableBytes)
  const free = await freeBytes(dir)
  if (free >= needed) return
  const message = `the disk of ${dir} has ${free} bytes left and the backup may need ${needed}: make room, or name another dir`
  throw new MillraceError('BACKUP_NO_SPACE', message, { details: { free, needed } })
}

/** As a pattern of pg_dump, in which quotes make a name mean itself. */
function quoted(schema: string): string {
  return `"${schema.replaceAll('"', '""')}"`
}

export function checkBackupTask(options: BackupTaskOptions): Terms {
  checkCommon(options, OPTIONS, 'task backup')
  const { dir, keep, bin, label, level } = options
  if (typeof dir !== 'string' || !isAbsolute(dir)) throw invalidOption('dir', dir, 'an absolute path for the backups')
  if (bin !== undefined && (typeof bin !== 'string' || !isAbsolute(bin)))
    throw invalidOption('bin', bin, 'an absolute path')
  return {
    dir,
    keepMs: parseDuration(keep ?? DEFAULTS.backupKeepMs, 'keep'),
    label: label === undefined ? undefined : checkLabel(label),
    level: checkInteger(level ?? LEVEL, 'level', 1, 9),
  }
}
