// The one PostgreSQL server of a benchmark: version 18 as the tests start it, with an empty data directory and
// the default configuration but for what SETTINGS says.
import { statfsSync } from 'node:fs'
import { Client } from 'pg'
import { startTestPostgres } from '../tests/support/postgres-server.ts'
import { DATABASE_PREFIX } from './database.ts'

const TMPFS_MAGIC = 0x01021994

/** What is not as PostgreSQL ships it. Written down in the report. */
const SETTINGS = {
  /** A new server's first gigabyte of log is two to three times slower to write: segments are made, not reused. */
  min_wal_size: '1GB',
}

/** Without them a server may lose what it acknowledged. */
const REQUIRED = ['fsync', 'synchronous_commit', 'full_page_writes']

export interface BenchServer {
  /** Of the database `postgres`, as superuser. */
  readonly url: string
  /** Of the postmaster. */
  readonly pid: number
  readonly version: string
  /** How it is set up, for the report. */
  readonly notes: readonly string[]
  /** Drops the databases of a measurement and writes everything out, so that the next one starts from rest. */
  clean(): Promise<void>
  /** Who removes the directory of the run stops it with that. */
  forget(): void
}

export async function startPostgres(): Promise<BenchServer> {
  const { url, pid, dataDir } = await startTestPostgres({ version: 18, settings: SETTINGS })
  // Immediate shutdown, for a benchmark that is interrupted; the next run of any kind removes the files.
  const abandon = (): void => void process.kill(pid, 'SIGQUIT')
  process.once('exit', abandon)
  return {
    url,
    pid,
    version: await withClient(url, checkAndWarm),
    notes: notesOf(dataDir),
    clean: () => withClient(url, dropDatabases),
    forget: () => void process.off('exit', abandon),
  }
}

/** Answers the version. */
async function checkAndWarm(client: Client): Promise<string> {
  for (const name of REQUIRED) {
    const { rows } = await client.query<{ setting: string }>('select current_setting($1) as setting', [name])
    if (rows[0]?.setting !== 'on') throw new Error(`the benchmark needs ${name} = on, found ${rows[0]?.setting}`)
  }
  // One gigabyte of log, so that the segments exist which the measurements will reuse.
  await client.query(`create table warm as select i, repeat('x', 200) as body from generate_series(1, 4000000) as i`)
  await client.query('drop table warm')
  await client.query('checkpoint')
  const { rows } = await client.query<{ server_version: string }>('show server_version')
  return rows[0]!.server_version
}

async function dropDatabases(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    'select datname as name from pg_database where starts_with(datname, $1)',
    [DATABASE_PREFIX],
  )
  for (const { name } of rows) await client.query(`drop database ${client.escapeIdentifier(name)} with (force)`)
  await client.query('checkpoint')
}

async function withClient<Value>(url: string, use: (client: Client) => Promise<Value>): Promise<Value> {
  const client = new Client({ connectionString: url })
  await client.connect()
  try {
    return await use(client)
  } finally {
    await client.end()
  }
}

function notesOf(dataDir: string): readonly string[] {
  const changed = Object.entries(SETTINGS).map(([name, value]) => `${name} = ${value}`)
  const isInMemory = statfsSync(dataDir).type === TMPFS_MAGIC
  return [
    `PostgreSQL has its default configuration but for ${changed.join(', ')}; it shares the machine with the clients`,
    ...(isInMemory ? ['its data lies in memory (tmpfs), where fsync costs nothing: set TMPDIR to a real disk'] : []),
  ]
}
