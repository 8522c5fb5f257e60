// A PostgreSQL server and a standby that follows it, real processes on loopback. The standby begins with a base backup
// where the server has pg_basebackup (Debian's 15), else with a copy of the stopped server, which nobody uses yet. It is
// asynchronous unless the settings say otherwise, so a promotion may lose what was committed.
import { execFileSync } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, chownSync, existsSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { chooseServerUser, spawnAs } from '../../src/backends/embedded/server-user.ts'
import { openServer, startTestPostgres } from './postgres-server.ts'
import type { PostgresVersion, TestPostgres } from './postgres-server.ts'
import { runDirectory } from './run-directory.ts'
import { until } from './until.ts'

export interface PostgresPair {
  readonly primary: TestPostgres
  readonly standby: PostgresStandby
  /** Resolves when the standby has applied everything that the primary has committed. */
  caughtUp(): Promise<void>
  stop(): Promise<void>
}

export interface PostgresStandby extends TestPostgres {
  /** It hears nothing more and keeps what it has: commits from now on are lost by a promotion. */
  cut(): Promise<void>
  /** It takes writes when this resolves. */
  promote(): Promise<void>
}

/** For `synchronous_standby_names`. */
export const STANDBY_NAME = 'standby'

const PROMOTE_MAX_S = 20

export interface PairOptions {
  /** Default 15. */
  readonly version?: PostgresVersion
  /** Of the primary. Default: a free one. */
  readonly port?: number
}

/** Settings of both, as in postgresql.conf. */
export async function startPostgresPair(
  settings: Readonly<Record<string, string>> = {},
  { version = 15, port }: PairOptions = {},
): Promise<PostgresPair> {
  const primary = await startTestPostgres({ version, settings, ...(port !== undefined && { port }) })
  try {
    const standby = await startStandby(primary, settings)
    return {
      primary,
      standby,
      caughtUp: () => caughtUp(primary, standby),
      async stop() {
        await Promise.all([primary.stop('immediate'), standby.stop('immediate')])
      },
    }
  } catch (error) {
    await primary.stop('immediate')
    throw error
  }
}

async function startStandby(
  primary: TestPostgres,
  settings: Readonly<Record<string, string>>,
): Promise<PostgresStandby> {
  const { version } = primary
  const home = mkdtempSync(join(await runDirectory(), `pg${version}-standby-`))
  chmodSync(home, 0o755)
  const all = { max_connections: '100', ...settings }
  const server = await openServer(version, home, all, (data) => copyOf(primary, data))
  const standby: PostgresStandby = {
    ...server,
    // A restart changes it.
    get pid() {
      return server.pid
    },
    async cut() {
      await run(server.url, `alter system set primary_conninfo = ''`)
      await run(server.url, 'select pg_reload_conf()')
      await until('the standby to stop listening', async () => {
        const rows = await run(server.url, 'select pid from pg_stat_wal_receiver where pid is not null')
        return rows.length === 0
      })
    },
    async promote() {
      const [row] = await run(server.url, `select pg_promote(true, ${PROMOTE_MAX_S}) as done`)
      if (row?.['done'] !== true) throw new Error(`the standby is not promoted within ${PROMOTE_MAX_S} s`)
    },
  }
  await caughtUp(primary, standby)
  return standby
}

/** A copy that knows whom to follow. Answers the file with the password, which is that of the primary. */
async function copyOf(primary: TestPostgres, data: string): Promise<string> {
  const { hostname, port, username, password } = new URL(primary.url)
  const source = `host=${hostname} port=${port} user=${username} password=${password} application_name=${STANDBY_NAME}`
  if (existsSync(join(primary.binDir, 'pg_basebackup'))) await copyRunning(primary, data, source)
  else await copyStopped(primary, data, source)
  const passwordFile = join(dirname(data), 'password')
  writeFileSync(passwordFile, `${password}\n`, { mode: 0o600 })
  return passwordFile
}

async function copyStopped(primary: TestPostgres, data: string, source: string): Promise<void> {
  await primary.stop()
  execFileSync('cp', ['-a', primary.dataDir, data])
  appendFileSync(join(data, 'postgresql.auto.conf'), `primary_conninfo = '${source}'\n`)
  writeFileSync(join(data, 'standby.signal'), '')
  await primary.start()
}

async function copyRunning(primary: TestPostgres, data: string, source: string): Promise<void> {
  const user = chooseServerUser(primary.dataDir, [primary.binDir])
  mkdirSync(data, { mode: 0o700 })
  if (user !== undefined) chownSync(data, user.uid, user.gid)
  const how = ['--checkpoint=fast', '--wal-method=stream', '--write-recovery-conf', '--no-sync']
  const child = spawnAs(user, join(primary.binDir, 'pg_basebackup'), ['-D', data, '-d', source, ...how], {
    stdio: ['ignore', 'ignore', 'pipe'],
  })
  let said = ''
  child.stderr?.on('data', (chunk: Buffer) => (said += chunk.toString()))
  const [code] = (await once(child, 'close')) as [number | null] // its exit code comes first
  if (code !== 0) throw new Error(`pg_basebackup failed (${code}): ${said}`)
}

async function caughtUp(primary: TestPostgres, standby: TestPostgres): Promise<void> {
  const [row] = await run(primary.url, 'select pg_current_wal_flush_lsn()::text as lsn')
  const isThere = `select coalesce(pg_last_wal_replay_lsn() >= '${String(row?.['lsn'])}', false) as is_there`
  await until('the standby to have what its primary has', async () => {
    const [answer] = await run(standby.url, isThere)
    return answer?.['is_there'] === true
  })
}

async function run(url: string, statement: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(url)
  client.on('error', () => undefined) // the statement that fails says it too
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(statement)).rows
  } finally {
    await client.end()
  }
}
