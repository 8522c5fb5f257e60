// A PgBouncer in front of a test server, as many hosts of PostgreSQL have one.
import { randomBytes } from 'node:crypto'
import { chmodSync, chownSync, closeSync, mkdtempSync, openSync, readFileSync, writeFileSync } from 'node:fs'
import { connect } from 'node:net'
import { join } from 'node:path'
import { isRunning } from '../../src/backends/embedded/processes.ts'
import { chooseServerUser, spawnAs } from '../../src/backends/embedded/server-user.ts'
import { freePort } from '../../src/backends/embedded/start-postmaster.ts'
import { ensureDebianPackage } from './debian-package.ts'
import { runDirectory } from './run-directory.ts'

export interface PgBouncerOptions {
  readonly poolMode: 'session' | 'transaction' | 'statement'
  /** Connections to the server per database. Default 20. */
  readonly poolSize?: number
}

export interface PgBouncer {
  /** The same database, through the pool. */
  readonly url: string
  readonly port: number
  readonly pid: number
  readonly logFile: string
  stop(): Promise<void>
}

const PROGRAM = '/usr/sbin/pgbouncer'
const READY_MAX_MS = 10_000
const POLL_MS = 10

export async function startPgBouncer(target: string, options: PgBouncerOptions): Promise<PgBouncer> {
  ensureDebianPackage({ name: 'pgbouncer', program: PROGRAM })
  const home = mkdtempSync(join(await runDirectory(), `bouncer-${randomBytes(3).toString('hex')}-`))
  chmodSync(home, 0o755)
  const user = chooseServerUser(join(home, 'data'), [])
  const port = await freePort()
  const files = configure(home, new URL(target), port, options)
  if (user !== undefined) for (const path of [home, ...files]) chownSync(path, user.uid, user.gid)

  const logFile = join(home, 'pgbouncer.log')
  const logFd = openSync(logFile, 'a')
  const child = spawnAs(user, PROGRAM, [join(home, 'pgbouncer.ini')], {
    stdio: ['ignore', logFd, logFd],
    detached: true,
  })
  closeSync(logFd)
  const { pid = 0 } = child
  child.on('error', () => undefined) // seen as not running below
  child.unref()
  await poll(
    () => accepts(port),
    () => isRunning(pid),
    logFile,
  )

  const url = new URL(target)
  url.hostname = '127.0.0.1'
  url.port = String(port)
  return {
    url: url.href,
    port,
    pid,
    logFile,
    async stop() {
      // SIGTERM ends it at once; SIGINT would wait for its clients.
      if (isRunning(pid)) child.kill('SIGTERM')
      await poll(
        () => Promise.resolve(!isRunning(pid)),
        () => true,
        logFile,
      )
    },
  }
}

function configure(home: string, target: URL, port: number, options: PgBouncerOptions): readonly string[] {
  const ini = join(home, 'pgbouncer.ini')
  const users = join(home, 'users.txt')
  const settings = {
    listen_addr: '127.0.0.1',
    listen_port: port,
    unix_socket_dir: '',
    auth_type: 'scram-sha-256',
    auth_file: users,
    pidfile: join(home, 'pgbouncer.pid'),
    pool_mode: options.poolMode,
    default_pool_size: options.poolSize ?? 20,
    max_client_conn: 200,
    ignore_startup_parameters: 'extra_float_digits',
  }
  const lines = Object.entries(settings).map(([name, value]) => `${name} = ${value}`)
  writeFileSync(ini, `[databases]\n* = host=127.0.0.1 port=${target.port}\n\n[pgbouncer]\n${lines.join('\n')}\n`)
  const [name, password] = [target.username, target.password].map(decodeURIComponent)
  writeFileSync(users, `"${name}" "${password}"\n`, { mode: 0o600 })
  return [ini, users]
}

async function poll(isDone: () => Promise<boolean>, mayGoOn: () => boolean, logFile: string): Promise<void> {
  const deadlineMs = performance.now() + READY_MAX_MS
  while (!(await isDone())) {
    if (!mayGoOn() || performance.now() > deadlineMs) {
      throw new Error(`pgbouncer failed; its log ends with:\n${readFileSync(logFile, 'utf8').slice(-2_000)}`)
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS))
  }
}

function accepts(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1')
    socket.once('connect', () => {
      socket.destroy()
      resolve(true)
    })
    socket.once('error', () => resolve(false))
  })
}
