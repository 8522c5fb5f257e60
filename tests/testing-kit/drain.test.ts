// Manual mode: nothing runs until asked, then everything that is ready runs, one job after the other.
import { describe, expect, test, vi } from 'vitest'
import { cancel, defineJob, fail, release, retryAfter, snooze } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { createTestMillrace, deadLetters, enqueued } from '../../src/testing/index.ts'
import { CardDeclined, JOBS, charge, sendMail, signUp } from './jobs.ts'

const setup = () => createTestMillrace({ jobs: JOBS })

const NOTHING = {
  ran: 0,
  completed: 0,
  failed: 0,
  retried: 0,
  cancelled: 0,
  snoozed: 0,
  released: 0,
  deferred: 0,
  stale: 0,
}

describe('drain', () => {
  test('O7 nothing runs until it is drained', async () => {
    const mill = await setup()
    const handle = await mill.enqueue(sendMail, { to: 'ada' })
    await mill.clock.advance('1d')
    expect(await handle.status()).toBe('queued')
    expect(await mill.drain()).toEqual({ ...NOTHING, ran: 1, completed: 1 })
    expect(await handle.result()).toEqual({ sent: 'ada', subject: 'hello' })
    expect(await mill.drain()).toEqual(NOTHING)
  })

  test('O7 a drain runs what jobs enqueue, and leaves what is due later', async () => {
    const mill = await setup()
    await mill.enqueue(signUp, { user: 'ada' })
    expect(await mill.drain()).toMatchObject({ ran: 2, completed: 2 })
    expect(enqueued(mill, sendMail).map(({ status }) => status)).toEqual(['completed', 'scheduled'])
    await mill.clock.advance('1d')
    expect(await mill.drain()).toMatchObject({ ran: 1, completed: 1 })
  })

  test('O7 withScheduled lets time pass until every job has ended', async () => {
    const mill = await setup()
    const startMs = mill.clock.nowMs()
    await mill.enqueue(signUp, { user: 'ada' })
    await mill.enqueue(charge, { cents: 5 })
    expect(await mill.drain({ withScheduled: true })).toMatchObject({ ran: 6, completed: 3, retried: 2, failed: 1 })
    expect(mill.clock.nowMs() - startMs).toBe(24 * 3_600_000)
  })

  test('O7 only the jobs of one queue, if asked for', async () => {
    const mill = await setup()
    await mill.enqueue(charge, { cents: 1 })
    await mill.enqueue(sendMail, { to: 'ada' })
    await mill.enqueue(sendMail, { to: 'bob' }, { delay: '2h' })
    expect(await mill.drain({ queue: 'mail', withScheduled: true })).toMatchObject({ ran: 2, completed: 2 })
    expect(enqueued(mill, charge)[0]?.status).toBe('queued')
    await expect(mill.drain({ queue: 'mial' })).rejects.toThrow(/no registered job uses the queue "mial".*payments/)
  })

  test('O7 jobs run by priority, one at a time', async () => {
    const order: string[] = []
    let running = 0
    const job = defineJob({
      name: 'step',
      run: async ({ input }: RunContext<string>) => {
        expect(++running).toBe(1)
        await new Promise((resolve) => setImmediate(resolve))
        running -= 1
        order.push(input)
      },
    })
    const mill = await createTestMillrace({ jobs: [job] })
    await mill.enqueueMany([
      [job, 'low', { priority: 'low' }],
      [job, 'normal'],
      [job, 'critical', { priority: 'critical' }],
    ])
    await Promise.all([mill.drain(), mill.drain()])
    expect(order).toEqual(['critical', 'normal', 'low'])
  })

  test('O7 every way to end is counted', async () => {
    const endings = { snooze, retryAfter, release, cancel: () => cancel(), fail: () => fail('no') }
    const job = defineJob({
      name: 'ends',
      run: ({ input, attempt }: RunContext<keyof typeof endings>) => {
        if (input === 'release' && ++released > 1) return 'done'
        return attempt > 1 ? 'done' : endings[input]('1h' as never)
      },
    })
    let released = 0
    const mill = await createTestMillrace({ jobs: [job] })
    for (const input of ['snooze', 'retryAfter', 'release', 'cancel', 'fail'] as const) await mill.enqueue(job, input)
    const counts = { snoozed: 1, retried: 1, released: 1, cancelled: 1, failed: 1, completed: 1 }
    expect(await mill.drain()).toEqual({ ...NOTHING, ...counts, ran: 6 })
  })

  test('O7 a rate limit gives jobs their place in time', async () => {
    const mill = await createTestMillrace({ jobs: JOBS, queues: { mail: { rate: { limit: 2, per: '1m' } } } })
    const startMs = mill.clock.nowMs()
    await mill.enqueueMany(['a', 'b', 'c'].map((to) => [sendMail, { to }] as const))
    expect(await mill.drain()).toMatchObject({ completed: 1 })
    expect(await mill.drain({ withScheduled: true })).toMatchObject({ completed: 2 })
    expect(mill.clock.nowMs() - startMs).toBe(60_000)
  })

  test('O7 a run without a token of its rate limit is deferred', async () => {
    const mill = await setup()
    await mill.enqueueMany(['a', 'b'].map((to) => [sendMail, { to }] as const))
    await mill.queues.configure('mail', { rate: { limit: 1, per: '1m' } })
    expect(await mill.drain()).toMatchObject({ completed: 1, deferred: 1 })
    expect(enqueued(mill, sendMail).map(({ waitsFor }) => waitsFor)).toEqual([null, 'rate'])
    expect(await mill.drain({ withScheduled: true })).toMatchObject({ completed: 1 })
  })

  test('O7 a job that enqueues itself without an end is told', async () => {
    const again = defineJob({
      name: 'again',
      run: async (): Promise<void> => void (await mill.enqueue('again')),
    })
    const mill = await createTestMillrace({ jobs: [again] })
    await mill.enqueue(again)
    await expect(mill.drain({ limit: 50 })).rejects.toThrow(
      /after 51 runs, 51 of them of again: a job keeps enqueuing itself/,
    )
  })

  test('O7 runNext runs exactly one and says how it ended', async () => {
    const mill = await setup()
    await mill.enqueue(charge, { cents: 3 })
    await mill.enqueue(charge, { cents: 4 })
    const report = await mill.runNext()
    expect(report).toMatchObject({ name: 'charge', queue: 'payments', attempt: 1, status: 'retried' })
    expect(report?.thrown).toBeInstanceOf(CardDeclined)
    expect(report?.error).toMatchObject({ name: 'CardDeclined', message: 'no 3 cents' })
    expect(await mill.runNext({ queue: 'mail' })).toBeNull()
    expect(enqueued(mill, charge).map(({ status }) => status)).toEqual(['scheduled', 'queued'])
  })

  test('O7 a failing job ends as a dead letter with its history, and can be replayed', async () => {
    const [onFailed, told] = [vi.fn(), vi.fn()]
    const mill = await createTestMillrace({ jobs: JOBS, onFailed })
    mill.on('failed', told)
    const { id } = await mill.enqueue(charge, { cents: 9 })
    await mill.drain({ withScheduled: true })
    expect(deadLetters(mill)).toMatchObject([{ id, name: 'charge', attemptCount: 3, payload: { cents: 9 } }])
    expect((await mill.deadLetters.get(id))?.attempts.map(({ status }) => status)).toEqual(['retry', 'retry', 'failed'])
    expect(onFailed).toHaveBeenCalledExactlyOnceWith(expect.objectContaining({ id, attempts: 3 }))
    expect(told).toHaveBeenCalledOnce()
    await mill.deadLetters.replay(id)
    expect(await mill.drain()).toMatchObject({ retried: 1 })
  })

  test('O7 hooks of dead letters have ended when the drain has', async () => {
    let ended = false
    const job = defineJob({
      name: 'bad',
      attempts: 1,
      run: () => Promise.reject(new Error('bad')),
      onFailed: async () => {
        await new Promise((resolve) => setTimeout(resolve, 5))
        ended = true
      },
    })
    const mill = await createTestMillrace({ jobs: [job] })
    await mill.enqueue(job)
    await mill.drain()
    expect(ended).toBe(true)
  })

  test('O7 paused queues are left alone', async () => {
    const mill = await setup()
    await mill.queues.pause('mail')
    await mill.enqueue(sendMail, { to: 'ada' })
    expect(await mill.drain({ withScheduled: true })).toEqual(NOTHING)
    await mill.queues.resume('mail')
    expect(await mill.drain()).toMatchObject({ completed: 1 })
  })

  test('O7 a worker cannot be started by accident', async () => {
    const mill = await setup()
    await expect(mill.work()).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })

  test('O7 jobs of several connections are drained together', async () => {
    const clicks = defineJob({ name: 'click', connection: 'fast', run: () => 'counted' })
    const mill = await createTestMillrace({ jobs: [sendMail, clicks] })
    const handle = await mill.enqueue(clicks)
    await mill.enqueue(sendMail, { to: 'ada' })
    expect(await mill.drain()).toMatchObject({ completed: 2 })
    expect(handle.connection).toBe('fast')
    expect(enqueued(mill).map(({ connection }) => connection)).toEqual(['fast', 'default'])
  })

  test('O7 a consumer judges errors as a worker would, and stops with its Millrace', async () => {
    const failed: string[] = []
    const mill = await createTestMillrace({
      jobs: JOBS,
      classify: (error) => (error instanceof RangeError ? 'permanent' : undefined),
      onFailed: ({ name }) => void failed.push(name),
    })
    const handle = await mill.enqueue(sendMail, { to: 'ada' })
    await mill.enqueue(sendMail, { to: 'bob' })
    const consumer = mill.consumer({ queues: ['mail'] })
    const [first] = await consumer.claim(2)
    expect(await consumer.nack(first!, { error: new RangeError('bad') })).toBe('done')
    await mill.drain()
    expect(await handle.status()).toBe('failed')
    expect(failed).toEqual(['send-mail'])
    await mill.stop()
    await expect(consumer.claim()).rejects.toMatchObject({ code: 'STOPPED' })
  })

  test('O7 unknown errors fail for good when the Millrace says so', async () => {
    const mill = await createTestMillrace({ jobs: JOBS, unknownErrors: 'fail' })
    const handle = await mill.enqueue(sendMail, { to: 'ada' })
    const consumer = mill.consumer({ queues: ['mail'] })
    const [first] = await consumer.claim()
    await consumer.nack(first!, { error: new Error('who knows') })
    expect(await handle.status()).toBe('failed')
  })

  test.each([
    [{ jobs: JOBS, unknownErrors: 'x' }, 'unknownErrors is "x"'],
    [{}, 'jobs is undefined'],
    [{ jobs: JOBS, queues: { mail: null } }, 'queues.mail is null'],
  ])('O7 a Millrace for tests refuses what the real one refuses: %j', async (options, text) => {
    await expect(createTestMillrace(options as never)).rejects.toMatchObject({
      code: 'INVALID_OPTION',
      message: expect.stringContaining(text) as string,
    })
  })

  test('O7 a misspelt option of runNext is told', async () => {
    const mill = await setup()
    await expect(mill.runNext({ queu: 'mail' } as never)).rejects.toThrow('did you mean queue?')
  })

  test('O7 a stopped Millrace takes no more jobs', async () => {
    const mill = await setup()
    await mill.stop()
    await expect(mill.enqueue(sendMail, { to: 'ada' })).rejects.toMatchObject({ code: 'STOPPED' })
  })
})

describe('a handler and the clock', () => {
  const waits = defineJob({
    name: 'waits',
    timeout: '5m',
    attempts: 1,
    run: ({ signal }) =>
      new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
  })

  test('O7 a timeout happens on the virtual clock', async () => {
    const mill = await createTestMillrace({ jobs: [waits] })
    await mill.enqueue(waits)
    const draining = mill.drain()
    await mill.clock.advance('5m')
    expect(await draining).toMatchObject({ failed: 1 })
    expect(deadLetters(mill)[0]?.lastError).toMatchObject({ code: 'JOB_TIMEOUT' })
  })

  test('O7 a running job can be cancelled', async () => {
    const mill = await createTestMillrace({ jobs: [waits] })
    const handle = await mill.enqueue(waits)
    const draining = mill.drain()
    await mill.waitFor(handle, 'running')
    expect(await handle.cancel()).toBe('requested')
    expect(await draining).toMatchObject({ cancelled: 1 })
    expect(await handle.status()).toBe('cancelled')
  })

  test('O7 a handler that waits for ever fails the test with a reason instead of hanging it', async () => {
    const mill = await createTestMillrace({ jobs: [waits], stuckAfter: '20ms' })
    await mill.enqueue(waits)
    await expect(mill.drain()).rejects.toThrow(/the handler of waits .* has not ended after 20ms of real time/)
  })

  test('O7 a producer that waits for a result gets it from the drain', async () => {
    const mill = await setup()
    const waiting = mill.enqueueAndWait(sendMail, { to: 'ada' })
    await mill.clock.breathe()
    await mill.drain()
    expect(await waiting).toEqual({ sent: 'ada', subject: 'hello' })
  })
})
