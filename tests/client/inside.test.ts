// What a running handler may ask for, and consumers without our worker loop.
import { expect, test, vi } from 'vitest'
import { defineJob } from '../../src/client/define-job.ts'
import { createIdempotent } from '../../src/client/idempotency.ts'
import { decideExpiry } from '../../src/core/decide.ts'
import type { JobId, LeaseNumber, WorkerId } from '../../src/core/job.ts'
import { snooze } from '../../src/core/outcome.ts'
import { DEFAULT_RETRY } from '../../src/core/retry.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { Backend } from '../../src/store/ports.ts'
import { anything, during, setup, stored, tick } from './setup.ts'

const jobId = '019f0000-0000-7000-8000-000000000000' as JobId

function idempotency() {
  const world = setup()
  const as = (lease: number, job = jobId, isLive = () => true) => {
    const holder = { jobId: job, lease: lease as LeaseNumber, kind: 'k', ttlMs: 60_000, isLive }
    return createIdempotent(world.backend.notes, world.runtime, holder)
  }
  return { ...world, as }
}
const otherJob = '019f0000-0000-7000-8000-000000000009' as JobId

test('D10 idempotent work is done once and its value is kept', async () => {
  const { as } = idempotency()
  const work = vi.fn(() => ({ charged: 5 }))
  expect(await as(1)('pay', work)).toEqual({ charged: 5 })
  expect(await as(2)('pay', work)).toEqual({ charged: 5 })
  expect(await as(7, otherJob)('pay', work)).toEqual({ charged: 5 })
  expect(work).toHaveBeenCalledTimes(1)
})

test('D10 work without a value has none in a re-run either', async () => {
  const { as } = idempotency()
  const work = vi.fn(async () => undefined)
  expect(await as(1)('pay', work)).toBe(undefined)
  expect(await as(2)('pay', work)).toBe(undefined)
  expect(await as(1)('none', () => null)).toBe(null)
  expect(await as(2)('none', () => null)).toBe(null)
  expect(work).toHaveBeenCalledTimes(1)
})

test('D10 a re-run with a newer lease takes over at once, others wait for the holder', async () => {
  const { as, clock } = idempotency()
  let finish: (value: string) => void = () => undefined
  const slow = as(1)('pay', () => new Promise<string>((resolve) => (finish = resolve)))
  await clock.advance(1)
  const waiting = as(5, otherJob)('pay', () => 'other')
  await clock.advance(1_000)
  finish('first')
  expect(await slow).toBe('first')
  expect(await during(clock, waiting)).toBe('first')

  void as(1)('ship', () => new Promise<string>(() => undefined))
  await clock.advance(1)
  expect(await as(2)('ship', () => 'second run')).toBe('second run')
})

test('a holder that does not finish makes others busy, and a crashed one blocks only for its time', async () => {
  const { as, clock } = idempotency()
  let live = true
  void as(1, jobId, () => live)('pay', () => new Promise<string>(() => undefined))
  await clock.advance(90_000)
  const busy = as(1, otherJob)('pay', () => 'x', { wait: '5s' })
  await expect(during(clock, busy)).rejects.toMatchObject({ code: 'IDEMPOTENCY_BUSY', retryable: true })
  live = false
  await clock.advance(61_000)
  expect(await as(1, otherJob)('pay', () => 'x')).toBe('x')
})

test('a failure is kept and thrown again, unless a retry is asked for; a snooze is no failure', async () => {
  const { as, clock } = idempotency()
  const fail = (): never => {
    throw new RangeError('declined')
  }
  await expect(as(1)('pay', fail)).rejects.toThrow('declined')
  const kept = { code: 'IDEMPOTENCY_FAILED', cause: { name: 'RangeError', message: 'declined' } }
  await expect(as(2)('pay', () => 1)).rejects.toMatchObject(kept)
  expect(await as(2)('pay', () => 1, { onFailure: 'retry' })).toBe(1)
  const later = (): never => {
    throw snooze('1m')
  }
  await expect(as(1)('ship', later)).rejects.toMatchObject({ name: 'OutcomeSignal' })
  await clock.advance(10)
  expect(await as(2)('ship', () => 2)).toBe(2)
  await expect(as(1)('', () => 1)).rejects.toMatchObject({ code: 'INVALID_KEY' })
  await expect(as(1)('k', () => 1, { wat: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(as(1)('big', () => 'x'.repeat(70_000))).rejects.toMatchObject({ code: 'RESULT_TOO_LARGE' })
})

test('J10 metadata of a kind is kept across runs', async () => {
  const { mill } = setup()
  const meta = mill.metadata(tick)
  await meta.set('cursor', { page: 3 })
  expect(await Promise.all([meta.increment('seen'), meta.increment('seen', 5)])).toEqual([1, 6])
  expect(await meta.entries()).toEqual({ cursor: { page: 3 }, seen: 6 })
  expect(await mill.metadata('tick').get('cursor')).toEqual({ page: 3 })
  expect(await mill.metadata(anything).get('cursor')).toBeNull()
  expect([await meta.remove('seen'), await meta.remove('seen')]).toEqual([true, false])
  await expect(meta.set('big', 'x'.repeat(70_000))).rejects.toMatchObject({ code: 'PAYLOAD_TOO_LARGE' })
  await expect(meta.increment('n', 0.5)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(meta.get('')).rejects.toMatchObject({ code: 'INVALID_KEY' })
})

test('T4 a handler enqueues into its own sealed batch and reads its parents', async () => {
  const { mill, backend } = setup()
  const worker = 'w' as WorkerId
  await backend.workers.register({ id: worker, host: 'h', pid: 1, queues: ['default'], concurrency: 1 })
  const consumer = mill.consumer({ queues: ['ticks'] })
  const [parent, removed] = await mill.enqueueMany([[tick], [tick]])
  const batch = await mill.batch('b')
  const child = await batch.add(anything, 1, { after: [parent, { job: removed, onFailure: 'continue' }] })
  await batch.seal()
  for (const job of await consumer.claim(10))
    await consumer.ack(job, { from: job.id === parent.id ? 'parent' : 'other' })
  await mill.jobs.remove(removed)
  const { jobs } = await backend.jobs.claim({ worker, claimNo: 1, queues: ['default'], limit: 10 })
  expect(jobs.map(({ id }) => id)).toEqual([child.id])
  const services = mill.internals.runServices('default')(jobs[0]!)
  expect(await services.parents()).toEqual([
    { id: parent.id, name: 'tick', status: 'completed', result: { from: 'parent' } },
    { id: removed.id, name: null, status: 'removed', result: null },
  ])
  const inner = await services.enqueue(tick, undefined, { batch: 'same', delay: '1m' })
  expect(await mill.jobs.get(inner.id)).toMatchObject({ batch: batch.id, status: 'scheduled' })
  expect(await mill.jobs.get((await services.enqueue(tick)).id)).toMatchObject({ name: 'tick', payload: null })
  expect(await services.idempotent('once', () => 5)).toBe(5)
  expect(await services.metadata.increment('runs')).toBe(1)
  const outside = mill.internals.runServices('default')({ ...jobs[0]!, batch: null, parents: [] })
  await expect(outside.enqueue(tick, undefined, { batch: 'same' })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(outside.enqueue(tick, undefined, { batch: batch.id })).rejects.toMatchObject({ code: 'BATCH_CLOSED' })
  expect(await outside.parents()).toEqual([])
})

test('D13 a consumer claims, acks, nacks and deletes under the guards of a worker', async () => {
  const { mill, backend, clock } = setup()
  const consumer = mill.consumer({ queues: ['ticks', 'default'] })
  await mill.enqueueMany([[tick], [anything, { a: 1 }, { meta: { m: 1 } }], [tick]])
  const [first, second, third] = await consumer.claim(10)
  expect(third).toMatchObject({ name: 'anything', input: { a: 1 }, meta: { m: 1 }, attempt: 1 })
  expect(await consumer.ack(first!, 'ok')).toBe('done')
  expect(await consumer.ack(first!, 'ok')).toBe('done')
  expect(await consumer.nack(second!, { error: new Error('no'), delay: '1h' })).toBe('done')
  expect(await mill.jobs.get(second!.id)).toMatchObject({
    status: 'scheduled',
    attemptCount: 1,
    lastError: { message: 'no' },
  })
  expect((await mill.jobs.get(second!.id))?.runAt.getTime()).toBe(clock.nowMs() + 3_600_000)
  expect(await consumer.delete(third!)).toBe('done')
  expect(await mill.jobs.get(third!.id)).toBeNull()
  await expect(consumer.ack({ ...first! })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(consumer.claim(0)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  expect(() => mill.consumer({ queues: [] })).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error)
  expect(await stored(backend)).toBe(2)
})

test('D13 an ack that comes too late is stale, a value', async () => {
  const { mill, backend, clock } = setup()
  const [slow, quick] = [mill.consumer({ queues: ['ticks'], visibility: '10s' }), mill.consumer({ queues: ['ticks'] })]
  const handle = await mill.enqueue(tick)
  const [mine] = await slow.claim()
  expect(await slow.extend(mine!, '20s')).toBe('extended')
  await clock.advance(15_000)
  expect(await backend.jobs.due('expired', 10)).toEqual([])
  await clock.advance(15_000)
  const [due] = await backend.jobs.due('expired', 10)
  await backend.jobs.apply([decideExpiry(due!.job, { retry: DEFAULT_RETRY }, () => 0)])
  const [theirs] = await quick.claim()
  expect(theirs?.id).toBe(handle.id)
  expect(await slow.ack(mine!, 'late')).toBe('stale')
  expect(await slow.extend(mine!, '10s')).toBe('stale')
  expect(await slow.delete(mine!)).toBe('stale')
  expect(await quick.ack(theirs!, 'mine')).toBe('done')
  expect(await handle.result()).toBe('mine')
})

test('a consumer whose life was ended starts a new one, and its jobs are told', async () => {
  const { mill, backend, clock } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  await mill.enqueueMany([[tick], [tick]])
  const [job] = await consumer.claim()
  const [{ id, beat } = { id: '' as WorkerId, beat: 0 }] = await backend.workers.list()
  await backend.workers.declareDead([{ id, beat }])
  await clock.advance(3_000)
  expect(job?.signal.reason).toMatchObject({ code: 'LEASE_LOST' })
  expect(await consumer.claim()).toHaveLength(1)
  expect((await backend.workers.list()).map(({ state }) => state)).toEqual(['dead', 'alive'])
})

test('stopping gives unsettled jobs back without an attempt', async () => {
  const { mill, backend } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  const handle = await mill.enqueue(tick)
  await consumer.claim()
  await consumer.stop()
  await consumer.stop()
  expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0, crashCount: 0 })
  expect(await backend.workers.list()).toMatchObject([{ state: 'dead' }])
  await expect(consumer.claim()).rejects.toMatchObject({ code: 'STOPPED' })
})

test('a claim whose reply was lost is recovered: its jobs go back', async () => {
  let lose = true
  const wrap = (backend: Backend): Backend => ({
    ...backend,
    jobs: {
      ...backend.jobs,
      async claim(request) {
        const reply = await backend.jobs.claim(request)
        if (!lose) return reply
        lose = false
        throw new MillraceError('STORE_TIMEOUT', 'no answer', { retryable: true })
      },
    },
  })
  const { mill } = setup({ wrap })
  const consumer = mill.consumer({ queues: ['ticks'] })
  const handle = await mill.enqueue(tick)
  await expect(consumer.claim()).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
  const [job] = await consumer.claim()
  expect(job).toMatchObject({ id: handle.id, attempt: 1 })
})

test('a rate-limited job is claimed with a token or deferred', async () => {
  const { mill } = setup({ queues: { ticks: { rate: { limit: 2, per: '1h', burst: 2 } } } })
  const consumer = mill.consumer({ queues: ['ticks'] })
  await mill.enqueueMany(Array.from({ length: 6 }, () => [tick] as const))
  const claimed = [...(await consumer.claim(10)), ...(await consumer.claim(10))]
  expect(claimed.length).toBeLessThanOrEqual(2)
  expect(claimed.length).toBeGreaterThan(0)
  expect(await mill.jobs.counts('ticks')).toMatchObject([
    { counts: { running: claimed.length, scheduled: 6 - claimed.length } },
  ])
})

test('a direct run sees its job as a queue would show it', async () => {
  const shown = defineJob({ name: 'shown', run: ({ job }) => ({ priority: job.priority, queue: job.queue }) })
  expect(await shown.run(undefined)).toEqual({ priority: 100, queue: 'default' })
})
