// A Cluster at its limit of memory: what is there is settled with all that hangs on it on other nodes, requests to cancel
// arrive, and a message that cannot be delivered takes nothing from the caller whose change it follows from.
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest'
import { decideCancel } from '../../../src/core/decide.ts'
import { completed } from '../../conformance/outcomes.ts'
import { after, createWorld } from '../../conformance/world.ts'
import type { World } from '../../conformance/world.ts'
import { startRedisCluster } from '../../support/redis-cluster.ts'
import type { RedisCluster } from '../../support/redis-cluster.ts'
import { createTestRedis } from '../test-store.ts'
import type { TestRedis } from '../test-store.ts'

let cluster: RedisCluster
let redis: TestRedis
let world: World

beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 1 })
  redis = await createTestRedis({ clusterUrl: cluster.urls[0]! })
})

afterAll(async () => {
  await redis.close()
  await cluster.stop()
})

beforeEach(async () => {
  const store = await redis.create()
  world = createWorld(store.backend, store.clock)
  return async () => {
    await setMemory('0')
    await store.close()
  }
})

async function setMemory(max: string): Promise<void> {
  await cluster.nodes[0]!.command('CONFIG', 'SET', 'maxmemory', max)
}

test('D1 on a Cluster at the limit of memory children, batches and requests to cancel still hear of it', async () => {
  const worker = await world.worker()
  const batch = await world.batch()
  const [parent, other] = await world.add({ batch }, { batch })
  const child = await world.addOne({ queue: 'later', dependsOn: [after(parent!)] })
  await world.batches.seal(batch)
  const [run, asked] = await worker.claim(2)
  await setMemory('1')
  await expect(world.jobs.insert([world.job()])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await world.apply(...decideCancel(other!, 'no'))
  expect((await world.beat(worker.id)).cancels).toEqual([{ jobId: asked!.id, lease: asked!.lease }])
  expect(await world.apply(completed(run!))).toEqual(['applied'])
  expect((await world.batches.get(batch))?.counts).toMatchObject({ pending: 1, completed: 1 })
  expect(await world.statusOf(child)).toEqual(['queued'])
  await world.apply(completed(asked!))
  expect((await world.batches.get(batch))?.finishedAtMs).not.toBeNull()
})

test('D1 on a Cluster at the limit of memory a batch can be cancelled', async () => {
  const batch = await world.batch()
  const id = await world.addOne({ batch })
  await setMemory('1')
  expect(await world.batches.cancel(batch)).toBe(true)
  expect(await world.jobs.due('batch-cancelled', 10)).toMatchObject([{ job: { id } }])
})

test('D1 on a Cluster a callback that finds no room waits, and takes neither the claim nor the messages behind it along', async () => {
  const worker = await world.worker()
  const done = world.job({ queue: 'later' })
  const batch = await world.batch({ callbacks: { complete: done, success: null, failure: null } })
  const [first, parent, next] = await world.add({ batch }, {}, {})
  const child = await world.addOne({ queue: 'later', dependsOn: [after(parent!)] })
  await world.batches.seal(batch)
  const [run, before] = await worker.claim(2)
  expect(run!.id).toBe(first)
  await setMemory('1')
  const reply = await worker.ask({ settle: [completed(run!), completed(before!)] })
  expect(reply.verdicts).toEqual(['applied', 'applied'])
  expect(reply.jobs.map(({ id }) => id)).toEqual([next])
  expect(await world.statusOf(done.id, child)).toEqual(['gone', 'queued'])
  await world.jobs.promote(10)
  expect(await world.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 100)).toBe(2)
  await setMemory('0')
  await world.jobs.promote(10)
  expect(await world.statusOf(done.id)).toEqual(['queued'])
})
