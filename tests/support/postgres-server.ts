// Real PostgreSQL servers for tests: version 18 from the embedded package, version 15 from Debian. `sharedPostgres` is
// one per version and test run; `startTestPostgres` is one's own, for tests that stop, kill or configure it. With
// TEST_POSTGRES=15 in the environment, everything that asks for 18 gets 15.
import { execFileSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chmodSync, existsSync, mkdirSync, mkdtempSync, readFileSync, renameSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { findBinaries } from '../../src/backends/embedded/binaries.ts'
import type { Binaries } from '../../src/backends/embedded/binaries.ts'
import { ensureCluster, readPassword } from '../../src/backends/embedded/cluster.ts'
import { ROLE } from '../../src/backends/embedded/files.ts'
import type { Files } from '../../src/backends/embedded/files.ts'
import { tryLock } from '../../src/backends/embedded/lock.ts'
import { findPostmaster, stopPostmaster } from '../../src/backends/embedded/postmaster.ts'
import type { ShutdownMode } from '../../src/backends/embedded/postmaster.ts'
import { openLog } from '../../src/backends/embedded/server-log.ts'
import { chooseServerUser } from '../../src/backends/embedded/server-user.ts'
import { startPostmaster } from '../../src/backends/embedded/start-postmaster.ts'
import { ensureDebianPackage } from './debian-package.ts'
import { runDirectory } from './run-directory.ts'

export type PostgresVersion = 15 | 18

export interface PostgresServer {
  readonly version: PostgresVersion
  /** Of the database `postgres`, as superuser. */
  readonly url: string
  readonly port: number
  readonly dataDir: string
  readonly pid: number
}

export interface TestPostgres extends PostgresServer {
  readonly binDir: string
  readonly logFile: string
  /** Keeps the data; `start` goes on with it, on the same port. */
  stop(mode?: ShutdownMode): Promise<void>
  start(): Promise<void>
  restart(mode: ShutdownMode): Promise<void>
}

export interface TestPostgresOptions {
  readonly version: PostgresVersion
  /** As in postgresql.conf; `max_connections` is 100 and `fsync` is on unless they say otherwise. */
  readonly settings?: Readonly<Record<string, string>>
  /** Default: a free one. */
  readonly port?: number
}

const START_MAX_MS = 60_000
const POLL_MS = 20
const DEBIAN_15 = '/usr/lib/postgresql/15/bin'

/** Its data is removed at the end of the run. */
export async function startTestPostgres(options: TestPostgresOptions): Promise<TestPostgres> {
  const { settings = {} } = options
  const version = chosen(options.version)
  const home = mkdtempSync(join(await runDirectory(), `pg${version}-`))
  chmodSync(home, 0o755)
  // Where a server looks for the port that it had before.
  if (options.port !== undefined) writeFileSync(join(home, 'port'), `${options.port}\n`)
  return await openServer(version, home, { max_connections: '100', ...settings })
}

/** The server of this run, started by the first who asks. Leave it as it is: others use it. */
export async function sharedPostgres(asked: PostgresVersion): Promise<PostgresServer> {
  const version = chosen(asked)
  const home = join(await runDirectory(), `shared-${version}`)
  return await oncePerRun(
    home,
    () => readShared(home),
    async () => {
      mkdirSync(home, { recursive: true })
      const { url, port, dataDir, pid } = await openServer(version, home, { max_connections: '100' })
      const shared: PostgresServer = { version, url, port, dataDir, pid }
      writeFileSync(join(home, 'server.json.new'), JSON.stringify(shared))
      renameSync(join(home, 'server.json.new'), join(home, 'server.json'))
      return shared
    },
  )
}

export interface FreshDatabase {
  readonly name: string
  readonly url: string
  drop(): Promise<void>
}

/**
 * An empty database, or a copy of `template`, to which nobody may be connected. Through the log, because a copy of the
 * files needs checkpoints: 86, 95 and 23 ms against 177, 78 and 48 ms, medians of three rounds on a busy machine.
 */
export async function freshDatabase(server: PostgresServer, template = 'template0'): Promise<FreshDatabase> {
  const name = `test_${randomBytes(6).toString('hex')}`
  await runAsAdmin(server, `create database ${name} template ${pg.escapeIdentifier(template)} strategy wal_log`)
  const url = new URL(server.url)
  url.pathname = name
  return {
    name,
    url: url.href,
    drop: () => runAsAdmin(server, `drop database if exists ${name} with (force)`),
  }
}

async function runAsAdmin({ url }: PostgresServer, statement: string): Promise<void> {
  const client = new pg.Client(url)
  client.on('error', () => undefined) // the statement that fails says it too
  await client.connect()
  try {
    await client.query(statement)
  } finally {
    await client.end()
  }
}

/** `makeData` fills a directory that is not there yet, and answers the file with the password. */
export async function openServer(
  version: PostgresVersion,
  home: string,
  settings: Readonly<Record<string, string>>,
  makeData = (data: string): Promise<string> => copyCluster(version, data),
): Promise<TestPostgres> {
  const binaries = await binariesOf(version)
  const data = join(home, 'data')
  const password = await makeData(data)
  const log = join(home, 'server.log')
  const files: Files = { dir: home, data, log, password, port: join(home, 'port'), state: '', lock: '' }

  async function launch(): Promise<{ readonly pid: number; readonly port: number }> {
    const user = chooseServerUser(data, [dirname(binaries.postgres)])
    const opened = openLog(log, user)
    const deadlineMs = performance.now() + START_MAX_MS
    try {
      return await startPostmaster({ files, postgres: binaries.postgres, user, log: opened, deadlineMs, settings })
    } finally {
      opened.close()
    }
  }

  async function stop(mode: ShutdownMode = 'fast'): Promise<void> {
    if (!(await stopPostmaster(data, { mode }))) throw new Error(`the server on ${data} does not stop`)
  }

  async function start(): Promise<void> {
    if (findPostmaster(data) !== undefined) return
    server = await launch()
    if (server.port !== port) throw new Error(`port ${port} was taken while the server was down`)
  }

  let server = await launch()
  const { port } = server
  return {
    version,
    url: `postgres://${ROLE}:${readPassword(password)}@127.0.0.1:${port}/postgres`,
    port,
    dataDir: data,
    binDir: dirname(binaries.postgres),
    logFile: log,
    get pid() {
      return server.pid
    },
    stop,
    start,
    async restart(mode) {
      await stop(mode)
      await start()
    },
  }
}

function chosen(version: PostgresVersion): PostgresVersion {
  return process.env['TEST_POSTGRES'] === '15' ? 15 : version
}

async function binariesOf(version: PostgresVersion): Promise<Binaries> {
  if (version === 18) return await findBinaries()
  ensureDebianPackage({ name: 'postgresql', program: join(DEBIAN_15, 'postgres') })
  return { initdb: join(DEBIAN_15, 'initdb'), postgres: join(DEBIAN_15, 'postgres') }
}

/** The data of a server that never ran: initdb once per version and run, then copies. Answers the file with the password. */
export async function copyCluster(version: PostgresVersion, data: string): Promise<string> {
  const binaries = await binariesOf(version)
  const home = join(await runDirectory(), `template-${version}`)
  const password = join(home, 'password')
  const template = join(home, 'made')
  const find = (): true | undefined => (existsSync(template) ? true : undefined)
  await oncePerRun(home, find, async () => {
    mkdirSync(home, { recursive: true })
    const user = chooseServerUser(template, [dirname(binaries.postgres)])
    const log = openLog(join(home, 'initdb.log'), user)
    await ensureCluster({ data: template, password, binaries, user, log }).finally(() => log.close())
    return true
  })
  execFileSync('cp', ['-a', template, data])
  return password
}

/** What the first maker makes; the others wait for it. */
export async function oncePerRun<Value>(
  path: string,
  find: () => Value | undefined,
  make: () => Promise<Value>,
): Promise<Value> {
  const deadlineMs = performance.now() + START_MAX_MS
  while (performance.now() < deadlineMs) {
    const found = find()
    if (found !== undefined) return found
    const lock = tryLock(`${path}.lock`)
    if (lock === undefined) {
      await new Promise((resolve) => setTimeout(resolve, POLL_MS))
      continue
    }
    try {
      return find() ?? (await make())
    } finally {
      lock.release()
    }
  }
  throw new Error(`nobody made ${path} within ${START_MAX_MS} ms`)
}

function readShared(home: string): PostgresServer | undefined {
  const path = join(home, 'server.json')
  if (!existsSync(path) || findPostmaster(join(home, 'data')) === undefined) return undefined
  return JSON.parse(readFileSync(path, 'utf8')) as PostgresServer // written by sharedPostgres
}
