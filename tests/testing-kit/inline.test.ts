// Inline mode: a call resolves after its job, and whatever that enqueued, has run.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { completed, createTestMillrace, deadLetters, enqueued } from '../../src/testing/index.ts'
import { CardDeclined, JOBS, charge, part, sendMail, signUp, tick, whole } from './jobs.ts'

const setup = (inlineErrors?: 'throw' | 'store') =>
  createTestMillrace({ jobs: JOBS, mode: 'inline', ...(inlineErrors && { inlineErrors }) })

describe('inline', () => {
  test('O7 enqueue resolves after the job and what it enqueued', async () => {
    const mill = await setup()
    const handle = await mill.enqueue(signUp, { user: 'ada' })
    expect(await handle.status()).toBe('completed')
    expect(completed(mill, sendMail)).toHaveLength(1)
    await mill.clock.advance('1d')
    expect(completed(mill, sendMail)).toHaveLength(2)
  })

  test('O7 enqueue rejects with what the handler threw, and the retry is planned', async () => {
    const mill = await setup()
    await expect(mill.enqueue(charge, { cents: 1 })).rejects.toBeInstanceOf(CardDeclined)
    expect(enqueued(mill, charge)[0]).toMatchObject({ status: 'scheduled', waitsFor: 'retry', attemptCount: 1 })
    await mill.clock.advance('5m')
    expect(deadLetters(mill)).toHaveLength(1)
  })

  test('O7 with inlineErrors: store the error is only kept with the job', async () => {
    const mill = await setup('store')
    const handle = await mill.enqueue(charge, { cents: 1 })
    expect((await mill.jobs.get(handle))?.lastError?.name).toBe('CardDeclined')
  })

  test('O7 calls at the same time each see their own job done', async () => {
    const mill = await setup()
    const statuses = ['a', 'b', 'c'].map(async (to) => (await mill.enqueue(sendMail, { to })).status())
    expect(await Promise.all(statuses)).toEqual(['completed', 'completed', 'completed'])
  })

  test('O7 a handler that enqueues through the Millrace itself does not wait for itself', async () => {
    const outer = defineJob({
      name: 'outer',
      run: async (): Promise<string> => {
        const handle = await mill.enqueue(sendMail, { to: 'inner' })
        return handle.status()
      },
    })
    const mill = await createTestMillrace({ jobs: [outer, sendMail], mode: 'inline' })
    const handle = await mill.enqueue(outer)
    expect(await handle.result()).toBe('queued')
    expect(completed(mill, sendMail)).toHaveLength(1)
  })

  test('O7 enqueueAndWait lets time pass until the job has ended, also inside a handler', async () => {
    let runs = 0
    const flaky = defineJob({
      name: 'flaky',
      run: () => {
        if (++runs < 3) throw new Error('not yet')
        return runs
      },
    })
    const outer = defineJob({
      name: 'outer',
      run: async (): Promise<number> => mill.enqueueAndWait(flaky, undefined),
    })
    const mill = await createTestMillrace({ jobs: [outer, flaky, charge], mode: 'inline' })
    expect(await mill.enqueueAndWait(outer, undefined)).toBe(3)
    await expect(mill.enqueueAndWait(charge, { cents: 1 })).rejects.toMatchObject({ code: 'JOB_FAILED' })
    await mill.queues.pause('payments')
    await expect(mill.enqueueAndWait(charge, { cents: 1 })).rejects.toThrow(
      /nothing is left to run, but job .* is queued/,
    )
  })

  test('O7 batches, flows, schedules and replays run inline as well', async () => {
    const mill = await setup('store')
    const batch = await mill.batch('b', { onComplete: [sendMail, { to: 'ops' }] })
    await batch.add(part, { size: 1 })
    await batch.seal()
    expect(completed(mill, sendMail)).toHaveLength(1)
    await mill.flow({ job: whole, input: null, children: [{ job: part, input: { size: 3 } }] })
    expect(completed(mill, whole)[0]?.result).toBe(3)
    await mill.schedules.upsert('s', { job: tick, every: '1h' })
    expect(completed(mill, tick)).toHaveLength(1)
    await mill.clock.advance('2h')
    expect(completed(mill, tick)).toHaveLength(3)
    const bad = await mill.enqueue(part, { size: -1 })
    await mill.deadLetters.replay(bad)
    expect(await mill.jobs.attempts(bad)).toHaveLength(3)
  })
})
