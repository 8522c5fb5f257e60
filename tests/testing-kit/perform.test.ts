// One handler, without a queue entry: what would become of the job.
import { describe, expect, test } from 'vitest'
import { defineJob, snooze } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { createTestMillrace, enqueued, expectEnqueued } from '../../src/testing/index.ts'
import { CardDeclined, JOBS, charge, sendMail, signUp } from './jobs.ts'

const setup = () => createTestMillrace({ jobs: JOBS })

describe('perform', () => {
  test('O7 a handler runs with parsed input; result, logs and progress come back', async () => {
    const mill = await setup()
    const report = await mill.perform(sendMail, { to: 'ada' })
    expect(report).toEqual({
      status: 'completed',
      result: { sent: 'ada', subject: 'hello' },
      logs: [{ level: 'info', message: 'to ada' }],
      progress: [50, 100],
    })
    // The types are those of the job.
    expect(report.result?.sent).toBe('ada')
    expect(enqueued(mill)).toEqual([])
  })

  test('O7 a failure says whether and when the job would run again', async () => {
    const mill = await setup()
    const first = await mill.perform(charge, { cents: 1 })
    expect(first).toMatchObject({ status: 'retried', error: { name: 'CardDeclined', class: 'unknown' } })
    expect(first.thrown).toBeInstanceOf(CardDeclined)
    expect(first.delayMs).toSatisfy((ms: number) => ms >= 10_000 && ms <= 13_000)
    const last = await mill.perform(charge, { cents: 1 }, { attempt: 3 })
    expect(last.status).toBe('failed')
    expect(last.delayMs).toBeUndefined()
    expect((await mill.perform(charge, { cents: 1 }, { maxAttempts: 1 })).status).toBe('failed')
    await expect(mill.perform(charge, { cents: 1 }, { attempt: 4 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('O7 attempt, maxAttempts and meta reach the handler', async () => {
    const job = defineJob({
      name: 'shows',
      run: ({ attempt, maxAttempts, willRetry, job: { meta } }) => ({ attempt, maxAttempts, willRetry, meta }),
    })
    const mill = await createTestMillrace({ jobs: [job] })
    const { result } = await mill.perform(job, undefined, { attempt: 2, maxAttempts: 5, meta: { trace: 'x' } })
    expect(result).toEqual({ attempt: 2, maxAttempts: 5, willRetry: true, meta: { trace: 'x' } })
  })

  test('O7 bad input is refused as enqueue would refuse it', async () => {
    const mill = await setup()
    // @ts-expect-error -- a number is no address
    await expect(mill.perform(sendMail, { to: 7 })).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
    // @ts-expect-error -- a BigInt is no number
    await expect(mill.perform(charge, { cents: 1n })).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' })
  })

  test('O7 a result that JSON cannot carry is a failure here, too', async () => {
    const job = defineJob({ name: 'dates', run: () => ({ at: new Map() }) })
    const mill = await createTestMillrace({ jobs: [job] })
    expect(await mill.perform(job)).toMatchObject({ status: 'failed', error: { code: 'PAYLOAD_NOT_JSON' } })
  })

  test('O7 what the handler enqueues is enqueued', async () => {
    const mill = await setup()
    await mill.perform(signUp, { user: 'ada' })
    expectEnqueued(mill, sendMail, { to: 'ada', subject: 'tips' }, { delay: '1d', queue: 'mail', count: 1 })
  })

  test('O7 outcomes and timeouts are decided, not applied', async () => {
    const job = defineJob({
      name: 'hangs',
      timeout: '10s',
      run: ({ input }: RunContext<boolean>) => (input ? snooze('1h') : new Promise<never>(() => undefined)),
    })
    const mill = await createTestMillrace({ jobs: [job] })
    expect(await mill.perform(job, true)).toMatchObject({ status: 'snoozed', delayMs: 3_600_000 })
    const hanging = mill.perform(job, false)
    await mill.clock.advance('11s')
    expect(await hanging).toMatchObject({ status: 'retried', error: { code: 'JOB_TIMEOUT' } })
  })

  test('O7 idempotent work and metadata are kept between two runs', async () => {
    let calls = 0
    const job = defineJob({
      name: 'once',
      run: async ({ idempotent, metadata }) => {
        await idempotent('pay', () => ++calls)
        return metadata.increment('runs')
      },
    })
    const mill = await createTestMillrace({ jobs: [job] })
    await mill.perform(job)
    expect((await mill.perform(job)).result).toBe(2)
    expect(calls).toBe(1)
  })
})
