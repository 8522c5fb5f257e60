// The worker: slots, timeouts, drain, and how few calls it needs.
import { describe, expect, test } from 'vitest'
import { defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, aborted, gate, setup, startProcess } from './support.ts'

/** A job that ends after a while of virtual time; counts how many run at once. */
function crowd(clock: { timer(ms: number, fire: () => void): unknown }) {
  const seen = { now: 0, most: 0, runs: 0 }
  const job = defineJob({
    name: 'crowd',
    async run({ input }: RunContext<number>) {
      seen.runs += 1
      seen.now += 1
      seen.most = Math.max(seen.most, seen.now)
      await new Promise<void>((resolve) => void clock.timer(input, resolve))
      seen.now -= 1
    },
  })
  return { job, seen }
}

describe('memory', () => {
  test('D2 never more jobs run at once than the concurrency says, over all queues of the worker', async () => {
    const clock = new VirtualClock()
    const { job, seen } = crowd(clock)
    const { mill } = await startProcess(clock, memory({ clock }), [job])
    const lines = Array.from({ length: 500 }, (_, index) => [job, (index * 7) % 50] as const)
    await mill.enqueueMany(lines)
    const worker = await mill.work({ concurrency: 7 })
    await clock.until(() => {
      expect(worker.running).toBeLessThanOrEqual(7)
      return seen.runs === 500 && seen.now === 0
    })
    expect(seen.most).toBe(7)
  })

  test('D2 a handler is told when its time is up, fails with JOB_TIMEOUT and is tried again', async () => {
    const reasons: unknown[] = []
    const slow = defineJob({
      name: 'slow',
      timeout: '30s',
      attempts: 2,
      async run({ signal }) {
        reasons.push(await aborted(signal))
        throw reasons.at(-1)
      },
    })
    const { clock, mill } = await setup([slow])
    await mill.work()
    const handle = await mill.enqueue(slow)
    expect(await clock.until(() => reasons.length === 1)).toBe(30_000)
    await expect(clock.during(handle.result())).rejects.toMatchObject({
      code: 'JOB_FAILED',
      cause: { code: 'JOB_TIMEOUT' },
    })
    expect(reasons).toMatchObject([{ code: 'JOB_TIMEOUT' }, { code: 'JOB_TIMEOUT' }])
    const [first] = await mill.jobs.attempts(handle)
    expect(first).toMatchObject({ status: 'retry', error: { class: 'timeout' } })
  })

  test('D2 a worker may bound its runs below the timeout of a job', async () => {
    const slow = defineJob({
      name: 'slow',
      timeout: '1h',
      attempts: 1,
      async run({ signal }) {
        throw await aborted(signal)
      },
    })
    const { clock, mill } = await setup([slow])
    await mill.work({ timeout: '2s' })
    const startMs = clock.nowMs()
    const handle = await mill.enqueue(slow)
    await expect(clock.during(handle.result())).rejects.toMatchObject({ cause: { code: 'JOB_TIMEOUT' } })
    expect(clock.nowMs() - startMs).toBeLessThan(5_000)
    await expect(mill.work({ timeout: 'soon' as never })).rejects.toMatchObject({ code: 'INVALID_DURATION' })
  })

  test('P1 a worker may allow fewer attempts than a job has, and its handlers are told so', async () => {
    const told: unknown[] = []
    const flaky = defineJob({
      name: 'flaky',
      attempts: 8,
      run({ attempt, maxAttempts, willRetry }) {
        told.push([attempt, maxAttempts, willRetry])
        throw new Error('not today')
      },
    })
    const { clock, mill } = await setup([flaky])
    await mill.work({ attempts: 2 })
    const handle = await mill.enqueue(flaky)
    await expect(clock.during(handle.result())).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(told).toEqual([
      [1, 2, true],
      [2, 2, false],
    ])
    expect(await handle.status()).toBe('failed')
    expect(await mill.jobs.get(handle), 'its own attempts are as they were: a replay elsewhere has them').toMatchObject(
      { attemptCount: 2, maxAttempts: 8 },
    )
    await expect(mill.work({ attempts: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('D2 a handler that ignores its abort frees its slot one grace after its timeout', async () => {
    const stuck = defineJob({
      name: 'stuck',
      timeout: '5s',
      attempts: 1,
      run: () => new Promise<never>(() => undefined),
    })
    const next = defineJob({ name: 'next', run: () => 'ran' })
    const { clock, mill } = await setup([stuck, next])
    await mill.work({ concurrency: 1 })
    const handle = await mill.enqueue(stuck)
    const waiting = await mill.enqueue(next)
    const startMs = clock.nowMs()
    expect(await clock.during(waiting.result())).toBe('ran')
    expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(6_000)
    expect(clock.nowMs() - startMs).toBeLessThanOrEqual(6_100)
    expect(await handle.status()).toBe('failed')
  })

  test('D2 a run extends its own deadline, and may shorten it', async () => {
    const ends: number[] = []
    const longer = defineJob({
      name: 'longer',
      timeout: '5s',
      attempts: 1,
      async run(context: RunContext<string>) {
        context.extend('20s')
        await aborted(context.signal)
        ends.push(clock.nowMs() - startMs)
        throw context.signal.reason
      },
    })
    const shorter = defineJob({ ...options(), name: 'shorter', timeout: '5m' })
    function options() {
      return {
        attempts: 1,
        async run(context: RunContext<string>) {
          context.extend('2s')
          await aborted(context.signal)
          ends.push(clock.nowMs() - startMs)
          throw context.signal.reason
        },
      }
    }
    const { clock, mill } = await setup([longer, shorter])
    await mill.work()
    const startMs = clock.nowMs()
    await mill.enqueue(longer, '')
    await clock.until(() => ends.length === 1)
    expect(ends[0]).toBe(20_000)
    const againMs = clock.nowMs()
    await mill.enqueue(shorter, '')
    await clock.until(() => ends.length === 2)
    expect(ends[1]! - (againMs - startMs)).toBe(2_000)
  })

  test('D2 a drain waits for what runs, returns what has not started, and burns no attempt', async () => {
    const clock = new VirtualClock()
    const { job, seen } = crowd(clock)
    const { mill } = await startProcess(clock, memory({ clock }), [job])
    const worker = await mill.work({ concurrency: 4 })
    await mill.enqueueMany(Array.from({ length: 40 }, () => [job, 1] as const))
    await clock.until(() => seen.runs === 40 && seen.now === 0)
    await mill.enqueueMany(Array.from({ length: 20 }, () => [job, 5_000] as const))
    await clock.until(() => seen.now === 4)
    await clock.during(worker.stop(), 6_000)
    const [counts] = await mill.jobs.counts('default')
    expect(counts!.counts).toMatchObject({ completed: 44, queued: 16, running: 0 })
    const waiting = await mill.jobs.list({ status: 'queued' })
    expect(waiting.items.every(({ attemptCount, crashCount }) => attemptCount === 0 && crashCount === 0)).toBe(true)
    expect(worker.running).toBe(0)
  })

  test('D2 at the deadline of a stop handlers are aborted and their jobs given back uncounted', async () => {
    const started = gate()
    let reason: unknown
    const endless = defineJob({
      name: 'endless',
      run: ({ signal }) => {
        void aborted(signal).then((why) => (reason = why))
        started.open()
        return new Promise<never>(() => undefined)
      },
    })
    const { clock, mill } = await setup([endless])
    await mill.work()
    const handle = await mill.enqueue(endless)
    await clock.during(started.opened)
    const startMs = clock.nowMs()
    await clock.during(mill.stop({ deadline: '10s' }))
    expect(clock.nowMs() - startMs).toBeLessThanOrEqual(12_000)
    expect(reason).toMatchObject({ code: 'STOPPED' })
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0, crashCount: 0 })
    expect(await mill.jobs.attempts(handle)).toMatchObject([{ status: 'released' }])
  })

  test('D2 quiet takes no new jobs, resume goes on', async () => {
    const job = defineJob({ name: 'job', run: () => 1 })
    const { clock, mill } = await setup([job])
    const worker = await mill.work()
    worker.quiet()
    const handle = await mill.enqueue(job)
    await clock.advance(20_000)
    expect(await handle.status()).toBe('queued')
    worker.resume()
    expect(await clock.during(handle.result(), 1_000)).toBe(1)
  })

  test('D2 no-op jobs at concurrency 100 cost at most 0.05 store calls each', async () => {
    const noop = defineJob({ name: 'noop', run: async () => undefined })
    const { clock, mill, calls } = await setup([noop])
    await mill.enqueueMany(Array.from({ length: 10_000 }, () => [noop] as const))
    let done = 0
    mill.on('completed', () => (done += 1))
    await mill.work({ concurrency: 100 })
    await clock.until(() => done === 10_000)
    const used = (calls.get('jobs.claim') ?? 0) + (calls.get('jobs.apply') ?? 0)
    expect(used / 10_000).toBeLessThanOrEqual(0.05)
  })

  test('D2 a job without a handler in this process is retried later and never lost', async () => {
    const known = defineJob({ name: 'known', queue: 'shared', run: () => 1 })
    const unknown = defineJob({ name: 'unknown', queue: 'shared', run: () => 'ran' })
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const producer = await startProcess(clock, backend, [known, unknown])
    const worker = await startProcess(clock, backend, [known])
    await worker.mill.work()
    const handle = await producer.mill.enqueue(unknown)
    await expect(clock.during(handle.result())).rejects.toMatchObject({
      code: 'JOB_FAILED',
      cause: { code: 'UNKNOWN_JOB' },
    })
    await producer.mill.work()
    await worker.mill.stop()
    await producer.mill.deadLetters.replay(handle)
    expect(await clock.during(handle.result())).toBe('ran')
  })
})
