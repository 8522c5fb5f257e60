// What lists and bounded passes must not get wrong: entries that jobs left behind, limits set over many ready jobs, lanes
// that move, listings that outlive what they listed.
import { Redis } from 'ioredis'
import { afterAll, afterEach, beforeAll, describe, expect, test } from 'vitest'
import { redisKeys } from '../../src/backends/redis/keys.ts'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import { after, createWorld, NO_LIMITS, QUEUE, unique } from '../conformance/world.ts'
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

/** What is said on the bell while something is done. */
async function bellDuring(prefix: string, act: () => Promise<void>): Promise<readonly string[]> {
  const ear = client.duplicate()
  const { bell } = redisKeys(prefix)
  const heard: string[] = []
  await ear.subscribe(bell)
  const ended = new Promise<void>((resolve) => {
    ear.on('message', (_, message) => (message === 'end' ? resolve() : heard.push(...message.split('\n'))))
  })
  await act()
  await client.publish(bell, 'end')
  await ended
  ear.disconnect()
  return heard
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

  test('ends of one call that are alike, and those that are not, are written for every job of every queue', async () => {
    const world = await setup()
    const queues = [QUEUE, 'post']
    const ids = await world.add(...queues.flatMap((queue) => many(6, { queue })))
    const worker = await world.worker()
    const runs = await worker.claim(20, queues)
    const ends = runs.map((run, at) => completed(run, at % 6 === 4 ? `"${at}"` : null, at % 6 === 5 ? 70 : 5))
    expect(new Set(await world.apply(...ends))).toEqual(new Set(['applied']))
    const found = await world.query.get(ids)
    expect(found.map((job) => job!.finishedAtMs! - job!.startedAtMs!)).toEqual(ends.map(({ ranMs }) => ranMs))
    expect(found.map((job) => job!.result)).toEqual(ends.map(({ result }) => result ?? null))
    for (const job of found) {
      expect(await client.hgetall(redisKeys(world.prefix).job(job!.queue, job!.id))).toMatchObject({
        status: 'completed',
        attempt: '1',
        worker: worker.id,
      })
    }
    expect(new Set(await world.apply(...ends))).toEqual(new Set(['already']))
    expect(await client.keys(`${world.prefix}:*:ending`)).toEqual([])
  })

  test('jobs that are returned in one call stand again as they stood, whatever the order of the call', async () => {
    const world = await setup()
    const ids = await world.add(...many(5))
    const worker = await world.worker()
    const runs = await worker.claim(3)
    await world.apply(...[runs[1]!, runs[2]!, runs[0]!].map(returned))
    expect(await world.drain(worker)).toEqual(ids)
  })

  test('and so do jobs that did not come in the order of their ids', async () => {
    const world = await setup()
    const [first, second, third] = [world.newId(), world.newId(), world.newId()]
    const ids = await world.add({ id: third }, { id: first }, { id: second })
    const worker = await world.worker()
    const runs = await worker.claim(3)
    expect(new Set(runs.map(({ lease }) => lease)).size).toBe(3)
    await world.apply(...runs.toReversed().map(returned))
    expect(await world.drain(worker)).toEqual(ids)
  })

  test('a plain job that others came to wait for while it waited is claimed as what it is', async () => {
    const world = await setup()
    const [before, parent, behind] = await world.add({}, {}, {})
    const child = await world.addOne({ dependsOn: [after(parent!)] })
    const worker = await world.worker()
    const runs = await worker.claim(10)
    expect(runs.map(({ id }) => id)).toEqual([before, parent, behind])
    expect(await world.statusOf(parent!, child)).toEqual(['running', 'blocked'])
    await world.apply(...runs.map((run) => completed(run)))
    expect(await world.statusOf(parent!, child)).toEqual(['completed', 'queued'])
    expect(await client.hexists(redisKeys(world.prefix).queue(QUEUE, 'lanes'), 'stale')).toBe(0)
    expect(await world.drain(worker)).toEqual([child])
  })

  test('the same job, cancelled before its claim, leaves one entry to be passed over', async () => {
    const world = await setup()
    const [parent, other] = await world.add({}, {})
    await world.addOne({ dependsOn: [after(parent!)] })
    await world.apply(decideCancel(parent!, 'no')[0])
    expect(await client.hget(redisKeys(world.prefix).queue(QUEUE, 'lanes'), 'stale')).toBe('1')
    expect((await (await world.worker()).claim(10)).map(({ id }) => id)).toEqual([other])
  })

  test('and passes through a change of limits as any other', async () => {
    const world = await setup()
    const [parent, other] = await world.add({}, {})
    const child = await world.addOne({ dependsOn: [after(parent!)] })
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 1 } })
    expect(await client.hget(redisKeys(world.prefix).queue(QUEUE, 'lanes'), 'stale')).toBe('0')
    expect(await world.drain(await world.worker())).toEqual([parent, other, child])
  })

  test('one claim looks at a bounded number of entries that were left behind, and rings so that the next one follows', async () => {
    const world = await setup()
    const ids = await world.add(...many(2_500))
    await world.apply(...ids.slice(0, 1_000).map((id) => decideCancel(id, 'no')[0]))
    await world.apply(...ids.slice(1_000, 2_000).map((id) => decideCancel(id, 'no')[0]))
    await world.apply(...ids.slice(2_000, 2_499).map((id) => decideCancel(id, 'no')[0]))
    const worker = await world.worker()
    for (const [found, isRung] of [
      [[], true],
      [[], true],
      [[ids[2_499]], false],
    ] as const) {
      const rung = await bellDuring(world.prefix, async () => {
        expect((await worker.claim(100)).map(({ id }) => id)).toEqual(found)
      })
      expect(rung.includes('ready:mail')).toBe(isRung)
    }
    expect(await client.hexists(redisKeys(world.prefix).queue(QUEUE, 'lanes'), 'stale')).toBe(0)
  })

  test('a job whose entry is not where it should be still starts once', async () => {
    const world = await setup()
    const keys = redisKeys(world.prefix)
    const id = await world.addOne(unique('a', { onDuplicate: 'replace' }))
    // As if a change of lanes had gone by: its entry is in another one.
    await client.lmove(keys.queue(QUEUE, 'normal'), keys.queue(QUEUE, 'low'), 'LEFT', 'LEFT')
    await world.accept({ ...unique('a', { onDuplicate: 'replace' }), priority: 10 })
    const worker = await world.worker()
    expect((await worker.claim(10)).map((run) => run.id)).toEqual([id])
    expect(await worker.claim(10)).toEqual([])
  })

  test('a job whose body was deleted by hand is not handed out, and does not keep others from running', async () => {
    const world = await setup()
    const keys = redisKeys(world.prefix)
    const [torn, other] = await world.add({}, {})
    await client.hdel(keys.queue(QUEUE, 'jobs'), Buffer.from(torn!.replaceAll('-', ''), 'hex'))
    expect((await (await world.worker()).claim(10)).map(({ id }) => id)).toEqual([other])
    expect(await client.hlen(keys.queue(QUEUE, 'running'))).toBe(1)
    expect((await world.query.counts(QUEUE))[0]!.counts).toMatchObject({ queued: 0, running: 1 })
  })

  test('what ended later than its successors by a step of the clock is pruned when its time comes', async () => {
    const world = await setup()
    const ids = await world.add(...many(4))
    const worker = await world.worker()
    const runs = await worker.claim(4)
    await world.apply(completed(runs[0]!))
    await world.clock.advance(50_000)
    await world.apply(completed(runs[1]!))
    await world.clock.advance(-50_000)
    await world.apply(completed(runs[2]!), completed(runs[3]!))
    await world.clock.advance(10_000)
    const prune = () => world.jobs.prune([{ status: 'completed', olderThanMs: 10_000 }], 100)
    expect(await prune()).toBe(3)
    expect(await world.statusOf(...ids)).toEqual(['gone', 'completed', 'gone', 'gone'])
    await world.clock.advance(50_000)
    expect(await prune()).toBe(1)
    expect(await client.exists(redisKeys(world.prefix).queue(QUEUE, 'ended:completed'))).toBe(0)
  })

  test('a store that lost its latest writes mints no lease that somebody holds', async () => {
    const world = await setup()
    const id = await world.addOne()
    const run = await (await world.worker()).claimOne()
    // Everything but the clock is gone, and the same request comes again.
    const lost = (await client.keys(`${world.prefix}:*`)).filter((key) => !key.endsWith(':clock'))
    await client.unlink(...lost)
    const other = await world.worker()
    await world.clock.advance(1)
    await world.accept({ id })
    const again = await other.claimOne()
    expect(again.lease).toBeGreaterThan(run.lease)
    expect(await world.apply(completed(run))).toEqual(['stale'])
    expect(await world.apply(completed(again))).toEqual(['applied'])
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
