// Workers on Redis: how long the dead are remembered, and the heartbeat that a thread makes over a connection of its own.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createBeat } from '../../src/backends/redis/beat.ts'
import { redis as redisBackend } from '../../src/backends/redis/backend.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { failed } from '../conformance/outcomes.ts'
import { createWorld } from '../conformance/world.ts'
import type { World } from '../conformance/world.ts'
import { newName, until, useRedis } from './support.ts'
import { createTestRedis } from './test-store.ts'
import type { RedisTestStore, TestRedis } from './test-store.ts'

const HOUR_MS = 60 * 60_000

describe('the dead', () => {
  let redis: TestRedis
  let store: RedisTestStore
  let world: World

  beforeAll(async () => {
    redis = await createTestRedis()
  })
  beforeEach(async () => {
    store = await redis.create()
    world = createWorld(store.backend, store.clock)
    return () => store.close()
  })
  afterAll(() => redis.close())

  const known = async (): Promise<readonly WorkerId[]> => (await world.workers.list()).map(({ id }) => id)

  test('are told of for an hour, and forgotten by the next that comes', async () => {
    const gone = await world.worker()
    await world.workers.send(gone.id, { kind: 'quiet' })
    await world.workers.retire(gone.id)
    await world.jobs.due('expired', 10)
    await store.clock.advance(HOUR_MS - 1)
    await world.worker()
    expect(await known()).toContain(gone.id)
    await store.clock.advance(2)
    await world.worker()
    expect(await known()).not.toContain(gone.id)
  })

  test('are not forgotten while a job of theirs is not settled', async () => {
    await world.addOne()
    const gone = await world.worker()
    const run = await gone.claimOne()
    await world.kill(gone)
    await store.clock.advance(2 * HOUR_MS)
    await world.worker()
    expect(await known()).toContain(gone.id)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([run.id])
    await world.apply(failed(run))
    expect(await world.jobs.due('expired', 10)).toEqual([])
    await world.worker()
    expect(await known()).not.toContain(gone.id)
  })

  test('a worker hears at most the last hundred commands', async () => {
    const { id } = await world.worker()
    for (let no = 0; no < 105; no++) await world.workers.send(id, { kind: no % 2 === 0 ? 'quiet' : 'resume' })
    const { commands } = await world.beat(id)
    expect(commands.map(({ no }) => no)).toEqual(Array.from({ length: 100 }, (_, index) => index + 6))
  })
})

describe('the heartbeat of a thread', () => {
  const redis = useRedis()

  test('has a connection of its own, comes back after a restart, and ends with the thread', async () => {
    const server = await redis.server()
    const [prefix, name] = [newName(), newName()]
    const backend = redisBackend({ url: server.url, prefix })
    await backend.start()
    redis.onEnd(() => backend.stop())
    const id = 'w1' as WorkerId
    await backend.workers.register({ id, host: 'h', pid: 1, queues: [], concurrency: 1 })
    const options = { server: { url: server.url }, prefix, name, connectTimeoutMs: 2_000 }
    const thread = await createBeat(structuredClone(options))
    const request = { id, running: 3, commandsSeen: 0, blockedMs: 120.4 }
    expect(await thread.beat(request)).toEqual({ alive: true, cancels: [], commands: [] })
    expect(await backend.workers.list()).toMatchObject([{ id, beat: 1, running: 3, blockedMs: 120 }])
    const clients = async (): Promise<boolean> =>
      String(await server.command('CLIENT', 'LIST')).includes(`name=${name}`)
    expect(await clients()).toBe(true)
    await server.restart()
    await until(
      () =>
        thread.beat(request).then(
          ({ alive }) => alive,
          () => false,
        ),
      'a beat after the restart',
    )
    await thread.close()
    expect(await clients()).toBe(false)
  })

  test('fails with a typed error where there is no server', async () => {
    const thread = await createBeat({
      server: { url: 'redis://127.0.0.1:1' },
      prefix: 'p',
      name: 'n',
      connectTimeoutMs: 500,
    })
    const request = { id: 'w' as WorkerId, running: 0, commandsSeen: 0 }
    await expect(thread.beat(request)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
    await thread.close()
  })
})
