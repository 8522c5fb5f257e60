// Reports come from a streaming replica, a real one, which may lag or be away; what decides comes from the primary.
import pg from 'pg'
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { Reads } from '../../src/backends/postgres/reads.ts'
import type { Connections } from '../../src/backends/postgres/connections.ts'
import { storeError } from '../../src/backends/postgres/pg-errors.ts'
import { postgres } from '../../src/backends/postgres/backend.ts'
import { createMillrace, defineJob, silentLogger } from '../../src/index.ts'
import type { Logger, RunContext } from '../../src/index.ts'
import { withoutThread } from '../stores/place.ts'
import { freshDatabase } from '../support/postgres-server.ts'
import { startPostgresPair } from '../support/postgres-standby.ts'
import type { PostgresPair } from '../support/postgres-standby.ts'
import { until } from '../support/until.ts'

const count = defineJob({
  name: 'count',
  attempts: 1,
  run({ input }: RunContext<number>) {
    if (input < 0) throw new Error('less than nothing')
    return input
  },
})
let pair: PostgresPair

beforeAll(async () => {
  pair = await startPostgresPair()
}, 180_000)
afterAll(() => pair.stop())

async function setup() {
  const database = await freshDatabase(pair.primary)
  const at = new URL(pair.standby.url)
  at.pathname = database.name
  const said: string[] = []
  const logger: Logger = {
    ...silentLogger,
    warn: (_, message) => void said.push(message),
    info: (_, message) => void said.push(message),
  }
  const own = postgres({ url: database.url, replicaUrl: at.href, poolMax: 4, logger })
  const backend = withoutThread(own)
  const examine = async () => (await own.diagnose()).find(({ name }) => name === 'replica')?.run()
  const mill = await createMillrace({ jobs: [count], backend, logger })
  onTestFinished(async () => {
    await mill.stop({ deadline: 0 })
    // A database that the replica holds back could not be dropped there.
    await onReplica('select pg_wal_replay_resume() where pg_is_in_recovery()')
    await database.drop()
  })
  await pair.caughtUp()
  return { mill, backend, said, examine }
}

async function onReplica(text: string): Promise<readonly Record<string, unknown>[]> {
  const client = new pg.Client(pair.standby.url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}

/** It goes on listening, and shows nothing of it. */
async function holdReplica(): Promise<void> {
  await onReplica('select pg_wal_replay_pause()')
  await until('the replica to stand still', async () => {
    const [row] = await onReplica('select pg_get_wal_replay_pause_state() as state')
    return row?.['state'] === 'paused'
  })
}

test('H6 lists, counts, attempts and logs come from the replica, and what decides from the primary', async () => {
  const { mill, said } = await setup()
  const before = await mill.enqueue(count, 1)
  await pair.caughtUp()
  await holdReplica()
  await mill.work()
  const later = await mill.enqueue(count, 2)
  expect(await later.result()).toBe(2)
  expect(await before.result()).toBe(1)
  expect(await mill.jobs.get(later)).toMatchObject({ status: 'completed' })
  expect((await mill.jobs.list()).items).toMatchObject([{ id: before.id, status: 'queued' }])
  expect(await mill.jobs.counts()).toMatchObject([{ counts: { queued: 1, completed: 0 } }])
  expect(await mill.jobs.attempts(later)).toEqual([])
  expect(await mill.jobs.logs(later)).toEqual([])
  const names = `select application_name as name from pg_stat_activity where application_name like 'millrace%'`
  expect(new Set((await onReplica(names)).map(({ name }) => name))).toEqual(new Set(['millrace reports']))

  await onReplica('select pg_wal_replay_resume()')
  await pair.caughtUp()
  expect((await mill.jobs.list()).items).toHaveLength(2)
  expect(await mill.jobs.attempts(later)).toMatchObject([{ status: 'success' }])
  expect(said.filter((one) => one.includes('replica'))).toEqual([])
})

test('H6 doctor tells how far the replica is behind, and what holds it', { timeout: 60_000 }, async () => {
  const { mill, examine } = await setup()
  expect(await examine()).toMatchObject({ level: 'ok' })
  await holdReplica()
  await mill.enqueue(count, 1)
  const held = await examine()
  expect(held).toMatchObject({ level: 'warn', fix: 'on the replica: select pg_wal_replay_resume()' })
  expect(held?.message).toMatch(/^the replica is [1-9]\d* bytes behind after 3000 ms .* paused/)
  await onReplica('select pg_wal_replay_resume()')
  await pair.caughtUp()
  expect(await examine()).toMatchObject({ level: 'ok' })
  await pair.standby.stop('immediate')
  expect(await examine()).toMatchObject({ level: 'warn', message: expect.stringContaining('does not answer') })
  await pair.standby.start()
})

test('H6 doctor tells a server that is no replica, and looks at none where none is named', async () => {
  const database = await freshDatabase(pair.primary)
  onTestFinished(() => database.drop())
  const own = postgres({ url: database.url, replicaUrl: database.url })
  await own.start()
  const check = (await own.diagnose()).find(({ name }) => name === 'replica')
  expect(await check?.run()).toMatchObject({ level: 'warn', message: expect.stringContaining('no replica') })
  await own.stop()
  const without = await postgres({ url: database.url }).diagnose()
  expect(without.map(({ name }) => name)).not.toContain('replica')
})

test('H6 a batch is cancelled whole, and dead letters are replayed, although the replica lags', async () => {
  const { mill, backend } = await setup()
  await holdReplica()
  const { id } = await mill.enqueueBatch('many', [
    [count, 1, { delay: '1h' }],
    [count, 2, { delay: '1h' }],
  ])
  expect((await mill.jobs.list({ batch: id })).items).toEqual([])
  await mill.batches.cancel(id)
  const page = { limit: 9, isFresh: true }
  expect((await backend.query.list({ status: ['scheduled'] }, page)).items).toEqual([])

  const worker = await mill.work()
  const broken = await mill.enqueue(count, -1)
  await expect(broken.result()).rejects.toMatchObject({ code: 'JOB_FAILED' })
  await worker.stop()
  expect((await mill.deadLetters.list()).items).toEqual([])
  expect(await mill.deadLetters.replayMany({})).toMatchObject({ matched: 1, replayed: 1 })
  expect(await mill.jobs.get(broken)).toMatchObject({ status: 'queued' })
})

test('H6 a replica that is away is warned of once, and used again when it is back', { timeout: 60_000 }, async () => {
  const { mill, said } = await setup()
  const told = (): readonly string[] => said.filter((one) => one.includes('replica'))
  await pair.standby.stop('immediate')
  const { id } = await mill.enqueue(count, 1)
  for (let turn = 0; turn < 3; turn++) expect((await mill.jobs.list()).items).toMatchObject([{ id }])
  expect(await mill.jobs.attempts(id)).toEqual([])
  expect(told()).toEqual(['the replica of PostgreSQL does not answer: reading from the primary'])
  await pair.standby.start()
  await until('the replica to be asked again', async () => {
    await mill.jobs.counts()
    return told().length > 1
  })
  expect(told().slice(1)).toEqual(['the replica of PostgreSQL answers again'])
})

test('H6 a read that the time limit ended on the replica is not made again on the primary', async () => {
  const asked: string[] = []
  const one = (name: string) => ({ name }) as unknown as Connections // only told apart here
  const reads = new Reads({ primary: one('primary'), replica: one('replica'), logger: silentLogger })
  const failing = (sqlState: string) => (connections: Connections) => {
    const { name } = connections as unknown as { readonly name: string } // made above
    asked.push(name)
    if (name === 'primary') return Promise.resolve('answer')
    return Promise.reject(storeError(Object.assign(new Error('no'), { code: sqlState }), 'query.list'))
  }
  await expect(reads.from(failing('57014'))).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
  // In the way of replication: the next one may try again.
  expect(await reads.from(failing('40001'))).toBe('answer')
  expect(await reads.from(failing('57P01'))).toBe('answer')
  expect(await reads.from(failing('57P01'))).toBe('answer')
  expect(asked).toEqual(['replica', 'replica', 'primary', 'replica', 'primary', 'primary'])
})

test('H6 an address that is none is refused before anything starts, by the name of its option', () => {
  const wrong = () => postgres({ url: 'postgres://a@b/c', replicaUrl: 'replica.example.com' })
  expect(wrong).toThrow(/^replicaUrl is not an address/)
})
