// Cancelling and removing jobs in every state, and what a running handler sees of it.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { JobHandle, RunContext } from '../../src/index.ts'
import { aborted, gate, setup } from './support.ts'

const STATES = ['scheduled', 'queued', 'blocked', 'running', 'completed', 'failed', 'cancelled'] as const
type State = (typeof STATES)[number]

/** A job in the state asked for; `runs` counts how often its handler was called. */
async function inState(state: State) {
  const seen = { runs: 0, reason: undefined as unknown }
  const started = gate()
  const job = defineJob({
    name: 'job',
    queue: 'jobs',
    attempts: 1,
    async run({ input, signal }: RunContext<string>) {
      seen.runs += 1
      started.open()
      if (input === 'failed') throw new Error('as asked')
      if (input !== 'running') return
      seen.reason = await aborted(signal)
      throw seen.reason
    },
  })
  const parent = defineJob({ name: 'parent', queue: 'parents', run: () => 1 })
  const { clock, mill } = await setup([job, parent])
  const after = state === 'blocked' ? { after: await mill.enqueue(parent, undefined, { delay: '1d' }) } : {}
  const handle: JobHandle = await mill.enqueue(job, state, { ...after, ...(state === 'scheduled' && { delay: '1h' }) })
  if (state === 'cancelled') await handle.cancel()
  if (!['scheduled', 'queued', 'blocked', 'cancelled'].includes(state)) {
    await mill.work()
    await clock.during(started.opened)
    await clock.advance(100)
  }
  expect(await handle.status()).toBe(state)
  const runsBefore = seen.runs
  return { clock, mill, handle, seen, runsBefore }
}

const CANCEL_ANSWERS = {
  scheduled: 'cancelled',
  queued: 'cancelled',
  blocked: 'cancelled',
  running: 'requested',
  completed: 'finished',
  failed: 'finished',
  cancelled: 'finished',
} as const

describe('memory', () => {
  test.each(STATES)('J9 cancelling a job that is %s', async (state) => {
    const { clock, mill, handle, seen, runsBefore } = await inState(state)
    const answer = await mill.jobs.cancel(handle, { reason: 'not wanted', actor: 'ann' })
    // A job that is cancelled twice has not changed: both words are true.
    if (state === 'cancelled') expect(['cancelled', 'finished']).toContain(answer)
    else expect(answer).toBe(CANCEL_ANSWERS[state])
    await mill.work()
    await clock.advance(2 * 3_600_000)
    expect(await handle.status()).toBe(state === 'completed' || state === 'failed' ? state : 'cancelled')
    expect(seen.runs).toBe(runsBefore)
    if (state === 'running') expect(seen.reason).toMatchObject({ code: 'JOB_CANCELLED' })
  })

  test.each(STATES)('J9 removing a job that is %s', async (state) => {
    const { clock, mill, handle, seen, runsBefore } = await inState(state)
    expect(await mill.jobs.remove(handle)).toBe(state === 'running' ? 'requested' : 'removed')
    await mill.work()
    await clock.advance(2 * 3_600_000)
    expect(await mill.jobs.get(handle)).toBeNull()
    expect(seen.runs).toBe(runsBefore)
    expect(await mill.jobs.remove(handle)).toBe('missing')
    expect(await mill.jobs.cancel(handle)).toBe('missing')
    if (state === 'running') expect(seen.reason).toMatchObject({ code: 'JOB_CANCELLED' })
  })

  test('J9 a running job is told within milliseconds, and within one heartbeat without any wake-up', async () => {
    for (const [deaf, limitMs] of [
      [false, 50],
      [true, 2_600],
    ] as const) {
      let reason: unknown
      const started = gate()
      const job = defineJob({
        name: 'job',
        async run({ signal }) {
          started.open()
          reason = await aborted(signal)
          throw reason
        },
      })
      const { clock, mill } = await setup([job], { deaf })
      await mill.work()
      const handle = await mill.enqueue(job)
      await clock.during(started.opened)
      await handle.cancel()
      expect(await clock.until(() => reason !== undefined, 10_000)).toBeLessThanOrEqual(limitMs)
      await expect(clock.during(handle.result())).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
    }
  })

  test('J9 a handler that ignores its cancellation loses its slot one grace later and the job is cancelled', async () => {
    const started = gate()
    const deafJob = defineJob({
      name: 'deaf',
      run: () => {
        started.open()
        return new Promise<never>(() => undefined)
      },
    })
    const next = defineJob({ name: 'next', run: () => 'ran' })
    const { clock, mill } = await setup([deafJob, next])
    await mill.work({ concurrency: 1 })
    const handle = await mill.enqueue(deafJob)
    await clock.during(started.opened)
    await handle.cancel()
    expect(await clock.during(mill.enqueueAndWait(next, undefined), 1_200)).toBe('ran')
    expect(await handle.status()).toBe('cancelled')
  })

  test('J9 a run that completes although it was cancelled is completed, one that fails is cancelled', async () => {
    for (const [ends, status] of [
      ['return', 'completed'],
      ['throw', 'cancelled'],
      ['retry', 'cancelled'],
    ] as const) {
      const started = gate()
      const job = defineJob({
        name: 'job',
        attempts: 3,
        async run({ signal }) {
          started.open()
          await aborted(signal)
          if (ends !== 'return') throw new Error(ends)
        },
      })
      const { clock, mill } = await setup([job])
      await mill.work()
      const handle = await mill.enqueue(job)
      await clock.during(started.opened)
      await handle.cancel()
      await clock.advance(10_000)
      expect(await handle.status()).toBe(status)
    }
  })

  test('J9 many jobs are cancelled in one call and each has its answer', async () => {
    const job = defineJob({ name: 'job', run: () => 1 })
    const { mill } = await setup([job])
    const handles = await mill.enqueueMany(Array.from({ length: 700 }, () => [job] as const))
    const answers = await mill.jobs.cancel(handles)
    expect(answers.length).toBe(700)
    expect(new Set(answers)).toEqual(new Set(['cancelled']))
    const [counts] = await mill.jobs.counts('default')
    expect(counts!.counts).toMatchObject({ cancelled: 700, queued: 0 })
  })
})
