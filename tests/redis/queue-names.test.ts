// A queue may have any name: none of its keys is anything else's, whatever the store keeps beside queues.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { redis } from '../../src/backends/redis/backend.ts'
import { everyRecurrence } from '../../src/core/cron.ts'
import type { RedisServer } from '../../src/backends/redis/link.ts'
import { completed } from '../conformance/outcomes.ts'
import { createWorld } from '../conformance/world.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { newName } from './support.ts'

const NAMES = ['workers', 'schedules', 'notes', 'batches', 'queues', 'system', 'bell', 'batch']

let cluster: RedisCluster
beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 3 })
})
afterAll(() => cluster.stop())

const SERVERS: Readonly<Record<string, () => Promise<RedisServer>>> = {
  'one server': async () => ({ url: (await sharedRedis()).url }),
  'a Cluster': () => Promise.resolve({ cluster: cluster.urls }),
}

async function setup(server: RedisServer) {
  const backend = redis({ ...server, prefix: newName() })
  await backend.start()
  const world = createWorld(backend, { nowMs: () => Date.now(), advance: () => Promise.resolve() })
  return { backend, world }
}

test.each(Object.entries(SERVERS))('J5 on %s a queue may be called like anything that is no queue', async (_, find) => {
  const { backend, world } = await setup(await find())
  const batch = await world.batch()
  const names = [...NAMES, `batch:${batch}`]
  const worker = await world.worker()
  for (const [no, name] of names.entries()) {
    const [done, waiting] = await world.add({ queue: name, batch }, { queue: name })
    const [run] = await worker.claim(1, [name])
    expect(run!.id).toBe(done)
    expect(await world.apply(completed(run!))).toEqual(['applied'])
    const listed = await world.query.list({ queue: name }, { limit: 10 })
    expect(listed.items.map(({ id }) => id)).toEqual([waiting, done])
    expect((await world.query.counts(name))[0]!.counts).toMatchObject({ queued: 1, completed: 1 })
    await world.schedules.upsert([schedule(`tick-${no}`, name)])
    await world.notes.put({ space: name, key: 'key', value: String(no) })
  }
  expect((await world.workers.list()).map(({ id }) => id)).toEqual([worker.id])
  expect((await world.schedules.list()).map(({ queue }) => queue)).toEqual(names)
  expect((await world.batches.get(batch))!.counts).toMatchObject({ completed: names.length })
  expect((await world.notes.get(names[0]!, 'key'))!.value).toBe('0')
  expect((await world.query.counts()).map(({ queue }) => queue)).toEqual(names)
  await backend.stop()
})

function schedule(name: string, queue: string) {
  return {
    name,
    recurrence: everyRecurrence('1h', 0),
    job: 'report',
    queue,
    payload: '{}',
    priority: null,
    maxAttempts: null,
    timeoutMs: 1_000,
    tags: [],
    meta: null,
    group: null,
    limitKey: null,
    misfire: 'fire-once',
    overlap: 'allow',
    enabled: true,
    firstRunMs: Date.now() + 3_600_000,
  } as const
}
