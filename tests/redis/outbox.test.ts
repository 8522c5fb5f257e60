// On a Cluster a tick is two steps: the schedule moves on, then its jobs go in. Whoever dies between them leaves the jobs
// in an outbox, and the next who asks what is due delivers them, once.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { everyRecurrence } from '../../src/core/cron.ts'
import { redis as redisBackend } from '../../src/index.ts'
import { createWorld } from '../conformance/world.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { newName } from './support.ts'

let cluster: RedisCluster

beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 1 })
})
afterAll(() => cluster.stop())

test('T2 the jobs of a tick whose scheduler died after the first step are inserted by the next, once', async () => {
  const prefix = newName()
  const options = { cluster: cluster.urls, prefix }
  const [dying, other] = [redisBackend(options), redisBackend(options)]
  for (const one of [dying, other]) await one.start()
  const world = createWorld(other, { nowMs: () => Date.now(), advance: () => Promise.resolve() })
  const firstRunMs = Date.now() - 1_000
  await dying.schedules.upsert([
    {
      name: 'nightly',
      recurrence: everyRecurrence('1m', 0),
      job: 'report',
      queue: 'mail',
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
      firstRunMs,
    },
  ])
  const job = world.job({ name: 'report', schedule: { name: 'nightly', tickMs: firstRunMs } })
  const reply = await dying.schedules.fire({
    schedule: 'nightly',
    expectedRunMs: firstRunMs,
    nextRunMs: firstRunMs + 60_000,
    jobs: [job],
    unlessLive: false,
  })
  expect(reply).toBe('fired')
  await dying.stop()
  const outbox = `${prefix}:{_schedules}:outbox`
  const node = cluster.nodes[0]!
  // What it leaves behind when it dies between the steps: the entry is there, and the job is not.
  await world.apply({ jobId: job.id, edge: 'remove', guard: { from: ['queued'] }, to: 'cancelled' })
  await node.command('HSET', outbox, `nightly ${firstRunMs}`, JSON.stringify([job]))
  expect(await other.query.get([job.id])).toEqual([null])
  await other.schedules.due(10)
  expect((await other.query.get([job.id]))[0]).toMatchObject({ name: 'report', status: 'queued' })
  expect(await node.command('EXISTS', outbox)).toBe(0)
  await other.schedules.due(10)
  expect((await other.query.list({ schedule: 'nightly' }, { limit: 10 })).items).toHaveLength(1)
  await other.stop()
})
