// Batches: counters equal a recount at every moment, callbacks come exactly once.
import { expect } from 'vitest'
import { EMPTY_COUNTS, countedAs, moveCount } from '../../src/core/batch.ts'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import type { BatchId, JobId } from '../../src/core/job.ts'
import type { BatchCallbacks } from '../../src/store/batch-store.ts'
import { allPages, dump } from './dump.ts'
import { cancelledByHandler, completed, failed, retried } from './outcomes.ts'
import type { Setup, World } from './world.ts'

const CALLBACKS = 'callbacks'

export function batches({ test }: Setup): void {
  test('T3 a new batch is open, empty and shows what it was given', async (world) => {
    const callbacks = callbackJobs(world)
    const id = await world.batch({ name: 'import', meta: '{"file":1}', callbacks })
    expect(await world.batches.get(id)).toEqual({
      id,
      name: 'import',
      meta: '{"file":1}',
      callbacks,
      counts: EMPTY_COUNTS,
      sealed: false,
      cancelled: false,
      createdAtMs: world.clock.nowMs(),
      finishedAtMs: null,
    })
  })

  test('T3 creating a batch again changes nothing', async (world) => {
    const id = await world.batch({ name: 'first' })
    await world.addOne({ batch: id })
    const before = await dump(world.backend)
    await world.clock.advance(5)
    await world.batch({ id, name: 'second' })
    expect(await dump(world.backend)).toEqual(before)
  })

  test('T3 an unknown batch is null, cannot be sealed and cannot be cancelled', async (world) => {
    const nowhere = world.newId() as unknown as BatchId // any well-formed id
    expect(await world.batches.get(nowhere)).toBeNull()
    expect(await world.batches.seal(nowhere)).toBe(false)
    expect(await world.batches.cancel(nowhere)).toBe(false)
  })

  test('T3 the counters follow every move of every job', async (world) => {
    const batch = await world.batch()
    const worker = await world.worker()
    await expectRecount(world, batch)
    const [, , , , waiting, removed] = await world.add(
      { batch },
      { batch },
      { batch },
      { batch },
      { batch, delayMs: 5 },
      { batch, delayMs: 5 },
    )
    await expectRecount(world, batch)
    const runs = await worker.claim(4)
    await expectRecount(world, batch)
    const steps = [completed(runs[0]!), failed(runs[1]!), retried(runs[2]!, 5), cancelledByHandler(runs[3]!)]
    for (const step of [...steps, decideCancel(waiting!, 'no')[0], decideRemove(removed!)[0]]) {
      expect(await world.apply(step)).toEqual(['applied'])
      await expectRecount(world, batch)
    }
    expect((await world.batches.get(batch))?.counts).toEqual({
      total: 5,
      pending: 1,
      completed: 1,
      failed: 1,
      cancelled: 2,
    })
  })

  test('T3 repeated and stale endings are not counted again', async (world) => {
    const batch = await world.batch()
    await world.add({ batch }, { batch })
    const [run] = await (await world.worker()).claim(2)
    await world.apply(completed(run!), completed(run!), failed(run!))
    expect((await world.batches.get(batch))?.counts).toMatchObject({ total: 2, pending: 1, completed: 1, failed: 0 })
  })

  test('T3 an open batch does not finish, however often it is empty', async (world) => {
    const batch = await world.batch({ callbacks: callbackJobs(world) })
    await world.addOne({ batch })
    await world.drain(await world.worker())
    expect((await world.batches.get(batch))?.finishedAtMs).toBeNull()
    expect(await callbacksOf(world)).toEqual([])
  })

  test('T3 a batch that no job has joined can be discarded, one with jobs cannot', async (world) => {
    const callbacks = callbackJobs(world)
    const empty = await world.batch({ callbacks })
    expect(await world.batches.discard(empty)).toBe(true)
    expect([await world.batches.get(empty), await world.batches.discard(empty)]).toEqual([null, false])
    const joined = await world.batch({})
    await world.addOne({ batch: joined })
    expect(await world.batches.discard(joined)).toBe(false)
    expect(await callbacksOf(world)).toEqual([])
  })

  test('T3 cancelling an empty batch is no success', async (world) => {
    const callbacks = callbackJobs(world)
    await world.batches.cancel(await world.batch({ callbacks }))
    expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.failure!.id].sort())
  })

  test('T3 all completed: complete and success are enqueued with the end of the last job', async (world) => {
    const callbacks = callbackJobs(world)
    const batch = await world.batch({ callbacks })
    await world.add({ batch }, { batch })
    await world.batches.seal(batch)
    const runs = await (await world.worker()).claim(2)
    await world.apply(completed(runs[0]!))
    expect(await callbacksOf(world)).toEqual([])
    await world.clock.advance(7)
    await world.apply(completed(runs[1]!))
    expect((await world.batches.get(batch))?.finishedAtMs).toBe(world.clock.nowMs())
    expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.success!.id].sort())
  })

  for (const [how, end] of Object.entries({ failed, cancelled: cancelledByHandler })) {
    test(`T3 one ${how}: complete and failure are enqueued`, async (world) => {
      const callbacks = callbackJobs(world)
      const batch = await world.batch({ callbacks })
      await world.add({ batch }, { batch })
      await world.batches.seal(batch)
      const runs = await (await world.worker()).claim(2)
      await world.apply(completed(runs[0]!), end(runs[1]!))
      expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.failure!.id].sort())
    })
  }

  test('T3 sealing a batch whose jobs have all ended finishes it at once', async (world) => {
    const callbacks = callbackJobs(world)
    const batch = await world.batch({ callbacks })
    await world.addOne({ batch })
    await world.drain(await world.worker())
    expect(await world.batches.seal(batch)).toBe(true)
    expect(await world.batches.get(batch)).toMatchObject({ sealed: true, finishedAtMs: world.clock.nowMs() })
    expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.success!.id].sort())
  })

  test('T3 sealing again, or an empty batch, fires the callbacks once', async (world) => {
    const callbacks = callbackJobs(world)
    const batch = await world.batch({ callbacks })
    expect(await world.batches.seal(batch)).toBe(true)
    const before = await dump(world.backend)
    expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.success!.id].sort())
    await world.clock.advance(9)
    expect(await world.batches.seal(batch)).toBe(true)
    expect(await dump(world.backend)).toEqual(before)
  })

  test('T3 deleting the last pending job of a sealed batch finishes it', async (world) => {
    const batch = await world.batch({ callbacks: callbackJobs(world) })
    const id = await world.addOne({ batch })
    await world.batches.seal(batch)
    await world.apply(decideRemove(id)[0])
    expect((await world.batches.get(batch))?.finishedAtMs).toBe(world.clock.nowMs())
    expect(await callbacksOf(world)).toHaveLength(2)
  })

  test('T3 callback jobs are ordinary jobs outside the batch', async (world) => {
    const complete = world.job({ queue: CALLBACKS, priority: 3, payload: '"all done"' })
    const batch = await world.batch({ callbacks: { complete, success: null, failure: null } })
    await world.batches.seal(batch)
    expect(await world.get(complete.id)).toMatchObject({ batch: null, priority: 3, payload: '"all done"' })
    expect(await world.drain(await world.worker(), [CALLBACKS])).toEqual([complete.id])
  })

  test('T3 a sealed batch takes jobs from inside while one of its jobs is pending', async (world) => {
    const batch = await world.batch()
    await world.addOne({ batch })
    await world.batches.seal(batch)
    const inside = await world.addOne({ batch, insideBatch: true, delayMs: 5 })
    expect((await world.batches.get(batch))?.counts).toMatchObject({ total: 2, pending: 2 })
    await world.drain(await world.worker())
    expect((await world.batches.get(batch))?.finishedAtMs).toBeNull()
    await world.apply(decideCancel(inside, 'no')[0])
    expect((await world.batches.get(batch))?.finishedAtMs).not.toBeNull()
    const late = world.job({ batch, insideBatch: true })
    expect(await world.jobs.insert([late])).toMatchObject({ ok: false, refusal: { code: 'BATCH_CLOSED' } })
  })

  test('T3 cancelling a batch lists its live jobs until each is cancelled or asked to stop', async (world) => {
    const batch = await world.batch()
    const [done, running, waiting] = await world.add({ batch }, { batch }, { batch, delayMs: 50 })
    await world.addOne()
    const worker = await world.worker()
    const runs = await worker.claim(2)
    await world.apply(completed(runs[0]!))
    expect(await world.jobs.due('batch-cancelled', 10)).toEqual([])
    expect(await world.batches.cancel(batch)).toBe(true)
    expect((await world.batches.get(batch))?.cancelled).toBe(true)
    const due = await world.jobs.due('batch-cancelled', 10)
    expect(due.map(({ job }) => job.id).sort()).toEqual([running, waiting].sort())
    expect(await world.jobs.due('batch-cancelled', 1)).toHaveLength(1)
    await world.apply(...decideCancel(waiting!, 'batch'), ...decideCancel(running!, 'batch'))
    expect(await world.jobs.due('batch-cancelled', 10)).toEqual([])
    await world.apply(retried(runs[1]!))
    expect(await world.statusOf(done!, running!, waiting!)).toEqual(['completed', 'cancelled', 'cancelled'])
    expect((await world.batches.get(batch))?.counts).toEqual({
      total: 3,
      pending: 0,
      completed: 1,
      failed: 0,
      cancelled: 2,
    })
  })

  test('T3 a cancelled batch that is sealed finishes when its last job has ended', async (world) => {
    const callbacks = callbackJobs(world)
    const batch = await world.batch({ callbacks })
    const id = await world.addOne({ batch })
    await world.batches.seal(batch)
    await world.batches.cancel(batch)
    expect((await world.batches.get(batch))?.finishedAtMs).toBeNull()
    await world.apply(decideCancel(id, 'batch')[0])
    expect((await world.batches.get(batch))?.finishedAtMs).toBe(world.clock.nowMs())
    expect(await callbacksOf(world)).toEqual([callbacks.complete!.id, callbacks.failure!.id].sort())
  })

  test('T3 a repeated insert does not count its jobs twice', async (world) => {
    const batch = await world.batch()
    const jobs = [world.job({ batch }), world.job({ batch })]
    await world.jobs.insert(jobs)
    await world.batches.seal(batch)
    expect((await world.jobs.insert(jobs)).ok).toBe(true)
    expect((await world.batches.get(batch))?.counts).toMatchObject({ total: 2, pending: 2 })
  })

  test('T3 batches are listed page by page, newest first', async (world) => {
    const ids: BatchId[] = []
    for (let no = 0; no < 7; no++) {
      await world.clock.advance(1)
      ids.push(await world.batch({ name: `b${no}` }))
    }
    const listed = await allPages((page) => world.batches.list(page), 3)
    expect(listed.map(({ id }) => id)).toEqual(ids.toReversed())
  })
}

function callbackJobs(world: World): BatchCallbacks {
  const one = (name: string) => world.job({ queue: CALLBACKS, name })
  return { complete: one('complete'), success: one('success'), failure: one('failure') }
}

async function callbacksOf(world: World): Promise<readonly JobId[]> {
  return (await world.query.list({ queue: CALLBACKS }, { limit: 10 })).items.map(({ id }) => id).sort()
}

async function expectRecount(world: World, batch: BatchId): Promise<void> {
  const jobs = await allPages((page) => world.query.list({ batch }, page))
  const recount = jobs.reduce((counts, { status }) => moveCount(counts, null, countedAs(status)), EMPTY_COUNTS)
  expect((await world.batches.get(batch))?.counts).toEqual(recount)
}
