// Starting the server on a directory that has its data: finding a port, and telling apart what passes by itself from
// what somebody has to mend.
import { chownSync, readFileSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import type { AddressInfo } from 'node:net'
import { MillraceError } from '../../core/errors.ts'
import { sleep, systemClock } from '../../runtime/clock.ts'
import { cannotRun } from './cluster.ts'
import type { Files } from './files.ts'
import { launchPostmaster, settledPostmaster } from './postmaster.ts'
import { lastLines } from './server-log.ts'
import type { ServerLog } from './server-log.ts'
import type { ServerUser } from './server-user.ts'

export interface StartOptions {
  readonly files: Files
  readonly postgres: string
  readonly user: ServerUser | undefined
  readonly log: ServerLog
  readonly deadlineMs: number
  readonly settings?: Readonly<Record<string, string>>
}

const PORTS_MAX = 3
const IN_USE_POLL_MS = 200

/** Resolves once it takes connections. The caller holds the lock, and has found no server running. */
export async function startPostmaster(options: StartOptions): Promise<{ readonly pid: number; readonly port: number }> {
  const { files, postgres, user, log, deadlineMs, settings = {} } = options
  let port = savedPort(files) ?? (await freePort())
  let taken = 0
  for (;;) {
    log.mark()
    const launch = { postgres, data: files.data, port, user, logFd: log.fd, settings }
    const pid = await launchPostmaster(launch, deadlineMs - systemClock.monoMs()).catch((error: unknown) => {
      throw startFailed(`postgres ${cannotRun(error as Error, postgres)}`, files, error)
    })
    if (pid !== undefined) {
      savePort(files, port, user)
      return { pid, port }
    }
    const said = log.text()
    const isLate = systemClock.monoMs() >= deadlineMs
    if (!isLate && isPortTaken(said) && taken < PORTS_MAX) {
      taken += 1
      port = await freePort()
    } else if (!isLate && isInUse(said)) {
      // Started by a process that was killed before there was a file to see it by.
      const running = await settledPostmaster(files.data, deadlineMs)
      if (running !== undefined) return running
      await sleep(systemClock, IN_USE_POLL_MS)
    } else {
      throw startFailed(
        `postgres ${isLate ? 'was not ready in time' : 'ended'}; ${log.path} ends with:\n${lastLines(said)}`,
        files,
      )
    }
  }
}

export function startFailed(why: string, { dir }: Files, cause?: unknown): MillraceError {
  return new MillraceError('EMBEDDED_FAILED', `the embedded PostgreSQL in ${dir} did not start: ${why}`, { cause })
}

/** Another program took it between our look and the start. */
function isPortTaken(said: string): boolean {
  return /could not (bind|create any TCP\/IP sockets)/.test(said)
}

/** By a server that we did not see; or by sessions of one that was killed, which end by themselves, but not at once. */
function isInUse(said: string): boolean {
  return /pre-existing shared memory block|lock file "postmaster\.pid" (already exists|is empty)/.test(said)
}

function savedPort(files: Files): number | undefined {
  try {
    const port = Number(readFileSync(files.port, 'utf8'))
    return Number.isInteger(port) && port > 0 && port < 65_536 ? port : undefined
  } catch {
    return undefined
  }
}

function savePort(files: Files, port: number, user: ServerUser | undefined): void {
  if (savedPort(files) === port) return
  writeFileSync(files.port, `${port}\n`)
  if (user !== undefined) chownSync(files.port, user.uid, user.gid)
}

export function freePort(): Promise<number> {
  const server = createServer()
  return new Promise((resolve, reject) => {
    server.once('error', reject)
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address() as AddressInfo // it listens on TCP
      server.close(() => resolve(port))
    })
  })
}
