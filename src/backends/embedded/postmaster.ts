// The server process of a data directory. PostgreSQL's own `postmaster.pid` is the one truth about it: pid,
// port and status; PostgreSQL also refuses a second server on a directory, which is the last line of defence.
import { spawnSync } from 'node:child_process'
import { chownSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { sleep, systemClock } from '../../runtime/clock.ts'
import { commandOf, isRunning } from './processes.ts'
import { spawnAs } from './server-user.ts'
import type { ServerUser } from './server-user.ts'

export interface Postmaster {
  readonly pid: number
  readonly port: number
  readonly status: 'starting' | 'stopping' | 'ready' | 'standby'
}

export type ShutdownMode = 'fast' | 'immediate'

const POLL_MS = 3
const SIGNALS = { fast: 'INT', immediate: 'QUIT' } as const
/** A fast shutdown writes a checkpoint; should the disk take longer than this, the log has it all anyway. */
const FAST_MAX_MS = 30_000
const IMMEDIATE_MAX_MS = 10_000
const WRITING_MAX_MS = 5_000

/** The server that runs on a directory now, however it was started. */
export function findPostmaster(data: string): Postmaster | undefined {
  const found = readPidFile(data)
  return found !== undefined && isPostmasterOf(found.pid, data) ? found : undefined
}

/** The one that runs on a directory once it is neither starting nor stopping, undefined if none is left. */
export async function settledPostmaster(data: string, deadlineMs: number): Promise<Postmaster | undefined> {
  for (;;) {
    const found = findPostmaster(data)
    if (found === undefined || found.status === 'ready' || systemClock.monoMs() > deadlineMs) return found
    await sleep(systemClock, POLL_MS)
  }
}

/** Is this process a server on this directory? A pid may belong to anybody by now. */
export function isPostmasterOf(pid: number, data: string): boolean {
  if (!isRunning(pid)) return false
  const command = commandOf(pid)
  if (command === undefined) return true
  return command.length === 1 ? (command[0] ?? '').includes(` -D ${data} `) : command.includes(data)
}

export interface LaunchOptions {
  readonly postgres: string
  readonly data: string
  readonly port: number
  readonly user: ServerUser | undefined
  readonly logFd: number
  readonly settings?: Readonly<Record<string, string>>
}

/** Answers the pid once it takes connections, or undefined if it ended before; the log says why. */
export async function launchPostmaster(options: LaunchOptions, timeoutMs: number): Promise<number | undefined> {
  const { postgres, data, port, user, logFd, settings = {} } = options
  disownPidFile(data, user)
  const all = { listen_addresses: '127.0.0.1', unix_socket_directories: '', ...settings }
  const flags = Object.entries(all).flatMap(([name, value]) => ['-c', `${name}=${value}`])
  const child = spawnAs(user, postgres, ['-D', data, '-p', String(port), ...flags], {
    detached: true,
    stdio: ['ignore', logFd, logFd],
  })
  let ended: { readonly error?: unknown } | undefined
  child.once('exit', () => (ended ??= {}))
  child.once('error', (error) => (ended = { error }))
  child.unref()
  const deadlineMs = systemClock.monoMs() + timeoutMs
  while (ended === undefined && systemClock.monoMs() < deadlineMs) {
    const found = readPidFile(data)
    if (found !== undefined && found.pid === child.pid && found.status === 'ready') return found.pid
    await sleep(systemClock, POLL_MS)
  }
  if (ended?.error !== undefined) throw ended.error
  if (ended === undefined) child.kill('SIGQUIT') // out of time
  return undefined
}

export interface StopOptions {
  readonly mode?: ShutdownMode
  /** Where it is remembered: somebody may have removed the directory under the server. */
  readonly pid?: number | undefined
  readonly pgCtl?: string | undefined
}

/** Gone when it resolves, and so at once if it was not there; false if nothing made it go. */
export async function stopPostmaster(data: string, options: StopOptions = {}): Promise<boolean> {
  const { mode = 'fast', pgCtl, pid = findPostmaster(data)?.pid } = options
  if (pid === undefined || !isPostmasterOf(pid, data)) return true
  signal(pid, mode, pgCtl)
  if (await isGone(pid, data, mode === 'fast' ? FAST_MAX_MS : IMMEDIATE_MAX_MS)) return true
  signal(pid, 'immediate', pgCtl)
  return await isGone(pid, data, IMMEDIATE_MAX_MS)
}

async function isGone(pid: number, data: string, timeoutMs: number): Promise<boolean> {
  const deadlineMs = systemClock.monoMs() + timeoutMs
  while (isPostmasterOf(pid, data)) {
    if (systemClock.monoMs() > deadlineMs) return false
    await sleep(systemClock, POLL_MS)
  }
  return true
}

function signal(pid: number, mode: ShutdownMode, pgCtl: string | undefined): void {
  const name = SIGNALS[mode]
  try {
    if (process.platform !== 'win32' || pgCtl === undefined) process.kill(pid, `SIG${name}`)
    else spawnSync(pgCtl, ['kill', name, String(pid)], { stdio: 'ignore', windowsHide: true })
  } catch {
    // It went between the look and the signal.
  }
}

function readPidFile(data: string): Postmaster | undefined {
  const lines = pidLines(data)
  const pid = Number(lines?.[0])
  const port = Number(lines?.[3])
  const status = lines?.[7]?.trim() ?? ''
  if (!Number.isInteger(pid) || pid <= 0 || !Number.isInteger(port)) return undefined
  return { pid, port, status: isStatus(status) ? status : 'starting' }
}

function isStatus(text: string): text is Postmaster['status'] {
  return text === 'starting' || text === 'stopping' || text === 'ready' || text === 'standby'
}

function pidLines(data: string): readonly string[] | undefined {
  try {
    return readFileSync(join(data, 'postmaster.pid'), 'utf8').split('\n')
  } catch {
    return undefined
  }
}

/**
 * PostgreSQL will not start while the pid in a left-over file answers to its user: another program's by now, or a
 * zombie's that nobody collects. It ignores its parent's pid, so ours goes in. Removing the file would lose the line
 * from which it learns that sessions of the dead server are still at work.
 */
function disownPidFile(data: string, user: ServerUser | undefined): void {
  const path = join(data, 'postmaster.pid')
  const lines = pidLines(data)
  if (lines === undefined) return
  const pid = Number(lines[0])
  if (!Number.isInteger(pid) || pid <= 0) {
    // Cut short by a crash, unless a server is writing it at this moment.
    if (systemClock.nowMs() - statSync(path).mtimeMs > WRITING_MAX_MS) rmSync(path, { force: true })
    return
  }
  if (isPostmasterOf(pid, data)) return
  writeFileSync(`${path}.new`, [String(process.pid), ...lines.slice(1)].join('\n'), { mode: 0o600 })
  if (user !== undefined) chownSync(`${path}.new`, user.uid, user.gid)
  renameSync(`${path}.new`, path)
}
