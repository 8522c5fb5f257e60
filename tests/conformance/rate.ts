// Rate limits: admission spaces jobs out in advance, the bucket at the start keeps the promise.
import { expect } from 'vitest'
import { rateLimit } from '../../src/core/rate.ts'
import { completed, deferred } from './outcomes.ts'
import { NO_LIMITS, QUEUE } from './world.ts'
import type { Setup, World } from './world.ts'

/** Ten a second, at most two at once. */
const RATE = rateLimit({ limit: 10, per: 1_000, burst: 2 })

export function rate({ test }: Setup): void {
  test('T6 jobs beyond the rate are scheduled for their place in the line', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, rate: RATE } })
    const ids = await world.add({}, {}, {}, {}, {}, {})
    const jobs = await Promise.all(ids.map((id) => world.get(id)))
    expect(jobs[0]).toMatchObject({ waitsFor: null })
    const waits = jobs.filter(({ status }) => status === 'scheduled')
    expect(waits.length).toBeGreaterThanOrEqual(4)
    expect(waits.every(({ waitsFor }) => waitsFor === 'rate')).toBe(true)
    const gaps = waits.slice(1).map(({ runAtMs }, index) => runAtMs - waits[index]!.runAtMs)
    expect(gaps.every((gap) => gap === 100)).toBe(true)
  })

  test('T6 a claimed job of a limited queue or key says that it needs a token', async (world) => {
    await world.queues.configure('whole', { limits: { ...NO_LIMITS, rate: RATE } })
    await world.queues.configure('keys', { limits: { ...NO_LIMITS, perKeyRate: RATE } })
    await world.add(
      { queue: 'whole' },
      { queue: 'keys', limitKey: 'a' },
      { queue: 'keys' },
      { queue: 'free', limitKey: 'a' },
    )
    const runs = await (await world.worker()).claim(10, ['whole', 'keys', 'free'])
    expect(runs.map(({ rateLimited }) => rateLimited)).toEqual([true, true, false, false])
  })

  test('T6 the bucket gives its burst, then one token per interval', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, rate: RATE } })
    const request = { queue: QUEUE, key: null }
    const replies = await world.limits.take([request, request, request])
    expect(replies.map(({ ok }) => ok)).toEqual([true, true, false])
    expect((replies[2] as { waitMs: number }).waitMs).toBeGreaterThan(0)
    await world.clock.advance(100)
    const later = await world.limits.take([request, request])
    expect(later.map(({ ok }) => ok)).toEqual([true, false])
  })

  test('T6 without a limit there is always a token', async (world) => {
    await world.addOne()
    const replies = await world.limits.take(Array.from({ length: 50 }, () => ({ queue: QUEUE, key: 'a' })))
    expect(replies.every(({ ok }) => ok)).toBe(true)
  })

  test('T6 a limited key never blocks others', async (world) => {
    await world.queues.configure(QUEUE, {
      limits: { ...NO_LIMITS, perKeyRate: rateLimit({ limit: 1, per: 1_000, burst: 1 }) },
    })
    const take = (key: string | null) => ({ queue: QUEUE, key })
    const replies = await world.limits.take([take('a'), take('a'), take('b'), take(null), take(null)])
    expect(replies.map(({ ok }) => ok)).toEqual([true, false, true, true, true])
    const ids = await world.add({ limitKey: 'x' }, { limitKey: 'x' }, { limitKey: 'y' }, {})
    expect(await world.statusOf(...ids)).toEqual(['queued', 'scheduled', 'queued', 'queued'])
  })

  test('T6 with a limit on the queue and on the key both must have a token', async (world) => {
    const limits = {
      ...NO_LIMITS,
      rate: rateLimit({ limit: 3, per: 1_000, burst: 3 }),
      perKeyRate: rateLimit({ limit: 1, per: 1_000, burst: 1 }),
    }
    await world.queues.configure(QUEUE, { limits })
    const take = (key: string) => ({ queue: QUEUE, key })
    const replies = await world.limits.take([take('a'), take('a'), take('b'), take('c'), take('d')])
    // The refused second take of `a` must not have used up a token of the queue.
    expect(replies.map(({ ok }) => ok)).toEqual([true, false, true, true, false])
  })

  test('T6 a refused job is deferred without an attempt and comes back in its place', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply(deferred(run, 250))
    expect(await world.get(run.id)).toMatchObject({
      status: 'scheduled',
      waitsFor: 'rate',
      attemptCount: 0,
      runAtMs: world.clock.nowMs() + 250,
    })
  })

  test('T6 starts in any window stay within burst + rate, also after a time without workers', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, rate: RATE } })
    await world.add(...Array.from({ length: 40 }, () => ({})))
    await world.clock.advance(60_000)
    const starts = await startAll(world, 40)
    for (const [index, from] of starts.entries()) {
      for (const windowMs of [0, 100, 500, 1_000]) {
        const inWindow = starts.slice(index).filter((at) => at <= from + windowMs).length
        expect(inWindow).toBeLessThanOrEqual(RATE.burst + (RATE.limit * windowMs) / RATE.perMs)
      }
    }
    expect(starts.at(-1)! - starts[0]!).toBeLessThanOrEqual(8_000)
  })

  test('T6 inspect tells when the next token is there', async (world) => {
    await world.addOne()
    expect((await world.limits.inspect(QUEUE)).nextTokenInMs).toBeNull()
    await world.queues.configure('limited', { limits: { ...NO_LIMITS, rate: RATE } })
    expect((await world.limits.inspect('limited')).nextTokenInMs).toBe(0)
    await world.limits.take([1, 2].map(() => ({ queue: 'limited', key: null })))
    const { nextTokenInMs } = await world.limits.inspect('limited')
    expect(nextTokenInMs).toBe(100)
    await world.clock.advance(60)
    expect((await world.limits.inspect('limited')).nextTokenInMs).toBe(40)
  })
}

/** A worker as the runtime has it: claim, take a token, start or defer. Answers the times of the starts. */
async function startAll(world: World, count: number): Promise<readonly number[]> {
  const worker = await world.worker()
  const starts: number[] = []
  for (let step = 0; step < 2_000 && starts.length < count; step++) {
    await world.jobs.promote(100)
    const runs = await worker.claim(100)
    const replies = await world.limits.take(runs.map(({ queue, limitKey }) => ({ queue, key: limitKey })))
    for (const [index, reply] of replies.entries()) {
      const run = runs[index]!
      if (reply.ok) starts.push(world.clock.nowMs())
      expect(await world.apply(reply.ok ? completed(run) : deferred(run, reply.waitMs))).toEqual(['applied'])
    }
    await world.clock.advance(10)
  }
  expect(starts).toHaveLength(count)
  return starts
}
