// Reading at a size where it matters: many queues, long listings, filters that match little, entries that were set aside.
import { Redis } from 'ioredis'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { EDGES } from '../../src/core/edges.ts'
import type { JobId, NewJob, StoredJob } from '../../src/core/job.ts'
import type { JobFilter, Page } from '../../src/store/job-query.ts'
import { completed, failed } from '../conformance/outcomes.ts'
import { createWorld } from '../conformance/world.ts'
import type { World } from '../conformance/world.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { createTestRedis } from './test-store.ts'
import type { RedisTestStore, TestRedis } from './test-store.ts'

let redis: TestRedis
let world: World
let store: RedisTestStore

beforeAll(async () => {
  redis = await createTestRedis()
})
beforeEach(async () => {
  store = await redis.create()
  world = createWorld(store.backend, store.clock)
  return () => store.close()
})
afterAll(() => redis.close())

async function pages(filter: JobFilter, limit: number): Promise<readonly Page<StoredJob>[]> {
  const found: Page<StoredJob>[] = []
  let cursor: string | undefined
  do {
    const page: Page<StoredJob> = await world.query.list(filter, { limit, ...(cursor !== undefined && { cursor }) })
    found.push(page)
    cursor = page.nextCursor
  } while (cursor !== undefined && found.length < 1_000)
  return found
}

const idsOf = (all: readonly Page<StoredJob>[]): readonly JobId[] =>
  all.flatMap(({ items }) => items.map(({ id }) => id))

async function fill(count: number, field: (no: number) => Partial<NewJob> = () => ({})): Promise<readonly JobId[]> {
  const ids: JobId[] = []
  for (let at = 0; at < count; at += 1_000) {
    const jobs = Array.from({ length: Math.min(1_000, count - at) }, (_, no) => field(at + no))
    ids.push(...(await world.add(...jobs)))
  }
  return ids
}

describe('a listing', () => {
  test('over many queues is newest first, complete, and none is repeated, whatever comes meanwhile', async () => {
    const ids: JobId[] = []
    for (let no = 0; no < 60; no++) {
      ids.push(await world.addOne({ queue: `q${no % 23}` }))
      await world.clock.advance(1)
    }
    const first = await world.query.list({}, { limit: 25 })
    await fill(5, (no) => ({ queue: `q${no}` }))
    await world.addOne({ queue: 'new' })
    const rest = []
    for (let cursor = first.nextCursor; cursor !== undefined;) {
      const page = await world.query.list({}, { limit: 7, cursor })
      rest.push(...page.items)
      cursor = page.nextCursor
    }
    expect([...first.items, ...rest].map(({ id }) => id)).toEqual(ids.toReversed())
  })

  test('with a filter that matches little does bounded work per page, and finds everything', async () => {
    const ids = await fill(21_000, (no) => (no % 7_000 === 3 ? { tags: ['rare'] } : {}))
    const found = await pages({ tag: 'rare' }, 50)
    expect(idsOf(found)).toEqual([ids[14_003], ids[7_003], ids[3]])
    expect(found.length).toBeGreaterThan(1)
    expect(found.length).toBeLessThan(5)
  })

  test('of dead letters does not walk past all the others', async () => {
    const worker = await world.worker()
    await world.addOne({ maxAttempts: 1 })
    await world.addOne({ queue: 'other', maxAttempts: 1 })
    const runs = [await worker.claimOne(), await worker.claimOne('other')]
    await world.apply(...runs.map((run) => failed(run)))
    await fill(12_000)
    const found = await pages({ status: ['failed'] }, 1)
    expect(idsOf(found)).toEqual(runs.map(({ id }) => id).toReversed())
    expect(found).toHaveLength(2)
  })

  test('goes on where it was when jobs before it are gone', async () => {
    const ids = await fill(300)
    const worker = await world.worker()
    const first = await world.query.list({}, { limit: 100 })
    const runs = await worker.claim(150)
    await world.apply(...runs.map((run) => completed(run)))
    await world.clock.advance(1_000)
    const rules = [{ status: 'completed', olderThanMs: 0 }] as const
    while ((await world.jobs.prune(rules, 1_000)) > 0);
    const rest = await world.query.list({}, { limit: 200, cursor: first.nextCursor! })
    expect(rest.items.map(({ id }) => id)).toEqual(ids.slice(150, 200).toReversed())
    expect(rest.nextCursor).toBeUndefined()
  })

  test('still finds a job that outlived thousands around it', async () => {
    const [old] = await fill(1, () => ({ delayMs: 10_000_000 }))
    const worker = await world.worker()
    for (let round = 0; round < 4; round++) {
      await fill(1_000)
      await world.apply(...(await worker.claim(1_000)).map((run) => completed(run)))
    }
    await world.clock.advance(1_000)
    const rules = [{ status: 'completed', olderThanMs: 0 }] as const
    for (let round = 0; round < 20; round++) await world.jobs.prune(rules, 1_000)
    const [young] = await fill(1)
    expect(idsOf(await pages({}, 1))).toEqual([young, old])
    expect(idsOf(await pages({ name: 'send-welcome' }, 50))).toEqual([young, old])
  })

  test('refuses a cursor that it never gave', async () => {
    for (const cursor of ['', '17', 'w1;2', 'ix', `i${'0'.repeat(35)}`]) {
      await expect(world.query.list({}, { limit: 5, cursor })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    }
  })
})

describe('by id', () => {
  test('jobs are found in whatever queue they are, also by a process that has never seen them', async () => {
    const ids = await fill(400, (no) => ({ queue: `q${no % 40}` }))
    const asked = [...ids, world.newId(), ids[0]!]
    const here = await world.query.get(asked)
    expect(here.map((job) => job?.id ?? null)).toEqual([...ids, null, ids[0]])
    const stranger = await store.another()
    expect((await stranger.query.get(asked)).map((job) => job?.id ?? null)).toEqual([...ids, null, ids[0]])
    expect(await stranger.query.attempts(ids[7]!)).toEqual([])
    await stranger.stop()
  })
})

describe('a job that was removed', () => {
  const remove = (id: JobId) =>
    world.apply({ jobId: id, edge: 'remove', guard: { from: EDGES.remove.from }, to: 'cancelled' })

  test('and inserted again with its id is listed once, page by page, at its new place', async () => {
    const id = await world.addOne()
    const others = await fill(3)
    for (let life = 0; life < 3; life++) {
      await remove(id)
      await world.addOne({ id })
    }
    for (const limit of [1, 2, 50]) expect(idsOf(await pages({}, limit))).toEqual([id, ...others.toReversed()])
  })

  test('leaves nothing behind when its entry has had its turn', async () => {
    const [id, stays] = await fill(2)
    await remove(id!)
    await world.addOne({ id: id! })
    const look = new Redis((await sharedRedis()).url)
    const gone = `${store.prefix}:{mail}:all:gone`
    expect(await look.exists(gone)).toBe(1)
    await remove(stays!)
    await world.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 1_000)
    expect(idsOf(await pages({}, 1))).toEqual([id])
    await remove(id!)
    await world.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 1_000)
    expect(await look.exists(gone)).toBe(0)
    await look.quit()
  })
})
