// How long a unique key is held, in each mode.
import { expect } from 'vitest'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import type { RunFacts } from '../../src/core/decide.ts'
import type { Transition } from '../../src/core/transition.ts'
import type { UniqueMode } from '../../src/core/unique.ts'
import { cancelledByHandler, completed, expiredForGood, failed, released, retried, snoozed } from './outcomes.ts'
import { unique } from './world.ts'
import type { Setup, World } from './world.ts'

const FINAL: Readonly<Record<string, (run: RunFacts) => Transition>> = {
  completed: (run) => completed(run),
  failed: (run) => failed(run),
  cancelled: cancelledByHandler,
  'expired for good': expiredForGood,
}

const AGAIN: Readonly<Record<string, (run: RunFacts) => Transition>> = {
  retried: (run) => retried(run, 10),
  released,
  snoozed: (run) => snoozed(run, 10),
}

export function uniqueRelease({ test }: Setup): void {
  test('D9 until-started: the key is free from the start of the job', async (world) => {
    await world.addOne(unique('k', { mode: 'until-started' }))
    await (await world.worker()).claimOne()
    expect(await isFree(world, 'until-started')).toBe(true)
  })

  test('D9 until-started: a job that lost its key and comes back does not disturb the new holder', async (world) => {
    const first = await world.addOne(unique('k', { mode: 'until-started' }))
    const worker = await world.worker()
    const run = await worker.claimOne()
    const second = await world.addOne(unique('k', { mode: 'until-started' }))
    expect(await world.apply(retried(run))).toEqual(['applied'])
    expect((await world.accept(unique('k', { mode: 'until-started' })))[0]).toEqual({
      id: second,
      outcome: 'duplicate',
    })
    expect(await world.drain(worker)).toEqual([second, first])
  })

  for (const [name, end] of Object.entries(FINAL)) {
    test(`D9 until-finished: the key is held while the job runs and free when it is ${name}`, async (world) => {
      await world.addOne(unique('k'))
      const run = await (await world.worker()).claimOne()
      expect(await isFree(world, 'until-finished')).toBe(false)
      await world.apply(end(run))
      expect(await isFree(world, 'until-finished')).toBe(true)
    })
  }

  for (const [name, end] of Object.entries(AGAIN)) {
    test(`D9 until-finished: the key is held while the job is ${name} and waits`, async (world) => {
      await world.addOne(unique('k'))
      await world.apply(end(await (await world.worker()).claimOne()))
      expect(await isFree(world, 'until-finished')).toBe(false)
    })
  }

  for (const mode of ['until-started', 'until-finished'] as const) {
    test(`D9 ${mode}: a waiting job that is cancelled or deleted frees its key`, async (world) => {
      const cancelled = await world.addOne(unique('k', { mode }))
      await world.apply(decideCancel(cancelled, 'no')[0])
      const deleted = await world.addOne(unique('k', { mode }))
      await world.apply(decideRemove(deleted)[0])
      expect(await isFree(world, mode)).toBe(true)
    })

    test(`D9 ${mode}: time alone frees nothing`, async (world) => {
      await world.addOne(unique('k', { mode, windowMs: 10 }))
      await world.clock.advance(100_000)
      await world.jobs.promote(10)
      expect(await isFree(world, mode)).toBe(false)
    })
  }

  test('D9 for-a-time: the key is held for the window, whatever becomes of the job', async (world) => {
    await world.addOne(unique('k', { mode: 'for-a-time', windowMs: 1_000 }))
    await world.apply(completed(await (await world.worker()).claimOne()))
    await world.clock.advance(999)
    expect(await isFree(world, 'for-a-time')).toBe(false)
    await world.clock.advance(1)
    expect(await isFree(world, 'for-a-time')).toBe(true)
  })

  test('D9 for-a-time: the window ends although the job still waits', async (world) => {
    await world.addOne({ ...unique('k', { mode: 'for-a-time', windowMs: 1_000 }), delayMs: 50_000 })
    await world.clock.advance(1_000)
    expect(await isFree(world, 'for-a-time')).toBe(true)
  })

  test('D9 for-a-time: a duplicate of an ended job names it', async (world) => {
    const id = await world.addOne(unique('k', { mode: 'for-a-time', windowMs: 1_000 }))
    await world.apply(completed(await (await world.worker()).claimOne()))
    const again = unique('k', { mode: 'for-a-time', windowMs: 1_000, onDuplicate: 'replace' })
    expect(await world.accept(again)).toEqual([{ id, outcome: 'duplicate' }])
  })
}

/** Would a job with the key go in now? Answered by trying, then deleting what the trial left. */
async function isFree(world: World, mode: UniqueMode): Promise<boolean> {
  const trial = world.job(unique('k', { mode, windowMs: 1 }))
  const reply = await world.jobs.insert([trial])
  if (!reply.ok || reply.results[0]?.outcome === 'duplicate') return false
  await world.apply(decideRemove(trial.id)[0])
  return true
}
