// All or none: a call that is refused for one of its jobs leaves no trace of the others.
import { expect } from 'vitest'
import type { NewJob } from '../../src/core/job.ts'
import type { InsertRefusal } from '../../src/store/ports.ts'
import { dump } from './dump.ts'
import { QUEUE, after, unique } from './world.ts'
import type { Setup, World } from './world.ts'

export function bulk({ test }: Setup): void {
  test('J2 a job with an unknown parent refuses the whole call, and nothing is written', async (world) => {
    const bad = world.job({ dependsOn: [after(world.newId())] })
    const parent = bad.dependsOn![0]!.parent
    await refusedWithoutTrace(world, bad, { code: 'DEPENDENCY_NOT_FOUND', jobId: bad.id, parent })
  })

  test('J2 a job of an unknown batch refuses the whole call, and nothing is written', async (world) => {
    const batch = await world.batch()
    const unknown = `${batch.slice(0, -4)}0000` as typeof batch
    const bad = world.job({ batch: unknown })
    await refusedWithoutTrace(world, bad, { code: 'BATCH_NOT_FOUND', jobId: bad.id, batch: unknown })
  })

  test('J2 a job of a sealed batch refuses the whole call, and nothing is written', async (world) => {
    const batch = await world.batch()
    await world.addOne({ batch, delayMs: 1_000 })
    await world.batches.seal(batch)
    const bad = world.job({ batch })
    await refusedWithoutTrace(world, bad, { code: 'BATCH_CLOSED', jobId: bad.id, batch })
  })

  test('J2 a job of a cancelled batch refuses the whole call, and nothing is written', async (world) => {
    const batch = await world.batch()
    await world.batches.cancel(batch)
    const bad = world.job({ batch })
    await refusedWithoutTrace(world, bad, { code: 'BATCH_CLOSED', jobId: bad.id, batch })
  })

  test('J2 a refused call is accepted once its cause is gone, with the same ids', async (world) => {
    const parent = world.job()
    const jobs = [world.job(), world.job({ dependsOn: [after(parent.id)] })]
    expect((await world.jobs.insert(jobs)).ok).toBe(false)
    await world.jobs.insert([parent])
    expect((await world.jobs.insert(jobs)).ok).toBe(true)
    expect(await world.statusOf(...jobs.map(({ id }) => id))).toEqual(['queued', 'blocked'])
  })
}

/** The bad job stands behind good ones that touch everything an insert can touch. */
async function refusedWithoutTrace(world: World, bad: NewJob, refusal: InsertRefusal): Promise<void> {
  const batch = await world.batch()
  const holder = await world.addOne({ ...unique('k'), group: 'g', limitKey: 'l' })
  await world.addOne({ ...unique('r', { onDuplicate: 'replace' }), payload: '"old"' })
  const before = await dump(world.backend)
  const good = [
    world.job({ batch, group: 'g', limitKey: 'l' }),
    world.job({ delayMs: 1_000 }),
    world.job({ dependsOn: [after(holder)] }),
    world.job(unique('k')),
    world.job({ ...unique('r', { onDuplicate: 'replace' }), payload: '"new"' }),
  ]
  expect(await world.jobs.insert([...good, bad])).toEqual({ ok: false, refusal })
  expect(await dump(world.backend)).toEqual(before)
  // Not even a place in a line: the next job of the group and the holder of the key are who they were.
  await world.add({ group: 'g' })
  expect((await world.accept({ ...unique('k'), queue: QUEUE }))[0]).toEqual({ id: holder, outcome: 'duplicate' })
}
