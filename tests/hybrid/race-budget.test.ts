// What the race costs: commands per job (those inside scripts count), and memory per token.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { Lane } from '../../src/core/priority.ts'
import type { Token } from '../../src/backends/hybrid/ports.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { QUEUE, connectRace, openRace, passed, push, session } from './race-setup.ts'
import type { RedisRace } from './race-setup.ts'

/** A token of a plain job, as token-text.ts writes it, with a payload of 200 bytes. */
const BODY = `100 0 0 3 300000 1794756943897 0 0 - send-mail {"x":"${'y'.repeat(192)}"}`
/** Measured with Redis 7.0: 415 waiting, 143 in flight. So a full window of 100 000 tokens takes some 42 MB. */
const TOKEN_BYTES_MAX = 450
const ROUNDS = 20

let server: RedisProcess
let redis: RedisRace
let epoch = 0
let lease = 1_000_000

beforeAll(async () => {
  server = await startRedis()
  redis = await connectRace({ url: server.url })
})

afterAll(async () => {
  await redis.race.stop()
  await server.stop()
})

describe('commands', () => {
  test.each([
    [16, 0.94],
    [100, 0.15],
    [1_000, 0.015],
  ])('push, take and settle of %i jobs per call: %d per job', async (batch, most) => {
    expect(await commandsPerJob(batch, () => 1)).toBeLessThanOrEqual(most)
  })

  test('with all lanes in use: at most 1 per job from 20 jobs per call up', async () => {
    expect(await commandsPerJob(20, (at) => (at % 3) as Lane)).toBeLessThanOrEqual(1)
  })

  async function commandsPerJob(batch: number, laneOf: (at: number) => Lane): Promise<number> {
    const tag = await openRace(redis.race, ++epoch)
    // So that lanes are never empty, and no take parks.
    for (let at = 0; at < 3; at++) await push(redis.race, tag, made(batch, laneOf))
    let done = await takeAll(tag, 1, batch, [])
    const before = await commandCount()
    for (let c = 2; c < ROUNDS + 2; c++) {
      await push(redis.race, tag, made(batch, laneOf))
      done = await takeAll(tag, c, batch, done)
      expect(done).toHaveLength(batch)
    }
    // The question is a command too.
    return ((await commandCount()) - before - 1) / (ROUNDS * batch)
  }

  async function takeAll(tag: string, c: number, most: number, done: readonly string[]): Promise<readonly string[]> {
    const reply = passed(await redis.race.take(QUEUE, tag, { session: session('worker'), c, most, done }))
    return reply.kind === 'taken' ? reply.texts.map((text) => text.slice(0, text.indexOf(' '))) : []
  }

  async function commandCount(): Promise<number> {
    const stats = String(await redis.link.command('INFO', 'commandstats'))
    return [...stats.matchAll(/:calls=(\d+)/g)].reduce((sum, [, calls]) => sum + Number(calls), 0)
  }
})

describe('memory', () => {
  test(`a token of a 200-byte payload takes at most ${TOKEN_BYTES_MAX} bytes, waiting or in flight`, async () => {
    const count = 10_000
    const tag = await openRace(redis.race, ++epoch)
    const empty = await used()
    for (let at = 0; at < count; at += 1_000)
      await push(
        redis.race,
        tag,
        made(1_000, () => 1),
      )
    const waiting = ((await used()) - empty) / count
    for (let c = 1; c <= count / 1_000; c++) {
      passed(await redis.race.take(QUEUE, tag, { session: session(randomUUID()), c, most: 1_000, done: [] }))
    }
    const inFlight = ((await used()) - empty) / count
    expect(waiting).toBeLessThanOrEqual(TOKEN_BYTES_MAX)
    // The text is gone; the name of the session came.
    expect(inFlight).toBeLessThan(waiting)
  })

  async function used(): Promise<number> {
    return (await redis.race.memory()).used
  }
})

function made(count: number, laneOf: (at: number) => Lane): Token[] {
  return Array.from({ length: count }, (_, at) => {
    lease += 1
    return { lane: laneOf(at), lease, text: `${randomUUID()}:${lease} ${BODY}` }
  })
}
