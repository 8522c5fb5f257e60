// A job and the ways to enqueue it.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { UNKNOWN_ID, setup } from './support.ts'

const UUID_V7 = /^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/

const echo = defineJob({ name: 'echo', queue: 'echoes', run: ({ input }: RunContext<number>) => input })
const note = defineJob({ name: 'note', queue: 'notes', run: ({ input }: RunContext<string>) => input })
const jobs = [echo, note] as const

async function stored(mill: Awaited<ReturnType<typeof setup<typeof jobs>>>['mill']): Promise<number> {
  return (await mill.jobs.list({}, { limit: 200 })).items.length
}

describe('memory', () => {
  test('J1 a completed job shows every field', async () => {
    const { clock, mill } = await setup(jobs)
    const batch = await mill.batch('letters')
    const enqueuedAt = new Date(clock.nowMs())
    const options = { tags: ['a', 'b'], meta: { tenant: 7 }, priority: 30, attempts: 9, timeout: '40s' } as const
    const handle = await batch.add(echo, 5, { ...options, delay: '10s' })
    const worker = await mill.work()
    await clock.during(handle.result())
    const job = await mill.jobs.get(handle)
    expect(handle.id).toMatch(UUID_V7)
    expect(job).toMatchObject({
      id: handle.id,
      connection: 'default',
      queue: 'echoes',
      name: 'echo',
      payload: 5,
      priority: 30,
      status: 'completed',
      attemptCount: 1,
      maxAttempts: 9,
      crashCount: 0,
      timeoutMs: 40_000,
      enqueuedAt,
      lastError: null,
      result: 5,
      worker: worker.ids[0],
      batch: batch.id,
      tags: ['a', 'b'],
      meta: { tenant: 7 },
      parents: [],
    })
    expect(job!.runAt.getTime() - enqueuedAt.getTime()).toBe(10_000)
    expect(job!.startedAt!.getTime()).toBeGreaterThanOrEqual(job!.runAt.getTime())
    expect(job!.finishedAt!.getTime()).toBeGreaterThanOrEqual(job!.startedAt!.getTime())
  })

  test('J1 the first enqueued-at survives retry and replay, the last error survives until the job completes', async () => {
    let fails = 2
    const flaky = defineJob({
      name: 'flaky',
      retry: fixed({ attempts: 1, delay: '5s' }),
      run() {
        if (fails-- > 0) throw new Error('not yet')
        return 'done'
      },
    })
    const { clock, mill } = await setup([flaky])
    const enqueuedAt = new Date(clock.nowMs())
    await mill.work()
    const handle = await mill.enqueue(flaky, undefined, { attempts: 2 })
    await clock.until(() => fails === 0)
    await clock.advance(100)
    expect(await mill.jobs.get(handle)).toMatchObject({
      status: 'failed',
      attemptCount: 2,
      lastError: { message: 'not yet' },
    })
    await mill.deadLetters.replay(handle)
    expect(await clock.during(handle.result())).toBe('done')
    expect(await mill.jobs.get(handle)).toMatchObject({ enqueuedAt, status: 'completed', attemptCount: 1 })
  })

  test('J2 many jobs of mixed kinds go in one round trip, handles in the order given', async () => {
    const { clock, mill, calls } = await setup(jobs)
    const handles = await mill.enqueueMany([
      [echo, 1],
      [note, 'two', { priority: 'high' }],
      [echo, 3, { delay: '1s' }],
    ])
    expect(calls.get('jobs.insert')).toBe(1)
    await mill.work()
    const results: [number, string, number] = [
      await clock.during(handles[0].result()),
      await clock.during(handles[1].result()),
      await clock.during(handles[2].result()),
    ]
    expect(results).toEqual([1, 'two', 3])
  })

  test('J2 a bulk call is all or none', async () => {
    const { mill } = await setup(jobs)
    const lines = [
      [echo, 1],
      [echo, 2, { after: UNKNOWN_ID }],
    ] as const
    await expect(mill.enqueueMany(lines)).rejects.toMatchObject({ code: 'DEPENDENCY_NOT_FOUND' })
    expect(await stored(mill)).toBe(0)
  })

  test('J2 ten thousand jobs in one call all run once', async () => {
    const { clock, mill, calls } = await setup(jobs)
    const runs: number[] = []
    mill.on('completed', () => runs.push(1))
    await mill.enqueueMany(Array.from({ length: 10_000 }, (_, index) => [echo, index] as const))
    expect(calls.get('jobs.insert')).toBe(1)
    await mill.work({ concurrency: 100 })
    await clock.until(() => runs.length >= 10_000)
    const [counts] = await mill.jobs.counts('echoes')
    expect(counts!.counts).toMatchObject({ completed: 10_000, queued: 0, running: 0 })
  })

  test('J2 a delay and a runAt keep the job until their time, not longer', async () => {
    const { clock, mill } = await setup(jobs)
    const startMs = clock.nowMs()
    await mill.work()
    const starts = new Map<string, number>()
    mill.on('started', ({ id }) => starts.set(id, clock.nowMs() - startMs))
    const delayed = await mill.enqueue(echo, 1, { delay: '5m' })
    const dated = await mill.enqueue(echo, 2, { runAt: new Date(startMs + 90_000) })
    const past = await mill.enqueue(echo, 3, { runAt: startMs - 1_000 })
    expect(await mill.jobs.get(delayed)).toMatchObject({ status: 'scheduled', waitsFor: 'delay' })
    await clock.during(delayed.result())
    expect(starts.get(past.id)).toBe(0)
    expect(starts.get(dated.id)).toBeGreaterThanOrEqual(90_000)
    expect(starts.get(dated.id)).toBeLessThan(90_100)
    expect(starts.get(delayed.id)).toBeGreaterThanOrEqual(300_000)
    expect(starts.get(delayed.id)).toBeLessThan(300_100)
  })

  test('J2 priority, attempts, timeout, tags and meta of one call go before those of the kind', async () => {
    const kind = defineJob({ name: 'kind', priority: 'low', attempts: 8, timeout: '1m', tags: ['kind'], run: () => 1 })
    const { mill } = await setup([kind])
    const plain = await mill.enqueue(kind)
    expect(await mill.jobs.get(plain)).toMatchObject({
      priority: 200,
      maxAttempts: 8,
      timeoutMs: 60_000,
      tags: ['kind'],
    })
    const own = await mill.enqueue(kind, undefined, {
      priority: 1,
      attempts: 2,
      timeout: '2s',
      tags: ['call'],
      meta: { a: 1 },
    })
    expect(await mill.jobs.get(own)).toMatchObject({
      priority: 1,
      maxAttempts: 2,
      timeoutMs: 2_000,
      tags: ['kind', 'call'],
      meta: { a: 1 },
    })
  })

  test('J2 an id of the caller makes enqueueing repeatable', async () => {
    const { clock, mill } = await setup(jobs)
    const first = await mill.enqueue(echo, 1, { id: UNKNOWN_ID })
    const again = await mill.enqueue(echo, 2, { id: UNKNOWN_ID })
    expect([first.duplicate, again.duplicate, again.id]).toEqual([false, true, first.id])
    await mill.work()
    expect(await clock.during(again.result())).toBe(1)
    expect(await stored(mill)).toBe(1)
  })

  test('J2 a unique key, a batch and a dependency are options of one call', async () => {
    const { clock, mill } = await setup(jobs)
    const batch = await mill.batch()
    const parent = await mill.enqueue(echo, 1, { unique: 'one', batch })
    const twin = await mill.enqueue(echo, 2, { unique: 'one', batch })
    const child = await mill.enqueue(note, 'child', { after: parent })
    expect(twin).toMatchObject({ id: parent.id, duplicate: true, outcome: 'duplicate' })
    expect(await mill.jobs.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'parents', parents: [parent.id] })
    expect(await batch.progress()).toMatchObject({ total: 1 })
    await mill.work()
    expect(await clock.during(child.result())).toBe('child')
  })

  test('J2 a lost reply of an insert is repeated and the job is written once', async () => {
    let lost = 0
    const { clock, mill } = await setup(jobs, {
      around: async (what, call) => {
        const value = await call()
        if (what === 'jobs.insert' && lost++ === 0) throw Object.assign(new Error('gone'), { code: 'ECONNRESET' })
        return value
      },
    })
    const handle = await clock.during(mill.enqueue(echo, 1).catch(() => null))
    expect(lost).toBeGreaterThan(0)
    // Whatever the caller is told, there is at most one job; and a reported success is one job.
    expect(await stored(mill)).toBe(1)
    if (handle !== null) expect(handle.duplicate).toBe(false)
  })
})
