// The data directory of a server: made once by initdb. It is made beside its place and then renamed, so that
// whoever finds it finds all of it, also after a crash halfway.
import { randomBytes } from 'node:crypto'
import { chownSync, closeSync, existsSync, fsyncSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { renameSync, rmSync, writeFileSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { MillraceError } from '../../core/errors.ts'
import type { Binaries } from './binaries.ts'
import { DATABASE, ROLE } from './files.ts'
import { lastLines } from './server-log.ts'
import type { ServerLog } from './server-log.ts'
import { spawnAs } from './server-user.ts'
import type { ServerUser } from './server-user.ts'

export interface ClusterOptions {
  readonly data: string
  /** The file that keeps the password of the role. */
  readonly password: string
  readonly binaries: Binaries
  readonly user: ServerUser | undefined
  readonly log: ServerLog
}

/** Data that is being made, or was when a process died. */
export const BEGUN_PREFIX = 'initdb-'

/** The caller holds the lock. Does nothing when the data is there. */
export async function ensureCluster(options: ClusterOptions): Promise<void> {
  const { data, password, user } = options
  if (existsSync(join(data, 'PG_VERSION'))) return
  const parent = dirname(data)
  const begun = join(parent, `${BEGUN_PREFIX}${randomBytes(4).toString('hex')}`)
  mkdirSync(begun, { mode: 0o700 })
  give(begun, user)
  const secret = `${begun}.password`
  try {
    keep(secret, `${randomBytes(24).toString('hex')}\n`, user)
    await initialise(options, begun, secret)
    renameSync(secret, password)
    renameSync(begun, data)
    syncDirectory(parent)
  } catch (error) {
    for (const path of [begun, secret]) rmSync(path, { recursive: true, force: true })
    throw error
  }
}

export function readPassword(path: string): string {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    throw new MillraceError(
      'EMBEDDED_FAILED',
      `the password of the embedded PostgreSQL cannot be read from ${path}: ${(error as Error).message}; ` +
        'use the same user as the process that made it, or remove the directory to begin with empty data',
      { cause: error },
    )
  }
}

async function initialise({ binaries, user, log }: ClusterOptions, data: string, secret: string): Promise<void> {
  const access = ['--auth=scram-sha-256', `--username=${ROLE}`, `--pwfile=${secret}`]
  const text = ['--encoding=UTF8', '--locale=C']
  await run(binaries.initdb, [`--pgdata=${data}`, ...access, ...text], user, log)
  // Without a server: one that listens could be found, and left behind, half made. 75 ms.
  const single = ['--single', '-D', data, '-c', 'exit_on_error=on', 'postgres']
  await run(binaries.postgres, single, user, log, `create database ${DATABASE}\n`)
}

async function run(
  program: string,
  args: readonly string[],
  user: ServerUser | undefined,
  log: ServerLog,
  input?: string,
): Promise<void> {
  log.mark()
  const child = spawnAs(user, program, args, { stdio: ['pipe', log.fd, log.fd] })
  child.stdin?.on('error', () => undefined) // it ended without reading; its exit says more
  child.stdin?.end(input)
  const end = await new Promise<string | undefined>((resolve) => {
    child.once('error', (error) => resolve(cannotRun(error, program)))
    child.once('exit', (code, signal) => resolve(code === 0 ? undefined : `ended with ${signal ?? code}`))
  })
  if (end === undefined) return
  const said = lastLines(log.text())
  throw new MillraceError(
    'EMBEDDED_FAILED',
    `the embedded PostgreSQL could not make its data: ${basename(program)} ${end}; ${log.path} ends with:\n${said}`,
  )
}

/** A program that is there and yet not found lacks its loader: it was built for another C library. */
export function cannotRun(error: Error, program: string): string {
  const isMusl = (error as NodeJS.ErrnoException).code === 'ENOENT' && existsSync(program)
  const why = isMusl
    ? "it needs glibc, which Alpine does not have; set `postgres: 'postgres://…'` there"
    : error.message
  return `cannot run (${why})`
}

/** Opened without following what somebody else may have put there. */
function keep(path: string, text: string, user: ServerUser | undefined): void {
  writeFileSync(path, text, { flag: 'wx', mode: 0o600 })
  give(path, user)
}

function give(path: string, user: ServerUser | undefined): void {
  if (user !== undefined) chownSync(path, user.uid, user.gid)
}

function syncDirectory(path: string): void {
  if (process.platform === 'win32') return
  const fd = openSync(path, 'r')
  fsyncSync(fd)
  closeSync(fd)
}
