// Live mode: a real worker on the real clock, and a wait that cannot miss what it waits for.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { createTestMillrace, expectEnqueued } from '../../src/testing/index.ts'
import { JOBS, charge, part, sendMail, signUp } from './jobs.ts'

const setup = () => createTestMillrace({ jobs: JOBS, mode: 'live', work: { concurrency: 2 } })

describe('live', () => {
  test('O7 a worker runs by itself; waitFor sees what comes', async () => {
    await using mill = await setup()
    const coming = mill.waitFor(sendMail)
    await mill.enqueue(signUp, { user: 'ada' })
    expect(await coming).toMatchObject({ name: 'send-mail', status: 'completed', result: { sent: 'ada' } })
    await mill.waitFor(signUp)
    expectEnqueued(mill, sendMail, { subject: 'tips' }, { delay: '1d' })
    expect(mill.worker.ids).toHaveLength(1)
  })

  test('O7 waitFor finds what has already happened, also when it has passed', async () => {
    await using mill = await setup()
    const handle = await mill.enqueue(sendMail, { to: 'ada' })
    await handle.result()
    expect((await mill.waitFor(sendMail, 'completed')).id).toBe(handle.id)
    expect((await mill.waitFor(handle, 'running')).id).toBe(handle.id)
    expect((await mill.waitFor('send-mail', 'queued')).id).toBe(handle.id)
    expect((await mill.waitFor(handle.id)).id).toBe(handle.id)
    expect((await mill.waitFor(({ payload }) => (payload as { to?: string }).to === 'ada')).id).toBe(handle.id)
  })

  test('O7 waitFor sees a status however short it lasts', async () => {
    await using mill = await setup()
    const seen = mill.waitFor(part, 'running')
    await mill.enqueue(part, { size: 1 })
    expect((await seen).status).toBe('running')
  })

  test('O7 a wait in vain says what there was', async () => {
    await using mill = await setup()
    await mill.enqueue(charge, { cents: 7 })
    await mill.waitFor(charge, 'scheduled')
    await expect(mill.waitFor(charge, 'completed', { timeout: 20 })).rejects.toThrow(
      /waited 20ms for a job charge to be completed; there was:\n {2}1\. charge \{"cents":7\} \(scheduled on payments.*waits for retry, CardDeclined: no 7 cents\)/,
    )
    await expect(mill.waitFor(sendMail, 'completed', { timeout: 20 })).rejects.toThrow(
      /there was only:\n {2}1\. charge/,
    )
    const broken = mill.waitFor(() => {
      throw new Error('a broken predicate')
    })
    await expect(broken).rejects.toThrow('a broken predicate')
  })

  test('O7 waiting for one job ends as soon as it has ended otherwise', async () => {
    await using mill = await setup()
    const handle = await mill.enqueue(part, { size: -1 })
    await expect(mill.waitFor(handle, 'completed', { timeout: '1h' })).rejects.toThrow(/RangeError: a part cannot be/)
  })

  test('O7 retries and delays happen in real time', async () => {
    let runs = 0
    const flaky = defineJob({
      name: 'flaky',
      retry: { kind: 'fixed', delayMs: 5, jitter: 0, attempts: 3 },
      run: () => {
        if (++runs < 3) throw new Error('not yet')
      },
    })
    await using mill = await createTestMillrace({ jobs: [flaky], mode: 'live' })
    await mill.enqueue(flaky, undefined, { delay: 5 })
    expect(await mill.waitFor(flaky)).toMatchObject({ attemptCount: 3 })
  })

  test('O7 there is no virtual clock to set', async () => {
    await expect(createTestMillrace({ jobs: JOBS, mode: 'live', start: 0 })).rejects.toMatchObject({
      code: 'INVALID_OPTION',
    })
    // @ts-expect-error -- nor any other mode
    await expect(createTestMillrace({ jobs: JOBS, mode: 'fake' })).rejects.toThrow(/'manual', 'inline' or 'live'/)
    // @ts-expect-error -- nor options that createMillrace has and a test has no use for
    await expect(createTestMillrace({ jobs: JOBS, backend: null })).rejects.toThrow(/no option "backend"/)
  })
})
