// A Postgres store for suites that want an empty one for every test, with a clock that stands still until a test
// moves it. One database per file, emptied between tests: making it anew would take 30 times as long. A backend
// that keeps no jobs of its own is kept from test to test too: the first calls of a connection take longer than most tests.
import pg from 'pg'
import { postgres } from '../../src/backends/postgres/backend.ts'
import type { PostgresOptions } from '../../src/backends/postgres/backend.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { isMillraceError } from '../../src/core/errors.ts'
import type { WorkerId } from '../../src/core/job.ts'
import type { Backend } from '../../src/store/ports.ts'
import type { TestStore } from '../conformance/suite.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { PostgresVersion } from '../support/postgres-server.ts'
import { alternating } from './alternating.ts'

export interface TestDatabaseOptions {
  readonly version: PostgresVersion
  /** Backends that take turns behind the one that a test sees. Default 1. */
  readonly instances?: number
  /** Another backend over this database than PostgreSQL alone. */
  readonly make?: (options: PostgresOptions) => Backend
}

export interface TestDatabase {
  /** An empty store, its clock at the start. The one before must be closed. */
  create(): Promise<TestStore>
  close(): Promise<void>
}

/** An hour that is full: times in failing tests are easy to read. */
const START_MS = Date.UTC(2030, 0, 1, 12)
/** Enough to run calls at once. A connection costs 15 ms of server time before its first answers; 20 cost more than most tests. */
const POOL_MAX = 4
const LISTEN_MAX_MS = 10_000

export async function createTestDatabase({
  version,
  instances = 1,
  make = postgres,
}: TestDatabaseOptions): Promise<TestDatabase> {
  const database = await freshDatabase(await sharedPostgres(version))
  const { url } = database
  const migrator = createMigrator({ url })
  await migrator.up()
  await migrator.close()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  // What these suites test is not what survives a crash: here, and only here, a commit need not wait for the disk.
  await client.query(`alter database ${database.name} set synchronous_commit = off`)
  await client.query(CLOCK_AND_BROOM)

  const isKept = make === postgres
  let round = 0
  let kept: Backend | undefined
  let opened: Backend[] = []

  const open = async (poolMax: number): Promise<Backend> => {
    const backend = make({ url, poolMax, applicationName: `test ${round}` })
    await backend.start()
    opened.push(backend)
    return backend
  }

  async function openSeveral(): Promise<Backend> {
    const name = `test ${round} listen`
    const first = await open(1)
    const others = await Promise.all(Array.from({ length: instances - 1 }, () => open(1)))
    return alternating([first, ...others], () => untilListening(client, name, instances))
  }

  return {
    async create() {
      let nowMs = START_MS
      round += 1
      await client.query('select millrace.test_begin($1)', [nowMs])
      kept ??= instances === 1 ? await open(POOL_MAX) : await openSeveral()
      const backend = kept
      const clock = {
        nowMs: () => nowMs,
        async advance(ms: number) {
          nowMs += ms
          await client.query('update millrace.test_clock set now_ms = $1', [nowMs])
        },
      }
      const close = async (): Promise<void> => {
        if (isKept && (await signOff(opened, client))) return
        // Starts are counted, and a test may have started it again; a surplus stop changes nothing.
        await backend.stop()
        await backend.stop()
        kept = undefined
        opened = []
      }
      return { backend, clock, close }
    },
    async close() {
      await kept?.stop()
      await kept?.stop()
      await client.end()
      await database.drop()
    },
  }
}

/** Every worker has a connection of its own, in each backend that it went through. False: a test has stopped them. */
async function signOff(backends: readonly Backend[], client: pg.Client): Promise<boolean> {
  const { rows } = await client.query<{ id: WorkerId }>('select id from millrace.workers')
  try {
    for (const backend of backends) {
      await backend.queues.get('any')
      for (const { id } of rows) await backend.workers.retire(id)
    }
    return true
  } catch (error) {
    if (isMillraceError(error, 'STOPPED')) return false
    throw error
  }
}

async function untilListening(client: pg.Client, name: string, wanted: number): Promise<void> {
  const untilMs = performance.now() + LISTEN_MAX_MS
  for (let count = 0; count < wanted;) {
    if (performance.now() > untilMs) throw new Error(`${count} of ${wanted} backends listen after ${LISTEN_MAX_MS} ms`)
    const { rows } = await client.query<{ count: number }>(
      `select count(*)::int as count from pg_stat_activity
       where application_name = $1 and query like 'listen %' and state = 'idle'`,
      [name],
    )
    count = rows[0]?.count ?? 0
    if (count < wanted) await new Promise((resolve) => setTimeout(resolve, 3))
  }
}

const CLOCK_AND_BROOM = `
  create table millrace.test_clock (now_ms float8 not null);
  insert into millrace.test_clock values (0);
  create or replace function millrace.now_at() returns timestamptz language sql volatile
    as $$ select to_timestamp(now_ms / 1000) from millrace.test_clock $$;
  create function millrace.test_begin(at_ms float8) returns void language plpgsql as $$
  declare
    name text;
  begin
    for name in
      select c.relname from pg_class c where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r'
        and c.relname not in ('test_clock', 'schema_migrations', 'schema_functions')
      -- A queue that has jobs cannot be deleted.
      order by c.relname = 'job_queues'
    loop
      execute format('delete from millrace.%I', name);
    end loop;
    update millrace.test_clock set now_ms = at_ms;
  end $$`
