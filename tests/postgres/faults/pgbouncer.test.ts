// Behind PgBouncer in transaction mode, in a version that knows no prepared statements: it refuses our time limits at
// the login, LISTEN hears nothing, and a statement may meet the server session of somebody else.
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { Connections } from '../../../src/backends/postgres/connections.ts'
import { createMillrace, silentLogger } from '../../../src/index.ts'
import { startPgBouncer } from '../../support/pgbouncer.ts'
import type { PgBouncer } from '../../support/pgbouncer.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { useClient, useDatabase } from './databases.ts'
import { createJobs } from './fixtures/jobs.ts'
import { BALANCED, balance, liveJobs } from './ledger.ts'
import { useProcesses } from './processes.ts'
import { until } from './until.ts'

const processes = useProcesses()
let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

async function useBouncer(url: string, poolSize: number): Promise<PgBouncer> {
  const bouncer = await startPgBouncer(url, { poolMode: 'transaction', poolSize })
  onTestFinished(() => bouncer.stop())
  return bouncer
}

test(
  'D2 jobs are enqueued, worked on, retried and completed, and each lack is warned of once',
  { timeout: 60_000 },
  async () => {
    const { url } = await useDatabase(server)
    const bouncer = await useBouncer(url, 5)
    const worker = await processes.worker({ url: bouncer.url })
    const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })
    const warnings: string[] = []
    const logger = { ...silentLogger, warn: (_: object, message: string) => void warnings.push(message) }
    await using mill = await createMillrace({ jobs, postgres: { url: bouncer.url, poolMax: 4 }, logger })
    const lines = Array.from({ length: 200 }, (_, index) => [index % 4 === 0 ? 'flaky' : 'plain', 0] as const)
    const bulk = await mill.enqueueMany(lines.slice(0, 100))
    const single = await Promise.all(lines.slice(100).map(([name, input]) => mill.enqueue(name, input)))

    const client = await useClient(url)
    await until(async () => (await liveJobs(client)) === 0, 'all jobs to end')
    expect(await balance(client, processes.files)).toMatchObject(BALANCED)
    const { rows } = await client.query(
      'select name, status, attempt_count as tries, count(*)::int from millrace.jobs group by 1, 2, 3 order by 1',
    )
    expect(rows).toEqual([
      { name: 'flaky', status: 'completed', tries: 2, count: 50 },
      { name: 'plain', status: 'completed', tries: 1, count: 150 },
    ])
    expect(new Set([...bulk, ...single].map(({ id }) => id)).size).toBe(200)

    // Nobody tells the idle worker of this one: it looks by itself.
    await until(() => worker.warnings(/LISTEN gets no notifications/).length > 0, 'the word about LISTEN')
    const { id } = await mill.enqueue('plain', 0)
    await until(async () => (await mill.jobs.get(id))?.status === 'completed', 'the poll to find a job', {
      limitMs: 5_000,
    })
    for (const warned of [warnings, worker.warnings(/./)]) {
      expect(warned.filter((warning) => /refuses statement_timeout/.test(warning))).toHaveLength(1)
      // Only who meets another session learns of this.
      expect(warned.filter((warning) => /without prepared/.test(warning)).length).toBeLessThanOrEqual(1)
    }
    expect(worker.warnings(/LISTEN/)).toHaveLength(1)
    expect(await worker.stop()).toBe(0)
  },
)

test('D1 a statement of one process is never taken for one of another that shares its server session', async () => {
  const { url } = await useDatabase(server)
  const bouncer = await useBouncer(url, 2)
  const open = (): Connections => {
    const limits = { connectTimeoutMs: 5_000, statementTimeoutMs: 5_000, lockTimeoutMs: 5_000 }
    const names = { url: bouncer.url, applicationName: 'millrace', prepare: true, logger: silentLogger }
    const connections = new Connections({ ...names, ...limits, poolMax: 1 })
    connections.open()
    onTestFinished(() => connections.close().then(() => undefined))
    return connections
  }
  const plusOne = { what: 'plus one', text: 'select $1::int + 1' }
  const timesTen = { what: 'times ten', text: 'select $1::int * 10' }
  const [one, other] = [open(), open()]
  const [first, second] = [await useClient(bouncer.url), await useClient(bouncer.url)]

  // The first statement of each process, on a server session of its own ...
  expect(await one.run(plusOne, [5])).toEqual([['6']])
  await first.query('begin; select 1')
  expect(await other.run(timesTen, [5])).toEqual([['50']])
  // ... and then the other one on the session of the first.
  await second.query('begin; select 1')
  await first.query('commit')
  expect(await other.run(timesTen, [5])).toEqual([['50']])
  await second.query('commit')
})
