// Pausing a queue stops new starts; everything else goes on.
import { expect } from 'vitest'
import { completed, retried, returned } from './outcomes.ts'
import { QUEUE } from './world.ts'
import type { Setup, World } from './world.ts'

const pauseQueue = (world: World, paused: boolean) => world.queues.configure(QUEUE, { paused })

export function pause({ test }: Setup): void {
  test('J3 a paused queue starts nothing and is named as paused', async (world) => {
    await world.addOne()
    await pauseQueue(world, true)
    const reply = await (await world.worker()).ask()
    expect(reply).toMatchObject({ jobs: [], paused: [QUEUE] })
    expect(reply.refused).toBeUndefined()
  })

  test('J3 other queues of the same claim go on', async (world) => {
    const [, other] = await world.add({}, { queue: 'other' })
    await pauseQueue(world, true)
    const reply = await (await world.worker()).ask({ queues: [QUEUE, 'other'] })
    expect(reply.jobs.map(({ id }) => id)).toEqual([other])
    expect(reply.paused).toEqual([QUEUE])
  })

  test('J3 enqueue, promotion and the end of runs go on while a queue is paused', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    await pauseQueue(world, true)
    const [ready, delayed] = await world.add({}, { delayMs: 10 })
    await world.clock.advance(10)
    await world.jobs.promote(10)
    expect(await world.statusOf(ready!, delayed!)).toEqual(['queued', 'queued'])
    expect(await world.apply(retried(run))).toEqual(['applied'])
    expect(await worker.claim()).toEqual([])
  })

  test('J3 a job that was claimed before the pause can be returned to its place without an attempt', async (world) => {
    const ids = await world.add({}, {})
    const worker = await world.worker()
    const run = await worker.claimOne()
    await pauseQueue(world, true)
    await world.apply(returned(run))
    await pauseQueue(world, false)
    expect(await world.get(run.id)).toMatchObject({ attemptCount: 0 })
    expect(await world.drain(worker)).toEqual(ids)
  })

  test('J3 a resumed queue starts where it stopped', async (world) => {
    const ids = await world.add({}, {}, {})
    const worker = await world.worker()
    await world.apply(completed(await worker.claimOne()))
    await pauseQueue(world, true)
    expect(await worker.claim()).toEqual([])
    const resumed = await pauseQueue(world, false)
    expect(resumed?.paused).toBe(false)
    const reply = await worker.ask()
    expect(reply.jobs.map(({ id }) => id)).toEqual(ids.slice(1))
    expect(reply.paused).toEqual([])
  })

  test('J3 a pause survives ensure and other changes', async (world) => {
    await pauseQueue(world, true)
    const { paused: _, version: __, createdAtMs: ___, ...settings } = (await world.queues.get(QUEUE))!
    expect((await world.queues.ensure([settings]))[0]?.paused).toBe(true)
    expect((await world.queues.configure(QUEUE, { defaultPriority: 3 }))?.paused).toBe(true)
  })
}
