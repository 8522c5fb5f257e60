// The quickest way of insert leaves exactly what the usual one leaves, and tells the same: one plain job for a claim that stands.
// That it is taken at all, cost.test.ts counts.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import { LIMITS } from '../../src/core/limits.ts'
import type { HandOver } from '../../src/store/hand-overs.ts'
import type { Backend } from '../../src/store/ports.ts'
import { QUEUE, eventually, queueSettings } from '../conformance/world.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { createTestRedis } from './test-store.ts'
import type { RedisTestStore, TestRedis } from './test-store.ts'

// Names as given.
const WORKER = '00000000-0000-7000-8000-000000000001' as WorkerId
const ID = '00000000-0000-7000-8000-0000000000aa' as JobId
const OTHER = '00000000-0000-7000-8000-0000000000bb' as JobId
const QUEUES = [QUEUE, 'other'] as const

let stores: TestRedis
let client: Redis

beforeAll(async () => {
  client = new Redis((await sharedRedis()).url)
  stores = await createTestRedis()
})

afterAll(async () => {
  await stores.close()
  await client.quit()
})

function newJob(id: JobId, queue: string, fields: Partial<NewJob> = {}): NewJob {
  return { id, queue, name: 'send-welcome', payload: '{"to":"ä@example.com"}', timeoutMs: 30_000, ...fields }
}

interface Found {
  readonly store: RedisTestStore
  readonly heard: readonly HandOver[]
}

/** A worker that stands, in a store where `before` was done, and then the inserts. */
async function standing(
  inserts: readonly (readonly NewJob[])[],
  before: (backend: Backend) => Promise<unknown> = () => Promise.resolve(),
): Promise<Found> {
  const store = await stores.create()
  const { backend } = store
  await backend.queues.ensure(QUEUES.map((name) => queueSettings(name)))
  await backend.workers.register({ id: WORKER, host: 'localhost', pid: 1, queues: QUEUES, concurrency: 10 })
  await before(backend)
  const heard: HandOver[] = []
  await backend.handOvers!.listen(
    WORKER,
    (handOver) => void heard.push(handOver),
    () => undefined,
  )
  const request = { worker: WORKER, claimNo: 1, queues: [QUEUE], limit: LIMITS.claimBatchMax, stands: true }
  expect((await backend.jobs.claim(request)).jobs).toEqual([])
  for (const jobs of inserts) expect((await backend.jobs.insert(jobs)).ok).toBe(true)
  return { store, heard }
}

/** Everything under the prefix, but whose claim has stood. */
async function contents({ prefix }: RedisTestStore): Promise<Readonly<Record<string, unknown>>> {
  const keys = (await client.keys(`${prefix}:*`)).sort()
  const entries = keys.map(async (key) => [key.slice(prefix.length), await valueOf(key)] as const)
  return Object.fromEntries((await Promise.all(entries)).filter(([key]) => !key.endsWith(':parked')))
}

async function valueOf(key: string): Promise<unknown> {
  switch (await client.type(key)) {
    case 'hash':
      return Object.entries(await client.hgetall(key)).sort()
    case 'list':
      return client.lrange(key, 0, -1)
    case 'zset':
      return client.zrange(key, '0', '-1', 'WITHSCORES')
    case 'set':
      return (await client.smembers(key)).sort()
    default:
      return client.get(key)
  }
}

describe('one plain job for a claim that stands', () => {
  test.each([
    ['with the defaults of its queue', {}],
    ['with what it asks for', { priority: 7, maxAttempts: 9, tags: ['a'], meta: '{"m":1}' }],
  ])('%s leaves the same, and tells the same, by both ways', async (_, fields) => {
    const [job, other] = [newJob(ID, QUEUE, fields), newJob(OTHER, 'other')]
    // Two queues in one call are too much for the quickest way.
    const [quick, usual] = [await standing([[job], [other]]), await standing([[job, other]])]
    await eventually(() => quick.heard.length > 0 && usual.heard.length > 0, 'both messages')
    expect(quick.heard).toEqual(usual.heard)
    expect(quick.heard).toMatchObject([{ claimNo: 1, before: 0, jobs: [{ id: ID, ...fields }] }])
    expect(await contents(quick.store)).toEqual(await contents(usual.store))
    await Promise.all([quick.store.close(), usual.store.close()])
  })

  test('is left to the usual way where the job is there already', async () => {
    const { store, heard } = await standing([], async (backend) => {
      await backend.jobs.insert([newJob(ID, QUEUE, { delayMs: 60_000 })])
    })
    expect(await store.backend.jobs.insert([newJob(ID, QUEUE)])).toEqual({
      ok: true,
      results: [{ id: ID, outcome: 'already' }],
    })
    expect([heard, (await store.backend.query.get([ID]))[0]?.status]).toEqual([[], 'scheduled'])
    await store.close()
  })

  test('is not handed over after a look', async () => {
    const { store, heard } = await standing([])
    await store.backend.jobs.holdings(WORKER, 2)
    await store.backend.jobs.insert([newJob(ID, QUEUE)])
    expect([heard, (await store.backend.query.get([ID]))[0]?.status]).toEqual([[], 'queued'])
    await store.close()
  })
})
