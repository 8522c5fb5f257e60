// Runs of a worker under bad timing, each once found broken: what starts, what goes back, what is told.
import { describe, expect, test } from 'vitest'
import type { StandardSchemaV1 } from '@standard-schema/spec'
import { defineJob, memory } from '../../src/index.ts'
import type { RunContext, Worker } from '../../src/index.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Around } from '../../src/store/wrap.ts'
import { Tally, VirtualClock, gate, setup, startProcess } from './support.ts'

const RATED = { rated: { rate: { limit: 100, per: '1s', burst: 10 } } } as const

function pause(clock: Clock, ms: number): Promise<void> {
  return new Promise((resolve) => clock.timer(ms, resolve))
}

/** One worker on a queue with a rate; the reply to every taken token comes that much later. */
async function slowTokens(replyMs: number) {
  const clock = new VirtualClock()
  const state = { taking: 0, starts: 0 }
  const around: Around = async (what, call) => {
    const value = await call()
    if (what !== 'limits.take') return value
    state.taking += 1
    await pause(clock, replyMs)
    return value
  }
  const job = defineJob({ name: 'job', queue: 'rated', run: () => void (state.starts += 1) })
  const { mill } = await startProcess(clock, memory({ clock }), [job], { queues: RATED, around })
  const worker = await mill.work()
  const handle = await mill.enqueue(job)
  await clock.until(() => state.taking === 1)
  return { clock, mill, worker, handle, state }
}

describe('memory', () => {
  test.each([0, 1, 2, 3, 4, 5, 6])(
    'D3 a run that ends after %i turns while the pump finds nothing to do is settled at once, and the next one starts',
    async (turns) => {
      const long = defineJob({
        name: 'long',
        async run() {
          await pause(clock, 3_000)
        },
      })
      const short = defineJob({
        name: 'short',
        async run() {
          for (let turn = 0; turn < turns; turn++) await Promise.resolve()
        },
      })
      const { clock, mill } = await setup([long, short])
      let completed = 0
      mill.on('completed', () => (completed += 1))
      await mill.enqueue(long, undefined, { priority: 1 })
      await mill.enqueueMany(Array.from({ length: 10 }, () => [short] as const))
      await mill.work({ concurrency: 1 })
      expect(await clock.until(() => completed === 11, 60_000)).toBe(3_000)
    },
  )

  test.each(['handler', 'listener'] as const)(
    'D2 quiet() called synchronously by a %s returns only what has not started, and no slot leaks',
    async (caller) => {
      const runs = new Tally()
      const held: { worker?: Worker } = {}
      const slow = defineJob({
        name: 'slow',
        async run({ input }: RunContext<number>) {
          runs.add(input)
          await pause(clock, 300)
        },
      })
      const hush = defineJob({
        name: 'hush',
        run({ input }: RunContext<number>) {
          runs.add(input)
          if (caller === 'handler') held.worker!.quiet()
        },
      })
      const { clock, mill } = await setup([slow, hush])
      const events = new Tally()
      for (const name of ['started', 'completed', 'stale'] as const) mill.on(name, () => events.add(name))
      mill.on('started', ({ name }) => {
        if (caller === 'listener' && name === 'hush') held.worker!.quiet()
      })
      const worker = (held.worker = await mill.work({ concurrency: 5 }))
      await clock.advance(1_000)
      const handles = await mill.enqueueMany([
        [slow, 1],
        [slow, 2],
        [hush, 3],
        [slow, 4],
        [slow, 5],
      ])
      await clock.advance(1_000)
      const seen = await Promise.all(handles.map((handle) => mill.jobs.get(handle)))
      expect(seen.map((job) => job!.status)).toEqual(['completed', 'completed', 'completed', 'queued', 'queued'])
      expect(seen.map((job) => job!.attemptCount)).toEqual([1, 1, 1, 0, 0])
      expect(worker.running).toBe(0)
      worker.resume()
      await clock.advance(1_000)
      expect([...runs.counts]).toEqual([1, 2, 3, 4, 5].map((input) => [input, 1]))
      expect([...events.counts]).toEqual([
        ['started', 5],
        ['completed', 5],
      ])
      expect(worker.running).toBe(0)
      const stopMs = clock.nowMs()
      await clock.during(worker.stop({ deadline: '20s' }))
      expect(clock.nowMs() - stopMs).toBeLessThan(1_000)
    },
  )

  test.each(['call', 'reply'] as const)(
    'J8 a report whose %s was lost goes again before newer ones: no line is missing, progress never goes back',
    async (lost) => {
      let losses = 0
      const job = defineJob({
        name: 'job',
        async run({ log, progress }) {
          losses = 3
          for (let step = 1; step <= 6; step++) {
            log.info(`line ${step}`)
            progress(step * 10)
            await pause(clock, 40)
          }
          await pause(clock, 2_000)
        },
      })
      const { clock, mill } = await setup([job], {
        around: async (what, call) => {
          // Reports travel with either.
          const isLost = (what === 'jobs.apply' || what === 'jobs.claim') && losses-- > 0
          if (isLost && lost === 'call') throw Object.assign(new Error('down'), { code: 'ECONNRESET' })
          const value = await call()
          if (isLost) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
          return value
        },
      })
      const told: number[] = []
      mill.on('progress', ({ progress }) => told.push(Number(progress)))
      await mill.work()
      const handle = await mill.enqueue(job)
      await clock.during(handle.result())
      const lines = await mill.jobs.logs(handle)
      expect(lines.map(({ message }) => message)).toEqual([1, 2, 3, 4, 5, 6].map((step) => `line ${step}`))
      expect((await mill.jobs.get(handle))!.progress).toBe(60)
      expect(losses).toBeLessThanOrEqual(0)
      expect(told).toEqual(told.toSorted((a, b) => a - b))
      expect(told.at(-1)).toBe(60)
    },
  )

  test('D2 a handler is not called when its run timed out while its input was still being validated', async () => {
    const called: number[] = []
    let validationMs = 0
    const schema: StandardSchemaV1<number, number> = {
      '~standard': {
        version: 1,
        vendor: 'test',
        validate: async (value) => {
          if (validationMs > 0) await pause(clock, validationMs)
          return { value: Number(value) }
        },
      },
    }
    const job = defineJob({
      name: 'job',
      input: schema,
      timeout: 200,
      attempts: 1,
      run: ({ input }) => void called.push(input),
    })
    const { clock, mill } = await setup([job])
    const fast = await mill.enqueue(job, 1)
    const late = await mill.enqueue(job, 2, { delay: '1s' })
    const aborting = await mill.enqueue(job, 3, { delay: '10s' })
    await mill.work()
    await clock.during(fast.result())
    validationMs = 2_500
    await clock.advance(5_000)
    expect(called).toEqual([1])
    expect(await mill.jobs.get(late)).toMatchObject({ status: 'failed', lastError: { code: 'JOB_TIMEOUT' } })
    // Within the grace after its abort.
    validationMs = 500
    await clock.advance(10_000)
    expect(await mill.jobs.get(aborting)).toMatchObject({ status: 'failed', lastError: { code: 'JOB_TIMEOUT' } })
    expect(called).toEqual([1])
  })

  test('D2 a stop while tokens are taken ends with their reply and does not wait for its deadline', async () => {
    const { clock, mill, worker, handle, state } = await slowTokens(200)
    const stopMs = clock.nowMs()
    await clock.during(worker.stop({ deadline: '20s' }))
    expect(clock.nowMs() - stopMs).toBeLessThanOrEqual(250)
    expect(worker.running).toBe(0)
    expect(state.starts).toBe(0)
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0, crashCount: 0 })
  })

  test('J3 a job that waits for its token when its queue is paused does not start before the resume', async () => {
    const { clock, mill, worker, handle, state } = await slowTokens(2_500)
    await mill.queues.pause('rated')
    await clock.advance(20_000)
    expect(state.starts).toBe(0)
    expect(worker.running).toBe(0)
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0 })
    await mill.queues.resume('rated')
    await clock.during(handle.result(), 4_000)
    expect(state.starts).toBe(1)
  })

  test('D2 a run that extends itself in the last moment before its timeout still has one', async () => {
    const clock = new VirtualClock()
    const lastMoment = gate()
    let dueMs = Infinity
    // The loop was blocked: whatever else was due gets its turn while the worker takes a breath.
    const blocked: Clock = {
      nowMs: () => clock.nowMs(),
      monoMs: () => clock.monoMs(),
      timer: (delayMs, fire) => clock.timer(delayMs, fire),
      breathe() {
        if (clock.nowMs() >= dueMs) lastMoment.open()
        return clock.breathe()
      },
    }
    const job = defineJob({
      name: 'job',
      timeout: 300,
      attempts: 1,
      async run({ extend }) {
        dueMs = clock.nowMs() + 300
        await lastMoment.opened
        extend(200)
        await new Promise<never>(() => undefined)
      },
    })
    const { mill } = await startProcess(blocked, memory({ clock }), [job])
    await mill.work()
    const handle = await mill.enqueue(job)
    await clock.until(() => dueMs < Infinity)
    const startMs = clock.nowMs()
    await expect(clock.during(handle.result(), 10_000)).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect((await mill.jobs.get(handle))!.lastError).toMatchObject({ code: 'JOB_TIMEOUT' })
    // The extended timeout, and the grace for a handler that ignores its abort.
    expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(500)
    expect(clock.nowMs() - startMs).toBeLessThanOrEqual(1_600)
  })
})
