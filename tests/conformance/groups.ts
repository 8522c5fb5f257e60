// Jobs of one group run one at a time, in order.
import { expect } from 'vitest'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import { completed, expired, failed, released, retried, returned, snoozed } from './outcomes.ts'
import { after } from './world.ts'
import type { Setup } from './world.ts'

export function groups({ test }: Setup): void {
  test('T5 only the head of a group is ready, the others follow in order', async (world) => {
    const ids = await world.add({ group: 'g' }, { group: 'g' }, { group: 'g' })
    expect(await world.statusOf(...ids)).toEqual(['queued', 'blocked', 'blocked'])
    expect((await world.get(ids[1]!)).waitsFor).toBe('group')
    const worker = await world.worker()
    for (const id of ids) {
      const runs = await worker.claim(10)
      expect(runs.map((run) => run.id)).toEqual([id])
      await world.apply(completed(runs[0]!))
    }
  })

  test('T5 priority does not overtake inside a group', async (world) => {
    const ids = await world.add({ group: 'g' }, { group: 'g', priority: 50 }, { group: 'g', priority: 0 })
    expect(await world.drain(await world.worker())).toEqual(ids)
  })

  test('T5 groups, and jobs without one, do not wait for each other', async (world) => {
    const ids = await world.add({ group: 'a' }, { group: 'b' }, {}, { group: 'a', queue: 'other' })
    expect(await world.statusOf(...ids)).toEqual(['queued', 'queued', 'queued', 'queued'])
  })

  test('T5 the head keeps the group while it waits for a retry or a snooze', async (world) => {
    const [head, next] = await world.add({ group: 'g' }, { group: 'g' })
    const worker = await world.worker()
    for (const again of [retried, snoozed]) {
      await world.apply(again(await worker.claimOne(), 100))
      expect(await world.statusOf(head!, next!)).toEqual(['scheduled', 'blocked'])
      expect(await worker.claim()).toEqual([])
      await world.clock.advance(100)
      await world.jobs.promote(10)
      expect(await world.statusOf(head!, next!)).toEqual(['queued', 'blocked'])
    }
  })

  test('T5 the head keeps the group when it is released, returned or expired', async (world) => {
    const [head, next] = await world.add({ group: 'g', maxAttempts: 9 }, { group: 'g' })
    for (const again of [released, returned, expired]) {
      const worker = await world.worker()
      await world.apply(again(await worker.claimOne()))
      expect(await world.statusOf(head!, next!)).toEqual(['queued', 'blocked'])
    }
  })

  test('T5 a head that fails, is cancelled or is deleted hands the group on', async (world) => {
    const ids = await world.add({ group: 'g' }, { group: 'g' }, { group: 'g' }, { group: 'g' })
    await world.apply(failed(await (await world.worker()).claimOne()))
    expect(await world.statusOf(ids[1]!)).toEqual(['queued'])
    await world.apply(decideCancel(ids[1]!, 'no')[0])
    expect(await world.statusOf(ids[2]!)).toEqual(['queued'])
    await world.apply(decideRemove(ids[2]!)[0])
    expect(await world.statusOf(ids[3]!)).toEqual(['queued'])
  })

  test('T5 a job that leaves the line from its middle leaves the order as it was', async (world) => {
    const ids = await world.add({ group: 'g' }, { group: 'g' }, { group: 'g' })
    await world.apply(decideCancel(ids[1]!, 'no')[0])
    expect(await world.drain(await world.worker())).toEqual([ids[0], ids[2]])
  })

  test('T5 a delayed job joins the line when its time comes and holds nobody up before', async (world) => {
    const [delayed, second] = await world.add({ group: 'g', delayMs: 100 }, { group: 'g' })
    expect(await world.statusOf(delayed!, second!)).toEqual(['scheduled', 'queued'])
    const third = await world.addOne({ group: 'g' })
    await world.clock.advance(100)
    await world.jobs.promote(10)
    expect(await world.get(delayed!)).toMatchObject({ status: 'blocked', waitsFor: 'group' })
    expect(await world.drain(await world.worker())).toEqual([second, third, delayed])
  })

  test('T5 a job that waits for parents joins the line when they have ended', async (world) => {
    const parent = await world.addOne({ queue: 'other' })
    const child = await world.addOne({ group: 'g', dependsOn: [after(parent)] })
    const free = await world.addOne({ group: 'g' })
    expect(await world.statusOf(free)).toEqual(['queued'])
    await world.drain(await world.worker(), ['other'])
    expect(await world.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'group' })
    expect(await world.drain(await world.worker())).toEqual([free, child])
  })

  test('T5 a group is free again when its last job has ended', async (world) => {
    await world.addOne({ group: 'g' })
    await world.drain(await world.worker())
    expect(await world.statusOf(await world.addOne({ group: 'g' }))).toEqual(['queued'])
  })
}
