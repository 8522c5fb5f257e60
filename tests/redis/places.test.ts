// What lists and bounded passes must not get wrong: entries that jobs left behind, limits set over many ready jobs, lanes
// that move, listings that outlive what they listed.
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { redisKeys } from '../../src/backends/redis/keys.ts'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import { createWorld, NO_LIMITS, QUEUE } from '../conformance/world.ts'
import type { World } from '../conformance/world.ts'
import { completed, returned } from '../conformance/outcomes.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { createTestRedis } from './test-store.ts'
import type { TestRedis } from './test-store.ts'

let server: TestRedis
let client: Redis
let end = async (): Promise<void> => undefined

beforeAll(async () => {
  server = await createTestRedis()
  client = new Redis((await sharedRedis()).url)
})

afterAll(async () => {
  await server.close()
  await client.quit()
})

afterEach(() => end())

async function setup(): Promise<World & { readonly prefix: string }> {
  const { backend, clock, close, prefix } = await server.create()
  end = close
  return { ...createWorld(backend, clock), prefix }
}

const many = (count: number, fields = {}) => Array.from({ length: count }, () => fields)

describe('places', () => {
  test('a limit set over more ready jobs than one pass takes holds, and all of them run in their order', async () => {
    const world = await setup()
    const ids = await world.add(...many(2_500))
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 3 } })
    while ((await world.jobs.promote(1_000)).promoted > 0);
    expect(await world.limits.inspect(QUEUE)).toMatchObject({ slotsUsed: 3, waiting: 2_497 })
    const late = await world.addOne()
    const worker = await world.worker()
    const started: string[] = []
    for (let runs = await worker.claim(10); runs.length > 0; runs = await worker.claim(10)) {
      expect(runs.length).toBeLessThanOrEqual(3)
      started.push(...runs.map(({ id }) => id))
      await world.apply(...runs.map((run) => completed(run)))
    }
    expect(started).toEqual([...ids, late])
  })

  test('ready jobs move with the lanes of their queue', async () => {
    const world = await setup()
    await world.queues.configure(QUEUE, { lowerLaneShare: 0 })
    const [low, normal] = await world.add({ priority: 200 }, { priority: 100 })
    await world.queues.configure(QUEUE, { lanes: [10, 50] })
    const high = await world.addOne({ priority: 60 })
    expect(await world.drain(await world.worker())).toEqual([normal, low, high])
  })

  test('cancelled and deleted jobs are passed over, and what is behind them is found by the same claim', async () => {
    const world = await setup()
    const ids = await world.add(...many(300))
    const gone = ids.slice(0, 200)
    await world.apply(...gone.slice(0, 100).map((id) => decideCancel(id, 'no')[0]))
    await world.apply(...gone.slice(100).map((id) => decideRemove(id)[0]))
    const runs = await (await world.worker()).claim(100)
    expect(runs.map(({ id }) => id)).toEqual(ids.slice(200))
    expect((await world.query.counts(QUEUE))[0]?.counts).toMatchObject({ queued: 0, running: 100, cancelled: 100 })
  })

  test('jobs that are returned in one call stand again as they stood, whatever the order of the call', async () => {
    const world = await setup()
    const ids = await world.add(...many(5))
    const worker = await world.worker()
    const runs = await worker.claim(3)
    await world.apply(...runs.map(returned))
    expect(await world.drain(worker)).toEqual(ids)
  })

  test('a listing forgets what was pruned and keeps a job that outlives thousands of others', async () => {
    const world = await setup()
    const old = await world.addOne({ delayMs: 1_000_000 })
    const worker = await world.worker()
    for (let round = 0; round < 4; round++) {
      await world.add(...many(1_000))
      const runs = await worker.claim(1_000)
      await world.apply(...runs.map((run) => completed(run)))
    }
    const kept = await world.addOne()
    while ((await world.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 1_000)) > 0);
    for (let pass = 0; pass < 5; pass++) await world.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 1_000)
    expect((await world.query.list({}, { limit: 10 })).items.map(({ id }) => id)).toEqual([kept, old])
    expect(await client.llen(redisKeys(world.prefix).queue(QUEUE, 'all'))).toBeLessThanOrEqual(1_010)
  })
})
