// Where two rules meet: gates with gates, unique keys with dependencies, late decisions with operators. Each of
// these once went wrong although every rule alone held.
import { expect } from 'vitest'
import { decideOrphan, decideReplay } from '../../src/core/decide.ts'
import { LIMITS } from '../../src/core/limits.ts'
import { rateLimit } from '../../src/core/rate.ts'
import { completed, failed, returned } from './outcomes.ts'
import { NO_LIMITS, QUEUE, after, unique } from './world.ts'
import type { Setup } from './world.ts'

export function crossings({ test }: Setup): void {
  test('T6 a freed slot goes on to the next waiter when the first one stops at the rate line', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 1 } })
    const [, , patient] = await world.add({}, { limitKey: 'x' }, { limitKey: 'y' })
    const run = await (await world.worker()).claimOne()
    const perKeyRate = rateLimit({ limit: 1, per: '1h', burst: 1 })
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 1, perKeyRate } })
    for (let taken = 0; taken < 3; taken++) await world.limits.take([{ queue: QUEUE, key: 'x' }])
    await world.apply(completed(run))
    expect((await world.get(patient!)).status).toBe('queued')
  })

  test('T6 a waiter that stops at its key does not keep the slot of the queue from others', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 2 } })
    const [, , , patient] = await world.add({ limitKey: 'x' }, {}, { limitKey: 'x' }, { limitKey: 'y' })
    const worker = await world.worker()
    const [, free] = await worker.claim(2)
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 2, perKeyConcurrency: 1 } })
    await world.apply(completed(free!))
    expect((await world.get(patient!)).status).toBe('queued')
  })

  test('T6 a limit set on a backlog keeps its order', async (world) => {
    const count = LIMITS.maintenanceBatchMax + 50
    const ids = await world.add(...Array.from({ length: count }, () => ({})))
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 5_000 } })
    expect((await (await world.worker()).claim(3)).map(({ id }) => id)).toEqual(ids.slice(0, 3))
  })

  test('T4 jobs of one call that wait for each other through a shared key are refused, and nothing is written', async (world) => {
    const [root, child] = [world.newId(), world.newId()]
    const jobs = [
      world.job({ id: root, ...unique('same'), dependsOn: [after(child)] }),
      world.job({ id: child, ...unique('same') }),
    ]
    expect(await world.jobs.insert(jobs)).toMatchObject({ ok: false, refusal: { code: 'DEPENDENCY_CYCLE' } })
    expect(await world.statusOf(root, child)).toEqual(['gone', 'gone'])
  })

  test('T4 two parents that stand for one holder count once, also after a replay', async (world) => {
    const holder = await world.addOne(unique('same'))
    const [one, two, child] = [world.newId(), world.newId(), world.newId()]
    const dependsOn = [after(one), after(two)]
    await world.accept({ id: one, ...unique('same') }, { id: two, ...unique('same') }, { id: child, dependsOn })
    expect((await world.get(child)).parents).toEqual([holder])
    const worker = await world.worker()
    await world.apply(failed(await worker.claimOne()))
    const [orphan] = await world.jobs.due('orphaned', 10)
    await world.apply(decideOrphan(orphan!.job, orphan!.orphan!))
    await world.apply(decideReplay(holder, 'op'), decideReplay(child, 'op'))
    await world.apply(completed(await worker.claimOne()))
    expect((await world.get(child)).status).toBe('queued')
  })

  test('T4 of two policies about one holder the one that asks for its success is kept', async (world) => {
    const holder = await world.addOne(unique('same'))
    const [one, child] = [world.newId(), world.newId()]
    const dependsOn = [after(holder, 'continue'), after(one, 'fail')]
    await world.accept({ id: one, ...unique('same') }, { id: child, dependsOn })
    await world.apply(failed(await (await world.worker()).claimOne()))
    expect((await world.get(child)).status).toBe('blocked')
    expect((await world.jobs.due('orphaned', 10)).map(({ orphan }) => orphan?.policy)).toEqual(['fail'])
  })

  test('T4 a late decision about an orphan does not hit the job that an operator has replayed', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)] })
    const worker = await world.worker()
    await world.apply(failed(await worker.claimOne()))
    const [orphan] = await world.jobs.due('orphaned', 10)
    const decision = decideOrphan(orphan!.job, orphan!.orphan!)
    expect(await world.apply(decision)).toEqual(['applied'])
    await world.apply(decideReplay(parent, 'op'), decideReplay(child, 'op'))
    expect((await world.get(child)).status).toBe('blocked')
    expect(await world.apply(decision)).toEqual(['stale'])
    expect((await world.get(child)).status).toBe('blocked')
  })

  test('J9 a job that was cancelled before it started has used no attempt', async (world) => {
    const id = await world.addOne()
    const run = await (await world.worker()).claimOne()
    await world.apply({ jobId: id, edge: 'requestCancel', guard: { from: ['running'] }, to: 'running' })
    expect(await world.apply(returned(run))).toEqual(['alternative'])
    expect(await world.get(id)).toMatchObject({ status: 'cancelled', attemptCount: 0 })
  })
}
