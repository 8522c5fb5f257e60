// The other side of the guardian: starting one, and holding on to one. As long as a process holds on, the server
// stays; when the hold is lost, the guardian is dead and the server may be.
import { spawn } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { mkdtempSync } from 'node:fs'
import { createRequire } from 'node:module'
import { connect } from 'node:net'
import { tmpdir } from 'node:os'
import { join, parse } from 'node:path'
import { fileURLToPath } from 'node:url'
import { MillraceError, assert } from '../../core/errors.ts'
import { systemClock } from '../../runtime/clock.ts'
import type { Files } from './files.ts'
import type { GuardianOrders } from './guardian.ts'
import { markOf } from './processes.ts'
import { plainEnv } from './server-user.ts'
import type { ServerState } from './state.ts'

export interface Hold {
  /** Calls at once if it is lost already; never after `release`. */
  onLost(listener: () => void): void
  release(): void
}

export interface Guardian {
  readonly hold: Hold
  /** Resolves when others can hold on as well. */
  readonly listening: Promise<void>
  state(server: GuardedServer): ServerState
}

export interface GuardedServer {
  readonly pid: number
  readonly port: number
}

export interface LaunchGuardianOptions {
  readonly files: Files
  readonly lingerMs: number
  readonly logFd: number
  readonly pgCtl: string | undefined
}

export const SOCKET_PREFIX = 'guardian-'

/** The bound of macOS is 103 bytes, that of Linux 107. */
const SOCKET_PATH_MAX = 100
const LISTENING_MAX_MS = 30_000
const GREETING_MAX_MS = 3_000

export function launchGuardian({ files, lingerMs, logFd, pgCtl }: LaunchGuardianOptions): Guardian {
  const token = randomBytes(8).toString('hex')
  const place = addressFor(files.dir, token)
  const { data, state, lock } = files
  const orders: GuardianOrders = { data, state, lock, token, lingerMs, pgCtl, ...place }
  const child = spawn(process.execPath, [...entry(), JSON.stringify(orders)], {
    cwd: parse(files.dir).root,
    env: plainEnv(),
    detached: true,
    windowsHide: true,
    stdio: ['pipe', 'pipe', logFd],
  })
  const { stdin, stdout, pid = 0 } = child
  assert(stdin !== null && stdout !== null, 'the guardian has pipes')
  const hold = createHold(() => stdin.destroy())
  stdin.on('error', () => undefined)
  stdin.once('close', hold.lose)
  child.once('exit', hold.lose)
  const listening = new Promise<void>((resolve, reject) => {
    const fail = (why: string): void => {
      timer.cancel()
      reject(new MillraceError('EMBEDDED_FAILED', `the guardian of the embedded PostgreSQL ${why}; see ${files.log}`))
    }
    const timer = systemClock.timer(LISTENING_MAX_MS, () => fail('did not start in time'), { keepAlive: true })
    child.once('error', (error) => fail(`could not be started: ${error.message}`))
    child.once('exit', (code, signal) => fail(`ended at once with ${signal ?? code}`))
    stdout.once('data', () => {
      timer.cancel()
      stdout.destroy()
      child.unref()
      unref(stdin)
      resolve()
    })
  })
  listening.catch(() => undefined) // the caller hears of it when it waits
  return {
    hold,
    listening,
    state: ({ port, pid: postmaster }) => ({ token, guardian: markOf(pid), address: place.address, port, postmaster }),
  }
}

/** Undefined when nobody is there, or it is about to stop. */
export async function holdGuardian({ address, token }: ServerState): Promise<Hold | undefined> {
  const socket = connect(address)
  const hold = createHold(() => socket.destroy())
  const greeting = await new Promise<string>((resolve, reject) => {
    const timer = systemClock.timer(GREETING_MAX_MS, () => resolve(''), { keepAlive: true })
    const settle = (act: () => void): void => {
      timer.cancel()
      act()
    }
    socket.once('data', (data) => settle(() => resolve(data.toString())))
    socket.once('close', () => settle(() => resolve('')))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      const isForbidden = error.code === 'EACCES' || error.code === 'EPERM'
      settle(() => (isForbidden ? reject(forbidden(address, error)) : resolve('')))
    })
  })
  if (greeting.trim() !== token) {
    socket.destroy()
    return undefined
  }
  socket.unref()
  socket.once('close', hold.lose)
  socket.resume()
  if (socket.destroyed) hold.lose()
  return hold
}

function createHold(close: () => void): Hold & { readonly lose: () => void } {
  let state: 'held' | 'lost' | 'released' = 'held'
  const listeners: (() => void)[] = []
  return {
    onLost(listener) {
      if (state === 'lost') listener()
      else listeners.push(listener)
    },
    release() {
      state = 'released'
      close()
    },
    lose() {
      if (state !== 'held') return
      state = 'lost'
      for (const listener of listeners) listener()
    },
  }
}

/** The compiled guardian is plain JavaScript; the source one needs the loader that development uses. */
function entry(): readonly string[] {
  if (!import.meta.url.endsWith('.ts')) return [fileURLToPath(new URL('./guardian.js', import.meta.url))]
  const loader = createRequire(import.meta.url).resolve('tsx')
  return ['--import', loader, fileURLToPath(new URL('./guardian.ts', import.meta.url))]
}

function addressFor(dir: string, token: string): { readonly address: string; readonly addressDir?: string } {
  if (process.platform === 'win32') return { address: `\\\\.\\pipe\\millrace-${token}` }
  const address = join(dir, `${SOCKET_PREFIX}${token}.sock`)
  if (Buffer.byteLength(address) <= SOCKET_PATH_MAX) return { address }
  const addressDir = mkdtempSync(join(tmpdir(), 'millrace-'))
  return { address: join(addressDir, 'guardian.sock'), addressDir }
}

function forbidden(address: string, cause: Error): MillraceError {
  return new MillraceError(
    'EMBEDDED_FAILED',
    `the embedded PostgreSQL was started by another user, who alone may use it (${address}); ` +
      "run all processes as one user, or share a server with `postgres: 'postgres://…'`",
    { cause },
  )
}

/** A pipe to a child is a socket, though its type does not say so. */
function unref(stream: unknown): void {
  ;(stream as { unref?: () => void }).unref?.()
}
