// Concurrency limits, per queue and per key, kept by admission.
import { expect } from 'vitest'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import { completed, deferred, expired, failed, released, retried, returned, snoozed } from './outcomes.ts'
import { NO_LIMITS, QUEUE } from './world.ts'
import type { Setup, World } from './world.ts'

const limit = (world: World, concurrency: number | null) =>
  world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency } })
const limitKeys = (world: World, perKeyConcurrency: number) =>
  world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, perKeyConcurrency } })

export function slots({ test }: Setup): void {
  test('T6 a queue admits no more jobs than it has slots', async (world) => {
    await limit(world, 2)
    const ids = await world.add({}, {}, {})
    expect(await world.statusOf(...ids)).toEqual(['queued', 'queued', 'blocked'])
    expect((await world.get(ids[2]!)).waitsFor).toBe('queue-slot')
    const worker = await world.worker()
    const [first] = await worker.claim(10)
    await world.apply(completed(first!))
    expect((await worker.claim(10)).map(({ id }) => id)).toEqual([ids[2]])
  })

  test('T6 waiters are admitted by priority, then in order', async (world) => {
    await limit(world, 1)
    const [running, late, urgent, late2] = await world.add({}, { priority: 120 }, { priority: 5 }, { priority: 120 })
    expect(await world.drain(await world.worker())).toEqual([running, urgent, late, late2])
  })

  test('T6 a slot is given back when a run ends for good or is put off', async (world) => {
    await limit(world, 1)
    const worker = await world.worker()
    const endings = [
      completed,
      failed,
      (run: Run) => retried(run, 900),
      (run: Run) => snoozed(run, 900),
      (run: Run) => deferred(run, 900),
    ]
    for (const end of [...endings, (run: Run) => expired(run, 900)]) {
      const [head, next] = await world.add({}, {})
      const run = await worker.claimOne()
      expect(run.id).toBe(head)
      expect(await world.statusOf(next!)).toEqual(['blocked'])
      await world.apply(end(run))
      expect(await world.statusOf(next!)).toEqual(['queued'])
      await world.drain(worker)
    }
  })

  test('T6 a returned job keeps its slot', async (world) => {
    await limit(world, 1)
    const [head, next] = await world.add({}, { priority: 1 })
    await world.apply(returned(await (await world.worker()).claimOne()))
    expect(await world.statusOf(head!, next!)).toEqual(['queued', 'blocked'])
  })

  test('T6 a job that is released, retried or expired at once lets a waiter go first', async (world) => {
    await limit(world, 1)
    const worker = await world.worker()
    for (const again of [released, retried, expired]) {
      const [head, next] = await world.add({}, {})
      await world.apply(again(await worker.claimOne()))
      expect(await world.statusOf(head!, next!)).toEqual(['blocked', 'queued'])
      expect(await world.drain(worker)).toEqual([next, head])
    }
  })

  test('T6 a job that is released with nobody waiting has its slot again', async (world) => {
    await limit(world, 1)
    const head = await world.addOne()
    await world.apply(released(await (await world.worker()).claimOne()))
    expect(await world.statusOf(head)).toEqual(['queued'])
    expect(await world.limits.inspect(QUEUE)).toMatchObject({ slotsUsed: 1, waiting: 0 })
  })

  test('T6 a job that was put off takes a slot again when its time comes', async (world) => {
    await limit(world, 1)
    const [head, next] = await world.add({}, {})
    const worker = await world.worker()
    await world.apply(retried(await worker.claimOne(), 100))
    await world.clock.advance(100)
    await world.jobs.promote(10)
    expect(await world.get(head!)).toMatchObject({ status: 'blocked', waitsFor: 'queue-slot' })
    expect(await world.drain(worker)).toEqual([next, head])
  })

  test('T6 a ready job that is cancelled or deleted gives its slot back', async (world) => {
    await limit(world, 1)
    const ids = await world.add({}, {}, {})
    await world.apply(decideCancel(ids[0]!, 'no')[0])
    expect(await world.statusOf(ids[1]!)).toEqual(['queued'])
    await world.apply(decideRemove(ids[1]!)[0])
    expect(await world.statusOf(ids[2]!)).toEqual(['queued'])
  })

  test('T6 a waiter that is cancelled leaves the line, and nobody else moves', async (world) => {
    await limit(world, 1)
    const ids = await world.add({}, {}, {})
    await world.apply(decideCancel(ids[1]!, 'no')[0])
    expect(await world.statusOf(...ids)).toEqual(['queued', 'cancelled', 'blocked'])
    expect(await world.drain(await world.worker())).toEqual([ids[0], ids[2]])
  })

  test('T6 a scheduled job takes no slot', async (world) => {
    await limit(world, 1)
    const [, ready] = await world.add({ delayMs: 100 }, {})
    expect(await world.statusOf(ready!)).toEqual(['queued'])
  })

  test('T6 a limit per key holds back its key only', async (world) => {
    await limitKeys(world, 1)
    const ids = await world.add({ limitKey: 'a' }, { limitKey: 'a' }, { limitKey: 'b' }, {}, {})
    expect(await world.statusOf(...ids)).toEqual(['queued', 'blocked', 'queued', 'queued', 'queued'])
    expect((await world.get(ids[1]!)).waitsFor).toBe('key-slot')
    const worker = await world.worker()
    const runs = await worker.claim(10)
    expect(runs.map(({ id }) => id)).toEqual([ids[0], ids[2], ids[3], ids[4]])
    await world.apply(completed(runs[0]!))
    expect((await worker.claim(10)).map(({ id }) => id)).toEqual([ids[1]])
  })

  test('T6 limits per key and per queue hold together', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 2, perKeyConcurrency: 1 } })
    await world.add({ limitKey: 'a' }, { limitKey: 'a' }, { limitKey: 'b' }, { limitKey: 'b' }, {}, {})
    const worker = await world.worker()
    const order = []
    for (let runs = await worker.claim(10); runs.length > 0; runs = await worker.claim(10)) {
      expect(runs.length).toBeLessThanOrEqual(2)
      const keys = runs.map(({ limitKey }) => limitKey).filter((key) => key !== null)
      expect(new Set(keys).size).toBe(keys.length)
      order.push(...runs)
      await world.apply(...runs.map((run) => completed(run)))
    }
    expect(order).toHaveLength(6)
  })

  test('T6 a wider limit lets waiters through with the next promotion', async (world) => {
    await limit(world, 1)
    const ids = await world.add({}, {}, {}, {})
    await limit(world, 3)
    await world.jobs.promote(100)
    expect(await world.statusOf(...ids)).toEqual(['queued', 'queued', 'queued', 'blocked'])
    await limit(world, null)
    await world.jobs.promote(100)
    expect(await world.statusOf(...ids)).toEqual(['queued', 'queued', 'queued', 'queued'])
  })

  test('T6 a narrower limit takes nothing back but admits nobody until there is room', async (world) => {
    await limit(world, 3)
    const ids = await world.add({}, {}, {}, {})
    await limit(world, 1)
    await world.jobs.promote(100)
    expect(await world.statusOf(...ids)).toEqual(['queued', 'queued', 'queued', 'blocked'])
    const worker = await world.worker()
    const runs = await worker.claim(3)
    await world.apply(completed(runs[0]!), completed(runs[1]!))
    expect(await world.statusOf(ids[3]!)).toEqual(['blocked'])
    await world.apply(completed(runs[2]!))
    expect(await world.statusOf(ids[3]!)).toEqual(['queued'])
  })

  test('T6 a limit set while jobs are ready counts those jobs', async (world) => {
    const ids = await world.add({}, {})
    await limit(world, 2)
    const [third] = await world.add({})
    expect(await world.statusOf(...ids, third!)).toEqual(['queued', 'queued', 'blocked'])
  })

  test('T6 inspect tells the slots in use, the limit and who waits', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 3, perKeyConcurrency: 1 } })
    await world.add({ limitKey: 'a' }, { limitKey: 'a' }, {}, {}, {})
    expect(await world.limits.inspect(QUEUE)).toMatchObject({ slotsUsed: 3, slotsLimit: 3, waiting: 1 })
    expect(await world.limits.inspect(QUEUE, 'a')).toMatchObject({ slotsUsed: 1, slotsLimit: 1, waiting: 1 })
    expect(await world.limits.inspect(QUEUE, 'unused')).toMatchObject({ slotsUsed: 0, slotsLimit: 1, waiting: 0 })
  })

  test('T6 the head of a group holds the group while it waits for a slot', async (world) => {
    await limit(world, 1)
    const [running, head, next] = await world.add({}, { group: 'g' }, { group: 'g', priority: 0 })
    expect((await world.get(head!)).waitsFor).toBe('queue-slot')
    expect((await world.get(next!)).waitsFor).toBe('group')
    expect(await world.drain(await world.worker())).toEqual([running, head, next])
  })
}

type Run = Parameters<typeof retried>[0]
