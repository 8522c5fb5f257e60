// Deduplication: what a second insert with a held key does, for every mode and every way to treat it.
import { expect } from 'vitest'
import type { NewJob } from '../../src/core/job.ts'
import type { OnDuplicate, UniqueMode } from '../../src/core/unique.ts'
import { dump } from './dump.ts'
import { NO_LIMITS, QUEUE, unique } from './world.ts'
import type { Setup } from './world.ts'

const MODES: readonly UniqueMode[] = ['until-started', 'until-finished', 'for-a-time']
const WAYS: readonly OnDuplicate[] = ['keep', 'replace', 'debounce']

/** What the second request would have, were it a job of its own. */
const SECOND = {
  payload: '"second"',
  priority: 20,
  timeoutMs: 999,
  meta: '{"m":2}',
  tags: ['second'],
  maxAttempts: 8,
} satisfies Partial<NewJob>

export function uniqueDuplicates({ test }: Setup): void {
  for (const mode of MODES) {
    test(`D9 ${mode}: a duplicate of a waiting job is not inserted and names the holder`, async (world) => {
      const holder = await world.addOne(unique('k', { mode }))
      const before = await dump(world.backend)
      await world.clock.advance(5)
      expect(await world.accept({ ...SECOND, ...unique('k', { mode }) })).toEqual([
        { id: holder, outcome: 'duplicate' },
      ])
      expect(await dump(world.backend)).toEqual(before)
    })

    for (const waits of ['queued', 'scheduled', 'blocked'] as const) {
      test(`D9 ${mode}: replace gives a ${waits} holder what the new request has, but not its time`, async (world) => {
        const holder = await world.addOne({ ...unique('k', { mode }), ...(await waitingAs(world, waits)) })
        const before = await world.get(holder)
        await world.clock.advance(5)
        const second = { ...SECOND, ...unique('k', { mode, onDuplicate: 'replace' }), delayMs: 77 }
        expect(await world.accept(second)).toEqual([{ id: holder, outcome: 'replaced' }])
        const { enqueuedAtMs, runAtMs, status, waitsFor } = before
        expect(await world.get(holder)).toMatchObject({ ...SECOND, enqueuedAtMs, runAtMs, status, waitsFor })
        expect(Object.keys((await dump(world.backend)).jobs)).toHaveLength(waits === 'blocked' ? 2 : 1)
      })
    }

    test(`D9 ${mode}: debounce also pushes the start back to the delay of the new request`, async (world) => {
      const holder = await world.addOne({ ...unique('k', { mode }), delayMs: 50 })
      await world.clock.advance(40)
      const second = { ...SECOND, ...unique('k', { mode, onDuplicate: 'debounce' }), delayMs: 50 }
      expect(await world.accept(second)).toEqual([{ id: holder, outcome: 'replaced' }])
      expect(await world.get(holder)).toMatchObject({
        ...SECOND,
        status: 'scheduled',
        runAtMs: world.clock.nowMs() + 50,
      })
      await world.clock.advance(49)
      await world.jobs.promote(10)
      expect(await world.statusOf(holder)).toEqual(['scheduled'])
      await world.clock.advance(1)
      await world.jobs.promote(10)
      expect(await world.statusOf(holder)).toEqual(['queued'])
    })

    test(`D9 ${mode}: debounce makes a queued holder wait again`, async (world) => {
      const holder = await world.addOne(unique('k', { mode }))
      await world.accept({ ...SECOND, ...unique('k', { mode, onDuplicate: 'debounce' }), delayMs: 30 })
      expect(await world.get(holder)).toMatchObject({ status: 'scheduled', waitsFor: 'delay' })
      expect(await (await world.worker()).claim()).toEqual([])
    })
  }

  for (const mode of ['until-finished', 'for-a-time'] as const) {
    for (const onDuplicate of WAYS) {
      test(`D9 ${mode}, ${onDuplicate}: a holder that has started is left alone and named`, async (world) => {
        const holder = await world.addOne(unique('k', { mode }))
        await (await world.worker()).claimOne()
        const before = await dump(world.backend)
        const second = { ...SECOND, ...unique('k', { mode, onDuplicate }), delayMs: 10 }
        expect(await world.accept(second)).toEqual([{ id: holder, outcome: 'duplicate' }])
        expect(await dump(world.backend)).toEqual(before)
      })
    }
  }

  for (const onDuplicate of WAYS) {
    test(`D9 ${onDuplicate}: a job of the same call can be the holder`, async (world) => {
      const jobs = [1, 2, 3].map((no) => world.job({ ...unique('k', { onDuplicate }), payload: `${no}`, delayMs: 100 }))
      const holder = jobs[0]!.id
      const outcome = onDuplicate === 'keep' ? 'duplicate' : 'replaced'
      expect(await world.jobs.insert(jobs)).toEqual({
        ok: true,
        results: [
          { id: holder, outcome: 'inserted' },
          { id: holder, outcome },
          { id: holder, outcome },
        ],
      })
      expect((await world.get(holder)).payload).toBe(onDuplicate === 'keep' ? '1' : '3')
    })
  }

  test('D9 the way to treat a duplicate is that of the new request', async (world) => {
    const holder = await world.addOne(unique('k', { onDuplicate: 'replace' }))
    expect(await world.accept({ ...SECOND, ...unique('k', { onDuplicate: 'keep' }) })).toEqual([
      { id: holder, outcome: 'duplicate' },
    ])
  })

  test('D9 a replaced job keeps its place when its priority stays, and goes to the end when it changes', async (world) => {
    const [first, second, third] = await world.add(unique('a'), unique('b'), {})
    await world.accept({ ...unique('a', { onDuplicate: 'replace' }), payload: '"new"' })
    const worker = await world.worker()
    expect((await worker.claimOne()).id).toBe(first)
    await world.accept({ ...unique('b', { onDuplicate: 'replace' }), priority: 101 })
    expect(await world.drain(worker)).toEqual([third, second])
  })

  test('D9 a replaced job keeps its place in the line of a slot and of a group', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 1 } })
    const slots = await world.add({}, unique('a'), {})
    const groups = await world.add(
      { queue: 'other', group: 'g' },
      { queue: 'other', group: 'g', ...unique('b') },
      { queue: 'other', group: 'g' },
    )
    await world.accept({ ...unique('a', { onDuplicate: 'replace' }), payload: '"new"' })
    await world.accept({ queue: 'other', ...unique('b', { onDuplicate: 'replace' }), payload: '"new"' })
    const worker = await world.worker()
    expect(await world.drain(worker)).toEqual(slots)
    expect(await world.drain(worker, ['other'])).toEqual(groups)
  })

  test('D9 the scope of a key is its queue', async (world) => {
    await world.addOne(unique('k'))
    expect((await world.accept({ ...unique('k'), queue: 'other' }))[0]?.outcome).toBe('inserted')
  })

  test('D9 different keys and jobs without a key never meet', async (world) => {
    await world.add(unique('a'), unique('b'), {}, {})
    expect(await world.countReady()).toBe(4)
  })

  test('D9 a duplicate does not join the batch of its request', async (world) => {
    const batch = await world.batch()
    await world.addOne(unique('k'))
    await world.accept({ ...unique('k'), batch })
    expect((await world.batches.get(batch))?.counts).toMatchObject({ total: 0, pending: 0 })
  })

  test('D9 a repeated insert says already, not duplicate of itself', async (world) => {
    const job = world.job(unique('k'))
    await world.jobs.insert([job])
    expect(await world.jobs.insert([job])).toEqual({ ok: true, results: [{ id: job.id, outcome: 'already' }] })
  })
}

async function waitingAs(
  world: Parameters<Parameters<Setup['test']>[1]>[0],
  waits: 'queued' | 'scheduled' | 'blocked',
): Promise<Partial<NewJob>> {
  if (waits === 'queued') return {}
  if (waits === 'scheduled') return { delayMs: 60_000 }
  return { dependsOn: [{ parent: await world.addOne(), onFailure: 'fail' }] }
}
