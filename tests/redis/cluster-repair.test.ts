// A Cluster as callers leave it that died between two steps, or whose reply was lost: maintenance, or the repeated call,
// finishes what was begun, and nothing that is only under way is taken for lost. One node, so that the clock is the test's.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { batchFields } from '../../src/backends/redis/batch-fields.ts'
import { batchTag } from '../../src/backends/redis/keys.ts'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import { createStore, prepared } from '../../src/backends/redis/store.ts'
import type { RedisStore } from '../../src/backends/redis/store.ts'
import { decideReplay } from '../../src/core/decide.ts'
import type { BatchId, NewJob } from '../../src/core/job.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { failed } from '../conformance/outcomes.ts'
import { createWorld } from '../conformance/world.ts'
import type { World } from '../conformance/world.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { createTestRedis } from './test-store.ts'
import type { RedisTestStore, TestRedis } from './test-store.ts'

const MINUTE_MS = 60_000
const KEPT = [{ status: 'completed', olderThanMs: 60 * MINUTE_MS }] as const

let cluster: RedisCluster
let redis: TestRedis
let server: RedisTestStore
let world: World
/** The store as a process sees it that dies between two commands. */
let dying: RedisStore

beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 1 })
  redis = await createTestRedis({ clusterUrl: cluster.urls[0]! })
})

afterAll(async () => {
  await redis.close()
  await cluster.stop()
})

beforeEach(async () => {
  server = await redis.create()
  world = createWorld(server.backend, server.clock)
  const { prefix } = server
  const link = createLink({
    server: { cluster: cluster.urls },
    name: 't',
    connectTimeoutMs: 5_000,
    logger: silentLogger,
  })
  await link.connect()
  dying = createStore({ link, prefix, clock: systemClock, logger: silentLogger, clockKey: `${prefix}:clock` })
  return async () => {
    await link.close()
    await server.close()
  }
})

async function aboutBatch(id: BatchId, ...said: readonly (string | number)[]): Promise<unknown> {
  const [what = '', ...values] = said
  return prepared(dying, 'test', 'batchApart')(batchTag(id), [what, id, ...values])
}

const announce = (batch: BatchId, { queue, id }: NewJob) => aboutBatch(batch, 'join', 0, `${queue} ${id}`)
const totalOf = async (id: BatchId) => (await world.batches.get(id))?.counts.total

test('a job that is just joining a batch of yesterday is not taken for one that never came', async () => {
  const batch = await world.batch()
  await world.clock.advance(24 * 60 * MINUTE_MS)
  const job = world.job({ batch })
  await announce(batch, job)
  await world.jobs.prune(KEPT, 100)
  expect(await totalOf(batch)).toBe(1)
  await world.clock.advance(MINUTE_MS - 1)
  // The call is repeated, and has as long as the first.
  await announce(batch, job)
  await world.clock.advance(MINUTE_MS - 1)
  await world.jobs.prune(KEPT, 100)
  expect(await totalOf(batch)).toBe(1)
  await world.accept(job)
  await world.clock.advance(2 * MINUTE_MS)
  await world.jobs.prune(KEPT, 100)
  expect(await totalOf(batch)).toBe(1)
})

test('a job that was announced and never came is dropped after a minute, and its batch finishes', async () => {
  const done = world.job()
  const batch = await world.batch({ callbacks: { complete: done, success: null, failure: null } })
  await announce(batch, world.job({ batch }))
  await world.batches.seal(batch)
  await world.clock.advance(MINUTE_MS)
  await world.jobs.prune(KEPT, 100)
  expect(await world.batches.get(batch)).toMatchObject({ counts: { total: 0, pending: 0 } })
  expect(await world.statusOf(done.id)).toEqual(['queued'])
})

test('two copies of one insert that are under way together make one job, which its batch counts', async () => {
  const batch = await world.batch()
  const job = world.job({ batch })
  await Promise.all([world.jobs.insert([job]), world.jobs.insert([job])])
  expect(await world.statusOf(job.id)).toEqual(['queued'])
  expect(await totalOf(batch)).toBe(1)
})

test('a batch whose creation was cut off is on the list after the repetition, once', async () => {
  const batch = {
    id: world.newId() as string as BatchId,
    name: 'import',
    meta: null,
    callbacks: { complete: null, success: null, failure: null },
  }
  await prepared(dying, 'test', 'batchCreate')(batchTag(batch.id), [batch.id, ...batchFields(batch)])
  expect((await world.batches.list({ limit: 10 })).items).toEqual([])
  await world.batches.create(batch)
  await world.batches.create(batch)
  expect((await world.batches.list({ limit: 10 })).items).toMatchObject([{ id: batch.id }])
})

test('a cancel that was cut off reaches the jobs of the batch by maintenance', async () => {
  const batch = await world.batch()
  const id = await world.addOne({ batch })
  await aboutBatch(batch, 'cancel')
  expect(await world.jobs.due('batch-cancelled', 10)).toEqual([])
  await world.jobs.prune(KEPT, 100)
  expect(await world.jobs.due('batch-cancelled', 10)).toMatchObject([{ job: { id } }])
})

test('a finished batch that was left among the cancelled ones is taken off, and a replayed job of it is not cancelled', async () => {
  const batch = await world.batch()
  const id = await world.addOne({ batch, maxAttempts: 1 })
  await world.batches.seal(batch)
  const worker = await world.worker()
  await world.apply(failed(await worker.claimOne()))
  await world.apply(decideReplay(id, 'ada'))
  await dying.link.command('SADD', dying.keys.cancelledBatches, batch)
  expect(await world.jobs.due('batch-cancelled', 10)).toEqual([])
  expect(await dying.link.command('EXISTS', dying.keys.cancelledBatches)).toBe(0)
})

test('a worker that is dead for a minute and holds nothing leaves nothing in the queues it claimed from', async () => {
  const worker = await world.worker()
  await world.add({}, { queue: 'other' })
  await world.apply(failed(await worker.claimOne()), failed(await worker.claimOne('other')))
  const claims = [dying.keys.queue('mail', 'claims'), dying.keys.queue('other', 'claims')]
  const left = async () => Promise.all(claims.map((key) => dying.link.command('HEXISTS', key, worker.id)))
  await world.workers.retire(worker.id)
  await world.clock.advance(MINUTE_MS - 1)
  await world.jobs.due('expired', 10)
  expect(await left()).toEqual([1, 1])
  await world.clock.advance(1)
  await world.jobs.due('expired', 10)
  expect(await left()).toEqual([0, 0])
  expect(await dying.link.command('ZCARD', dying.keys.dead)).toBe(0)
})
