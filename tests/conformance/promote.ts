// Time: scheduled jobs stay where they are until a promotion at or after their moment.
import { expect } from 'vitest'
import { LIMITS } from '../../src/core/limits.ts'
import { dump } from './dump.ts'
import { completed, retried, snoozed } from './outcomes.ts'
import { QUEUE } from './world.ts'
import type { Setup } from './world.ts'

export function promote({ test }: Setup): void {
  test('T1 a delayed job becomes ready by a promotion at its time, not before', async (world) => {
    const id = await world.addOne({ delayMs: 1_000 })
    await world.clock.advance(999)
    expect(await world.jobs.promote(10)).toEqual({ promoted: 0, nextDueInMs: 1 })
    expect(await world.statusOf(id)).toEqual(['scheduled'])
    await world.clock.advance(1)
    expect(await world.jobs.promote(10)).toEqual({ promoted: 1, nextDueInMs: null })
    expect(await world.get(id)).toMatchObject({ status: expect.stringMatching(/queued|dispatched/), waitsFor: null })
  })

  test('T1 a scheduled job is never claimed', async (world) => {
    await world.addOne({ delayMs: 1_000 })
    expect(await (await world.worker()).claim()).toEqual([])
  })

  test('T1 promotion goes in bounded batches, earliest first', async (world) => {
    const ids = await world.add({ delayMs: 300 }, { delayMs: 100 }, { delayMs: 200 }, { delayMs: 900 })
    await world.clock.advance(500)
    expect(await world.jobs.promote(2)).toEqual({ promoted: 2, nextDueInMs: 0 })
    expect(await world.statusOf(...ids)).toEqual(['scheduled', 'queued', 'queued', 'scheduled'])
    expect(await world.jobs.promote(2)).toEqual({ promoted: 1, nextDueInMs: 400 })
    expect(await world.drain(await world.worker())).toEqual([ids[1], ids[2], ids[0]])
  })

  test('T1 jobs with and without a group become ready in the order of their times', async (world) => {
    const ids = await world.add(
      { delayMs: 100 },
      { delayMs: 200, group: 'g' },
      { delayMs: 300 },
      { delayMs: 400, group: 'h' },
    )
    await world.clock.advance(500)
    expect((await world.jobs.promote(10)).promoted).toBe(4)
    expect(await world.drain(await world.worker())).toEqual(ids)
  })

  test('T1 promoting when nothing is due changes nothing', async (world) => {
    await world.add({ delayMs: 100 }, {})
    const before = await dump(world.backend)
    expect((await world.jobs.promote(10)).promoted).toBe(0)
    expect(await dump(world.backend)).toEqual(before)
  })

  test('T1 retries and snoozes wait in the same place and come back', async (world) => {
    await world.add({}, {})
    const worker = await world.worker()
    const [one, two] = await worker.claim(2)
    await world.apply(retried(one!, 200), snoozed(two!, 100))
    expect((await world.jobs.promote(10)).nextDueInMs).toBe(100)
    await world.clock.advance(200)
    await world.jobs.promote(10)
    expect(await world.drain(worker)).toEqual([two!.id, one!.id])
  })

  test('T1 a job that is cancelled while scheduled is not promoted', async (world) => {
    const id = await world.addOne({ delayMs: 100 })
    await world.apply({ jobId: id, edge: 'cancel', guard: { from: ['scheduled'] }, to: 'cancelled' })
    await world.clock.advance(100)
    expect(await world.jobs.promote(10)).toEqual({ promoted: 0, nextDueInMs: null })
  })

  test('T1 many future jobs are not in the way of those that are ready', async (world) => {
    await world.add(...Array.from({ length: 5_000 }, (_, index) => ({ delayMs: 60_000 + index, priority: 0 })))
    const ready = await world.addOne()
    expect(await world.drain(await world.worker())).toEqual([ready])
    expect((await world.query.counts(QUEUE))[0]?.counts.scheduled).toBe(5_000)
  })

  test('T1 a flood that is due at one moment is promoted batch by batch, none lost', async (world) => {
    await world.add(...Array.from({ length: 2_500 }, () => ({ delayMs: 100 })))
    await world.clock.advance(100)
    const promoted = []
    for (let round = 0; round < 3; round++)
      promoted.push((await world.jobs.promote(LIMITS.maintenanceBatchMax)).promoted)
    expect(promoted).toEqual([1_000, 1_000, 500])
  })

  test('T1 promotions at once promote each job once', async (world) => {
    await world.add(...Array.from({ length: 60 }, () => ({ delayMs: 100 })))
    await world.clock.advance(100)
    const replies = await Promise.all(Array.from({ length: 6 }, () => world.jobs.promote(15)))
    expect(replies.reduce((sum, { promoted }) => sum + promoted, 0)).toBe(60)
    expect(new Set(await world.drain(await world.worker())).size).toBe(60)
  })

  test('times are those of the store: every stamp is its clock at the moment of the change', async (world) => {
    const id = await world.addOne()
    const enqueuedAtMs = world.clock.nowMs()
    const worker = await world.worker()
    await world.clock.advance(100)
    const run = await worker.claimOne()
    await world.clock.advance(50)
    await world.apply(completed(run, null, 50))
    expect(await world.get(id)).toMatchObject({
      enqueuedAtMs,
      startedAtMs: enqueuedAtMs + 100,
      finishedAtMs: enqueuedAtMs + 150,
      updatedAtMs: enqueuedAtMs + 150,
    })
  })
}
