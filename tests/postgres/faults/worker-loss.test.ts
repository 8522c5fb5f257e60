// Workers that die or freeze while jobs flow. What happens to one killed worker, a blocked loop and a poison job is in
// tests/postgres/features/processes.test.ts.
import { beforeAll, expect, test } from 'vitest'
import { createMillrace } from '../../../src/index.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { useClient, useDatabase } from './databases.ts'
import { createJobs } from './fixtures/jobs.ts'
import { BALANCED, ackedIn, balance, liveJobs, runsIn } from './ledger.ts'
import { useProcesses } from './processes.ts'
import type { FaultProcess } from './processes.ts'
import { until } from './until.ts'

/** Short enough for a test, and long enough for a machine with other things to do. */
const TIMES = { heartbeatMs: 600, ttlMs: 3_000 }
const processes = useProcesses()
const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })
let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

async function idsOf(process: FaultProcess): Promise<readonly string[]> {
  const before = process.said.length
  process.tell('ids')
  const answer = () => process.said.slice(before).find((said) => said.kind === 'ids')
  await until(() => answer() !== undefined, 'its ids')
  return answer()?.ids ?? []
}

test('D4 workers killed with -9 under load lose nothing, and each job succeeds once', { timeout: 60_000 }, async () => {
  const { url } = await useDatabase(server)
  const settings = { url, ...TIMES }
  const producer = await processes.producer({ url })
  const { files } = processes
  await processes.worker(settings)
  for (let round = 0; round < 3; round++) {
    const victim = await processes.worker({ ...settings, concurrency: 20 })
    const before = ackedIn(files.ledger).length
    await until(() => ackedIn(files.ledger).length >= before + 50, 'some jobs')
    victim.signal('SIGKILL')
    await until(() => !victim.isAlive, 'it to be dead')
  }
  expect(await producer.stop()).toBe(0)
  const client = await useClient(url)
  await until(async () => (await liveJobs(client)) === 0, 'everything to drain')
  expect(await balance(client, files)).toMatchObject(BALANCED)
})

test(
  'D1 a worker frozen past its ttl finds its late results refused, begins a new life and goes on',
  { timeout: 60_000 },
  async () => {
    const { url } = await useDatabase(server)
    const { files } = processes
    await using mill = await createMillrace({ jobs, postgres: { url, poolMax: 2 } })
    const frozen = await processes.worker({ url, ...TIMES })
    const [oldId] = await idsOf(frozen)
    const handles = await mill.enqueueMany(Array.from({ length: 5 }, () => ['held', 0] as const))
    const started = (times: number) => () =>
      [...runsIn(files.runs).values()].filter((runs) => runs === times).length === 5
    await until(started(1), 'the first worker to start them')

    frozen.signal('SIGSTOP')
    const other = await processes.worker({ url, ...TIMES })
    await until(started(2), 'the other worker to start them again')
    frozen.signal('SIGCONT')
    await until(() => frozen.count('workerLost') === 1, 'it to notice')
    frozen.tell('go')
    await until(() => frozen.count('stale') === 5, 'its results to be refused')
    const client = await useClient(url)
    expect((await client.query('select count(*)::int from millrace.running')).rows).toEqual([{ count: 5 }])
    other.tell('go')
    await Promise.all(handles.map((handle) => handle.result({ timeout: '20s' })))

    const [newId] = await idsOf(frozen)
    expect(newId).not.toBe(oldId)
    expect(await other.stop()).toBe(0)
    const last = await mill.enqueue('plain', 0)
    await last.result({ timeout: '20s' })
    expect(await mill.jobs.get(last)).toMatchObject({ status: 'completed', worker: newId })
    expect(await balance(client, files)).toMatchObject(BALANCED)
    const { rows } = await client.query(
      'select status, count(*)::int from millrace.job_logs where job_id = any($1) group by 1 order by 1',
      [handles.map(({ id }) => id)],
    )
    expect(rows).toEqual([
      { status: 'expired', count: 5 },
      { status: 'success', count: 5 },
    ])
    expect(await frozen.stop()).toBe(0)
  },
)
