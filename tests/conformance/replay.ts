// Dead letters and how they come back.
import { expect } from 'vitest'
import { decideMarkReplayed, decideReplay } from '../../src/core/decide.ts'
import { dump, withoutJobs } from './dump.ts'
import { completed, failed, retried } from './outcomes.ts'
import { after, unique } from './world.ts'
import type { Setup, World } from './world.ts'
import type { JobId, NewJob } from '../../src/core/job.ts'

export function replay({ test }: Setup): void {
  test('D7 a dead letter keeps payload, error, attempts, priority and times', async (world) => {
    const id = await deadLetter(world, { payload: '{"n":1}', priority: 7, tags: ['x'], maxAttempts: 1 })
    expect(await world.get(id)).toMatchObject({
      status: 'failed',
      payload: '{"n":1}',
      priority: 7,
      tags: ['x'],
      attemptCount: 1,
      finishedAtMs: world.clock.nowMs(),
      lastError: { message: 'the run failed for good', stack: expect.any(String) },
      waitsFor: null,
      worker: expect.any(String),
    })
  })

  test('D7 a replayed job is the same job with fresh attempts and its first enqueue time', async (world) => {
    const id = await deadLetter(world, { priority: 7, maxAttempts: 2 })
    const { enqueuedAtMs } = await world.get(id)
    await world.clock.advance(5_000)
    expect(await world.apply(decideReplay(id, 'ada'))).toEqual(['applied'])
    const nowMs = world.clock.nowMs()
    const fresh = {
      attemptCount: 0,
      crashCount: 0,
      priority: 7,
      enqueuedAtMs,
      replayedAtMs: nowMs,
      replayedBy: 'ada',
      runAtMs: nowMs,
    }
    expect(await world.get(id)).toMatchObject({ ...fresh, finishedAtMs: null })
    const worker = await world.worker()
    await world.apply(retried(await worker.claimOne()))
    expect(await world.statusOf(id)).toEqual(['queued'])
  })

  test('D7 replay is idempotent and touches no other job', async (world) => {
    const other = await deadLetter(world)
    const id = await deadLetter(world)
    const before = await dump(world.backend)
    expect(await world.apply(decideReplay(id, 'ada'), decideReplay(id, 'ada'))).toEqual(['applied', 'already'])
    const later = await dump(world.backend)
    expect(withoutJobs(later, id)).toEqual(withoutJobs(before, id))
    expect(await world.statusOf(other)).toEqual(['failed'])
    expect(await world.drain(await world.worker())).toEqual([id])
  })

  test('D7 a late repetition of a replay does not replay a job that ended meanwhile', async (world) => {
    const id = await deadLetter(world)
    await world.apply(decideReplay(id, 'ada'))
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect((await world.apply(decideReplay(id, 'ada')))[0]).not.toBe('applied')
    expect(await world.statusOf(id)).toEqual(['completed'])
  })

  test('D7 only dead letters can be replayed', async (world) => {
    const worker = await world.worker()
    const done = await world.addOne()
    await world.apply(completed(await worker.claimOne()))
    const [waiting, scheduled] = await world.add({}, { delayMs: 10 })
    for (const id of [done, waiting!, scheduled!]) expect(await world.apply(decideReplay(id, 'ada'))).toEqual(['stale'])
    expect(await world.apply(decideReplay(world.newId(), 'ada'))).toEqual(['missing'])
  })

  test('D7 a replay that names the run it saw fail is refused after a later run', async (world) => {
    const id = await deadLetter(world)
    const { lease } = await world.get(id)
    expect(await world.apply(decideReplay(id, 'ada', lease))).toEqual(['applied'])
    await world.apply(failed(await (await world.worker()).claimOne()))
    expect(await world.apply(decideReplay(id, 'ada', lease))).toEqual(['stale'])
    expect(await world.apply(decideReplay(id, 'ada', (await world.get(id)).lease))).toEqual(['applied'])
  })

  test('D7 a replay takes its until-finished key again', async (world) => {
    const id = await deadLetter(world, unique('k'))
    await world.apply(decideReplay(id, 'ada'))
    expect((await world.accept(unique('k')))[0]).toEqual({ id, outcome: 'duplicate' })
  })

  test('D7 a replay whose key another live job holds is a conflict and leaves no trace', async (world) => {
    const id = await deadLetter(world, unique('k'))
    const holder = await world.addOne(unique('k'))
    const before = await dump(world.backend)
    expect(await world.apply(decideReplay(id, 'ada'))).toEqual(['conflict'])
    expect(await dump(world.backend)).toEqual(before)
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect(await world.statusOf(holder)).toEqual(['completed'])
    expect(await world.apply(decideReplay(id, 'ada'))).toEqual(['applied'])
  })

  test('D7 a replay as a new job is linked both ways', async (world) => {
    const id = await deadLetter(world)
    const into = await world.addOne({ replayOf: id })
    await world.clock.advance(5)
    expect(await world.apply(decideMarkReplayed(id, into, 'ada'))).toEqual(['applied'])
    expect(await world.get(id)).toMatchObject({
      status: 'failed',
      replayedInto: into,
      replayedBy: 'ada',
      replayedAtMs: world.clock.nowMs(),
    })
    expect((await world.get(into)).replayOf).toBe(id)
  })

  test('D7 a replayed job of a batch counts as pending again, and callbacks do not fire again', async (world) => {
    const complete = world.job({ queue: 'callbacks' })
    const batch = await world.batch({ callbacks: { complete, success: null, failure: null } })
    const id = await deadLetter(world, { batch })
    await world.batches.seal(batch)
    const finishedAtMs = (await world.batches.get(batch))?.finishedAtMs
    expect(finishedAtMs).toBe(world.clock.nowMs())
    await world.apply(decideReplay(id, 'ada'))
    expect((await world.batches.get(batch))?.counts).toEqual({
      total: 1,
      pending: 1,
      completed: 0,
      failed: 0,
      cancelled: 0,
    })
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect((await world.batches.get(batch))?.counts).toEqual({
      total: 1,
      pending: 0,
      completed: 1,
      failed: 0,
      cancelled: 0,
    })
    const callbacks = await world.query.list({ queue: 'callbacks' }, { limit: 10 })
    expect(callbacks.items.map((job) => job.id)).toEqual([complete.id])
  })

  test('D7 a replayed job waits again for parents that are live, each by its own policy', async (world) => {
    const [bad, slow] = await world.add({}, {})
    const child = await world.addOne({ dependsOn: [after(bad!, 'fail'), after(slow!, 'continue')] })
    const [first, second] = await (await world.worker()).claim(2)
    await world.apply(failed(first!))
    await world.apply({ jobId: child, edge: 'failOrphan', guard: { from: ['blocked'] }, to: 'failed' })
    expect(await world.apply(decideReplay(child, 'ada'))).toEqual(['applied'])
    expect(await world.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'parents' })
    await world.apply(failed(second!))
    expect(await world.statusOf(child)).toEqual(['queued'])
    expect(await world.jobs.due('orphaned', 10)).toEqual([])
  })

  test('D7 a child that failed with its parent runs when both are replayed in turn', async (world) => {
    const parent = await world.addOne()
    const child = await world.addOne({ dependsOn: [after(parent)] })
    const worker = await world.worker()
    await world.apply(failed(await worker.claimOne()))
    const guard = { from: ['blocked'] } as const
    await world.apply({ jobId: child, edge: 'failOrphan', guard, to: 'failed' })
    await world.apply(decideReplay(parent, 'ada'))
    expect(await world.drain(worker)).toEqual([parent])
    expect(await world.apply(decideReplay(child, 'ada'))).toEqual(['applied'])
    expect(await world.drain(worker)).toEqual([child])
  })
}

async function deadLetter(world: World, fields: Partial<NewJob> = {}): Promise<JobId> {
  const id = await world.addOne({ queue: 'mail', ...fields })
  const run = await (await world.worker()).claimOne()
  expect(run.id).toBe(id)
  expect(await world.apply(failed(run))).toEqual(['applied'])
  return id
}
