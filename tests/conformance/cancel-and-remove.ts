// Cancelling and deleting jobs in every state.
import { expect } from 'vitest'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import { dump, withoutJobs } from './dump.ts'
import { completed, failed, retried, snoozed } from './outcomes.ts'
import { after, unique } from './world.ts'
import type { Setup } from './world.ts'

export function cancelAndRemove({ test }: Setup): void {
  test('J9 a waiting job that is cancelled never starts, whichever way it waits', async (world) => {
    const worker = await world.worker()
    const [queued, scheduled] = await world.add({}, { delayMs: 10 })
    const [blocked] = await world.add({ dependsOn: [after(scheduled!, 'continue')] })
    for (const id of [blocked!, scheduled!, queued!]) {
      expect(await world.apply(...decideCancel(id, 'no'))).toEqual(['applied', 'stale'])
    }
    await world.clock.advance(100)
    await world.jobs.promote(10)
    expect(await worker.claim()).toEqual([])
    expect(await world.statusOf(queued!, scheduled!, blocked!)).toEqual(['cancelled', 'cancelled', 'cancelled'])
  })

  test('J9 a job that waits for a retry is cancelled like any waiting job', async (world) => {
    const id = await world.addOne()
    await world.apply(retried(await (await world.worker()).claimOne(), 100))
    expect(await world.apply(...decideCancel(id, 'no'))).toEqual(['applied', 'stale'])
    expect(await world.get(id)).toMatchObject({ status: 'cancelled', attemptCount: 1 })
  })

  test('J9 cancelling a running job tells its worker by the next beat', async (world) => {
    await world.add({}, {})
    const worker = await world.worker()
    const [run] = await worker.claim(2)
    expect(await world.apply(...decideCancel(run!.id, 'no'))).toEqual(['stale', 'applied'])
    const beat = await world.beat(worker.id, { running: 2 })
    expect(beat.cancels).toEqual([{ jobId: run!.id, lease: run!.lease }])
    await world.apply(retried(run!))
    const next = await world.beat(worker.id, { running: 1 })
    expect(next.cancels).toEqual([])
  })

  test('J9 a cancellation is not told to another worker', async (world) => {
    await world.addOne()
    const [one, other] = [await world.worker(), await world.worker()]
    const run = await one.claimOne()
    await world.apply(...decideCancel(run.id, 'no'))
    expect((await world.beat(other.id)).cancels).toEqual([])
  })

  test('J9 cancelling an ended or unknown job changes nothing', async (world) => {
    const id = await world.addOne()
    await world.apply(completed(await (await world.worker()).claimOne()))
    const before = await dump(world.backend)
    expect(await world.apply(...decideCancel(id, 'no'))).toEqual(['stale', 'stale'])
    expect(await world.apply(...decideCancel(world.newId(), 'no'))).toEqual(['missing', 'missing'])
    expect(await dump(world.backend)).toEqual(before)
  })

  test('J9 cancelling one job touches no other', async (world) => {
    const [id, ...others] = await world.add({}, {}, { delayMs: 5 }, { group: 'g' }, unique('k'))
    const before = await dump(world.backend)
    await world.apply(...decideCancel(id!, 'no'))
    const later = await dump(world.backend)
    expect(Object.keys(withoutJobs(later, id!)).sort()).toEqual([...others].sort())
    expect(withoutJobs(later, id!)).toEqual(withoutJobs(before, id!))
  })

  test('J9 a running job that is deleted is cancelled first and gone when its run ends', async (world) => {
    for (const end of [completed, failed, retried, (run: Parameters<typeof snoozed>[0]) => snoozed(run, 5)]) {
      const id = await world.addOne()
      const worker = await world.worker()
      const run = await worker.claimOne()
      expect(await world.apply(...decideRemove(id))).toEqual(['stale', 'applied'])
      expect(await world.get(id)).toMatchObject({ status: 'running', cancelRequested: true })
      expect((await world.beat(worker.id, { running: 1 })).cancels).toHaveLength(1)
      expect(['applied', 'alternative']).toContain((await world.apply(end(run)))[0])
      expect(await world.statusOf(id)).toEqual(['gone'])
      expect(await world.apply(end(run))).toEqual(['missing'])
    }
    expect((await dump(world.backend)).jobs).toEqual({})
  })

  test('J9 deleting a waiting job answers applied, then missing', async (world) => {
    const id = await world.addOne()
    expect(await world.apply(...decideRemove(id))).toEqual(['applied', 'missing'])
    expect(await (await world.worker()).claim()).toEqual([])
  })

  test('J9 deleting one job touches no other', async (world) => {
    const [id] = await world.add({}, {}, { delayMs: 5 }, { group: 'g' }, unique('k'))
    const before = await dump(world.backend)
    await world.apply(...decideRemove(id!))
    expect((await dump(world.backend)).jobs).toEqual(withoutJobs(before, id!))
  })

  test('J9 a deleted job gives its unique key, group and place in the line back', async (world) => {
    const id = await world.addOne({ ...unique('k'), group: 'g' })
    const next = await world.addOne({ group: 'g' })
    await world.apply(...decideRemove(id))
    expect(await world.statusOf(next)).toEqual(['queued'])
    expect((await world.accept(unique('k')))[0]?.outcome).toBe('inserted')
  })

  test('J9 a deleted id can be inserted again as a new job', async (world) => {
    const job = world.job()
    await world.jobs.insert([job])
    await world.apply(...decideRemove(job.id))
    expect(await world.jobs.insert([job])).toMatchObject({ ok: true, results: [{ outcome: 'inserted' }] })
  })
}
