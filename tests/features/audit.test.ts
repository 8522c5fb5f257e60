// The audit trail of a job, and the consumer that works without our loop.
import { describe, expect, test } from 'vitest'
import { cancel, defineJob, fixed, memory, release } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'

const echo = defineJob({
  name: 'echo',
  queue: 'echoes',
  retry: fixed({ attempts: 3, delay: '10s' }),
  run: ({ input }: RunContext<number>) => input,
})

describe('memory', () => {
  test('D12 every run leaves one row: status, error, worker, started, finished, duration', async () => {
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 4, delay: '5s' }),
      async run({ attempt }) {
        runs += 1
        await new Promise<void>((resolve) => clock.timer(250, resolve))
        if (runs === 2) return release('not yet')
        if (attempt < 3) throw new Error(`attempt ${attempt}`)
        return 'done'
      },
    })
    let runs = 0
    const { clock, mill } = await setup([job])
    const worker = await mill.work()
    const handle = await mill.enqueue(job)
    await clock.during(handle.result())
    const rows = await mill.jobs.attempts(handle)
    expect(rows).toMatchObject([
      { attempt: 1, status: 'retry', error: { message: 'attempt 1' } },
      { status: 'released', error: null, note: 'not yet' },
      { attempt: 2, status: 'retry', error: { message: 'attempt 2' } },
      { attempt: 3, status: 'success', error: null },
    ])
    for (const row of rows) {
      expect(row.worker).toBe(worker.ids[0])
      expect(row.durationMs).toBeGreaterThanOrEqual(250)
      expect(row.durationMs).toBeLessThan(300)
      expect(row.finishedAt!.getTime() - row.startedAt!.getTime()).toBeGreaterThanOrEqual(250)
    }
  })

  test('D12 a running attempt shows as attempting; cancelled and expired runs have their word', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const started = gate()
    let runs = 0
    const job = defineJob({
      name: 'job',
      run: () => {
        runs += 1
        started.open()
        return runs === 1 ? new Promise<never>(() => undefined) : cancel('enough')
      },
    })
    const [dying, heir] = [await startProcess(clock, backend, [job]), await startProcess(clock, backend, [job])]
    await dying.mill.work()
    const handle = await dying.mill.enqueue(job)
    await clock.during(started.opened)
    expect(await heir.mill.jobs.attempts(handle)).toMatchObject([
      { attempt: 1, status: 'attempting', finishedAt: null },
    ])
    dying.crash()
    await heir.mill.work()
    await clock.advance(20_000)
    expect(await heir.mill.jobs.attempts(handle)).toMatchObject([
      { attempt: 1, status: 'expired', error: { code: 'WORKER_DIED' } },
      { attempt: 2, status: 'cancelled', note: 'enough' },
    ])
  })

  test('D13 a consumer claims, acks with a result, and what it holds is not given to others', async () => {
    const { clock, mill } = await setup([echo])
    const handles = await mill.enqueueMany([1, 2, 3].map((input) => [echo, input] as const))
    const consumer = mill.consumer({ queues: ['echoes'] })
    const [first, second] = await consumer.claim(2)
    expect([first!.input, second!.input, first!.attempt]).toEqual([1, 2, 1])
    const others = mill.consumer({ queues: ['echoes'] })
    expect((await others.claim(10)).map(({ input }) => input)).toEqual([3])
    expect(await consumer.ack(first!, { ok: true })).toBe('done')
    expect(await consumer.ack(first!, { ok: true })).toBe('done')
    expect(await clock.during(handles[0]!.result())).toEqual({ ok: true })
    expect(await consumer.delete(second!)).toBe('done')
    expect(await mill.jobs.get(handles[1]!)).toBeNull()
    await others.stop()
    expect(await mill.jobs.get(handles[2]!)).toMatchObject({ status: 'queued', attemptCount: 0 })
  })

  test('D13 a nack follows the policy of the kind, a delay overrides the wait, the last one makes a dead letter', async () => {
    const { clock, mill } = await setup([echo])
    const worker = await mill.work({ queues: ['other'] })
    const handle = await mill.enqueue(echo, 1)
    const consumer = mill.consumer({ queues: ['echoes'] })
    const take = async () => (await consumer.claim())[0]!
    expect(await consumer.nack(await take(), { error: new Error('first') })).toBe('done')
    expect(await mill.jobs.get(handle)).toMatchObject({
      status: 'scheduled',
      attemptCount: 1,
      lastError: { message: 'first' },
    })
    await clock.advance(10_001)
    await consumer.nack(await take(), { error: new Error('second'), delay: '1m' })
    await clock.advance(59_000)
    expect(await consumer.claim()).toEqual([])
    await clock.advance(2_000)
    await consumer.nack(await take(), { error: new Error('third') })
    expect(await mill.deadLetters.get(handle)).toMatchObject({ attemptCount: 3, lastError: { message: 'third' } })
    await consumer.stop()
    await worker.stop()
  })

  test('D13 a nack asks the classifier of the whole system and tells the failed hooks, as a worker does', async () => {
    const told: string[] = []
    const { clock, mill } = await setup([echo], {
      classify: () => 'permanent',
      onFailed: ({ id }) => void told.push(id),
    })
    const handle = await mill.enqueue(echo, 1)
    const consumer = mill.consumer({ queues: ['echoes'] })
    const [job] = await consumer.claim()
    await consumer.nack(job!, { error: new Error('x') })
    await clock.advance(1_000)
    expect(await handle.status()).toBe('failed')
    expect(told).toEqual([handle.id])
  })

  test('D13 visibility: not extended it goes to another, and the first answer is stale', async () => {
    const { clock, mill } = await setup([echo])
    // Maintenance runs where somebody works.
    await mill.work({ queues: ['other'] })
    const handle = await mill.enqueue(echo, 1)
    const one = mill.consumer({ queues: ['echoes'], visibility: '5s' })
    const two = mill.consumer({ queues: ['echoes'], visibility: '5s' })
    const [first] = await one.claim()
    await clock.advance(4_000)
    expect(await one.extend(first!, '10s')).toBe('extended')
    await clock.advance(9_000)
    expect(await two.claim()).toEqual([])
    await clock.advance(3_000)
    const [second] = await two.claim()
    expect(second).toMatchObject({ id: handle.id, attempt: 2 })
    expect(await one.extend(first!, '10s')).toBe('stale')
    expect(await one.ack(first!, 'late')).toBe('stale')
    expect(await one.nack(first!)).toBe('stale')
    expect(await one.delete(first!)).toBe('stale')
    expect(await two.ack(second!, 'mine')).toBe('done')
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'completed', result: 'mine' })
  })

  test('D13 a consumer that disappears loses its jobs to others; a cancellation reaches its signal', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const [gone, here] = [await startProcess(clock, backend, [echo]), await startProcess(clock, backend, [echo])]
    await here.mill.work({ queues: ['other'] })
    const handle = await here.mill.enqueue(echo, 1)
    const [job] = await gone.mill.consumer({ queues: ['echoes'] }).claim()
    expect(job!.id).toBe(handle.id)
    gone.crash()
    await clock.advance(15_000)
    const consumer = here.mill.consumer({ queues: ['echoes'] })
    const [again] = await consumer.claim()
    expect(again).toMatchObject({ id: handle.id, attempt: 2 })
    await handle.cancel()
    await clock.advance(3_000)
    expect(again!.signal.reason).toMatchObject({ code: 'JOB_CANCELLED' })
    expect(await consumer.nack(again!)).toBe('cancelled')
    expect(await here.mill.jobs.get(handle)).toMatchObject({ status: 'cancelled' })
  })
})
