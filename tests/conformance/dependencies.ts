// A job after other jobs: released in the atom that ends the last parent, or listed as an orphan.
import { expect } from 'vitest'
import { decideCancel, decideOrphan, decideRemove } from '../../src/core/decide.ts'
import { completed, failed, retried } from './outcomes.ts'
import { after, unique } from './world.ts'
import type { Setup } from './world.ts'

export function dependencies({ test }: Setup): void {
  test('T4 a job waits for its parent and is ready the moment it completes', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)] })
    expect(await world.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'parents', parents: [parent] })
    const worker = await world.worker()
    const run = await worker.claimOne()
    expect(await worker.claim()).toEqual([])
    await world.apply(completed(run, '{"n":1}'))
    expect(await worker.claimOne()).toMatchObject({ id: child, parents: [parent] })
  })

  test('T4 a job after many waits for the last of them', async (world) => {
    const parents = await world.add({}, {}, {})
    const child = await world.addOne({ dependsOn: parents.map((id) => after(id)) })
    const worker = await world.worker()
    for (const run of await worker.claim(3)) {
      expect(await world.statusOf(child)).toEqual(['blocked'])
      await world.apply(completed(run))
    }
    expect(await world.statusOf(child)).toEqual(['queued'])
  })

  test('T4 a retry of a parent releases nothing', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent, 'continue')] })
    await world.apply(retried(await (await world.worker()).claimOne(), 10))
    expect(await world.statusOf(child)).toEqual(['blocked'])
    expect(await world.jobs.due('orphaned', 10)).toEqual([])
  })

  test('T4 the results of parents are readable by the child', async (world) => {
    const parents = await world.add({}, {})
    await world.addOne({ dependsOn: parents.map((id) => after(id)) })
    const worker = await world.worker()
    for (const [index, run] of (await worker.claim(2)).entries()) await world.apply(completed(run, `${index}`))
    const child = await worker.claimOne()
    expect((await world.query.get(child.parents)).map((job) => job?.result)).toEqual(['0', '1'])
  })

  test('T4 a flow goes in by one call, in any order', async (world) => {
    const leaf = world.job()
    const middle = world.job({ dependsOn: [after(leaf.id)] })
    const root = world.job({ dependsOn: [after(middle.id), after(leaf.id)] })
    expect((await world.jobs.insert([root, middle, leaf])).ok).toBe(true)
    expect(await world.drain(await world.worker())).toEqual([leaf.id, middle.id, root.id])
  })

  test('T4 a parent that has already completed counts at once', async (world) => {
    const parent = await world.addOne()
    await world.apply(completed(await (await world.worker()).claimOne()))
    const child = await world.addOne({ dependsOn: [after(parent)] })
    expect(await world.get(child)).toMatchObject({
      status: expect.stringMatching(/queued|dispatched/),
      parents: [parent],
    })
  })

  test('T4 a parent that has already failed makes an orphan at once', async (world) => {
    const parent = await world.addOne()
    await world.apply(failed(await (await world.worker()).claimOne()))
    const [child, patient] = await world.add({ dependsOn: [after(parent)] }, { dependsOn: [after(parent, 'continue')] })
    expect(await world.statusOf(child!, patient!)).toEqual(['blocked', 'queued'])
    expect((await world.jobs.due('orphaned', 10)).map(({ job }) => job.id)).toEqual([child])
  })

  test('T4 a request of the same call that turns out a duplicate stands for its holder, also as a parent', async (world) => {
    const holder = await world.addOne(unique('k'))
    const again = world.job(unique('k'))
    const child = world.job({ dependsOn: [after(again.id)] })
    await world.accept(again, child)
    expect(await world.get(child.id)).toMatchObject({ status: 'blocked', waitsFor: 'parents', parents: [holder] })
    expect(await world.drain(await world.worker())).toEqual([holder, child.id])
  })

  test('T4 the same parent named twice counts as one', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent), after(parent)] })
    const worker = await world.worker()
    expect(await world.drain(worker)).toEqual([parent, child])
  })

  for (const parentStatus of ['failed', 'cancelled'] as const) {
    for (const policy of ['fail', 'cancel'] as const) {
      test(`T4 policy ${policy}: the child of a ${parentStatus} parent stays blocked until maintenance decides`, async (world) => {
        const parent = await world.addOne()
        const child = await world.addOne({ dependsOn: [after(parent, policy)] })
        if (parentStatus === 'failed') await world.apply(failed(await (await world.worker()).claimOne()))
        else await world.apply(decideCancel(parent, 'no')[0])
        expect(await world.statusOf(child)).toEqual(['blocked'])
        const [due, ...more] = await world.jobs.due('orphaned', 10)
        expect(more).toEqual([])
        expect(due).toMatchObject({ job: { id: child }, orphan: { parent, parentStatus, policy } })
        expect(await world.apply(decideOrphan(due!.job, due!.orphan!))).toEqual(['applied'])
        expect(await world.statusOf(child)).toEqual([policy === 'fail' ? 'failed' : 'cancelled'])
        expect(await world.jobs.due('orphaned', 10)).toEqual([])
      })
    }
  }

  test('T4 policy continue: the child runs although its parent failed or was cancelled', async (world) => {
    const [bad, unwanted] = await world.add({}, { priority: 101 })
    const child = await world.addOne({ dependsOn: [after(bad!, 'continue'), after(unwanted!, 'continue')] })
    await world.apply(failed(await (await world.worker()).claimOne()))
    expect(await world.statusOf(child)).toEqual(['blocked'])
    await world.apply(decideCancel(unwanted!, 'no')[0])
    expect(await world.statusOf(child)).toEqual(['queued'])
  })

  test('T4 one parent that failed makes an orphan even while others still run', async (world) => {
    const [bad, slow] = await world.add({}, {})
    const child = await world.addOne({ dependsOn: [after(slow!), after(bad!)] })
    const [run, other] = await (await world.worker()).claim(2)
    await world.apply(failed(run!))
    expect((await world.jobs.due('orphaned', 10)).map(({ job }) => job.id)).toEqual([child])
    await world.apply(completed(other!))
    expect(await world.statusOf(child)).toEqual(['blocked'])
  })

  test('T4 failure travels down a chain of orphans', async (world) => {
    const top = await world.addOne()
    const middle = await world.addOne({ dependsOn: [after(top, 'fail')] })
    const bottom = await world.addOne({ dependsOn: [after(middle, 'cancel')] })
    await world.apply(failed(await (await world.worker()).claimOne()))
    for (let round = 0; round < 2; round++) {
      const due = await world.jobs.due('orphaned', 10)
      expect(due).toHaveLength(1)
      await world.apply(...due.map(({ job, orphan }) => decideOrphan(job, orphan!)))
    }
    expect(await world.statusOf(top, middle, bottom)).toEqual(['failed', 'failed', 'cancelled'])
  })

  test('T4 a waiting parent that is deleted counts as cancelled', async (world) => {
    const parent = await world.addOne()
    const [strict, patient] = await world.add(
      { dependsOn: [after(parent)] },
      { dependsOn: [after(parent, 'continue')] },
    )
    await world.apply(decideRemove(parent)[0])
    expect(await world.statusOf(patient!)).toEqual(['queued'])
    expect(await world.jobs.due('orphaned', 10)).toMatchObject([
      { job: { id: strict }, orphan: { parent, parentStatus: 'cancelled', policy: 'fail' } },
    ])
  })

  test('T4 deleting an ended parent changes nothing for its children', async (world) => {
    const [done, slow] = await world.add({}, { priority: 101 })
    const child = await world.addOne({ dependsOn: [after(done!), after(slow!)] })
    const worker = await world.worker()
    await world.apply(completed(await worker.claimOne()), decideRemove(done!)[0])
    expect(await world.statusOf(child)).toEqual(['blocked'])
    expect(await world.jobs.due('orphaned', 10)).toEqual([])
    await world.apply(completed(await worker.claimOne()))
    expect(await world.statusOf(child)).toEqual(['queued'])
  })

  test('T4 a child that was deleted is not released by its parent', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)] })
    await world.apply(decideRemove(child)[0])
    const worker = await world.worker()
    expect(await world.drain(worker)).toEqual([parent])
    expect(await world.statusOf(child)).toEqual(['gone'])
  })

  test('T4 parents come before time: a delayed child waits for both', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)], delayMs: 100 })
    expect(await world.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'parents' })
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect(await world.get(child)).toMatchObject({ status: 'scheduled', waitsFor: 'delay' })
    await world.clock.advance(100)
    await world.jobs.promote(10)
    expect(await world.statusOf(child)).toEqual(['queued'])
  })

  test('T4 a child whose time passed while it was blocked is ready with its parent', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)], delayMs: 100 })
    await world.clock.advance(100)
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect(await world.statusOf(child)).toEqual(['queued'])
  })

  test('T4 a parent may be in another queue', async (world) => {
    const parent = await world.addOne({ queue: 'other' })
    const child = await world.addOne({ dependsOn: [after(parent)] })
    const worker = await world.worker()
    await world.drain(worker, ['other'])
    expect(await world.drain(worker)).toEqual([child])
  })
}
