// Following and ending jobs: results, status, cancel, remove, list, counts; and running a job directly.
import { expect, test } from 'vitest'
import { z } from 'zod'
import { defineJob } from '../../src/client/define-job.ts'
import type { RunContext } from '../../src/core/definition.ts'
import { fail, snooze } from '../../src/core/outcome.ts'
import type { Backend } from '../../src/store/ports.ts'
import { anything, during, mail, setup, stored, tick } from './setup.ts'

const UNKNOWN_ID = '019f0000-0000-7000-8000-000000000000'

test('J8 an awaited result is decoded and typed', async () => {
  const { mill } = setup()
  const consumer = mill.consumer({ queues: ['mail'] })
  const handle = await mill.enqueue(mail, { to: 'ada' })
  const waiting = handle.result()
  const [job] = await consumer.claim()
  expect(await handle.status()).toBe('running')
  await consumer.ack(job!, { sentTo: 'ada' })
  expect((await waiting).sentTo).toBe('ada')
  expect(await mill.result(handle.id)).toEqual({ sentTo: 'ada' })
  await consumer.stop()
})

test('without any hint of the store the poll finds the end', async () => {
  const wrap = (backend: Backend): Backend => ({ ...backend, wakeups: { listen: () => () => undefined } })
  const { mill, clock } = setup({ wrap })
  const consumer = mill.consumer({ queues: ['ticks'] })
  const waiting = mill.enqueueAndWait(tick, undefined)
  const [job] = await consumer.claim()
  await clock.advance(5_000)
  await consumer.ack(job!)
  expect(await during(clock, waiting)).toBeUndefined()
})

test('many who wait share one read', async () => {
  const reads: number[] = []
  const wrap = (backend: Backend): Backend => ({
    ...backend,
    query: { ...backend.query, get: (ids) => (reads.push(ids.length), backend.query.get(ids)) },
  })
  const { mill, clock } = setup({ wrap })
  const handles = await Promise.all(Array.from({ length: 100 }, () => mill.enqueue(tick)))
  const waiting = Promise.allSettled(handles.map((handle) => handle.result({ timeout: 100 })))
  await clock.advance(100)
  expect((await waiting).every(({ status }) => status === 'rejected')).toBe(true)
  expect(reads.length).toBeLessThan(10)
  const before = reads.length
  await clock.advance(60_000)
  expect(reads.length).toBe(before)
})

test('a result that does not come is a typed error for each reason', async () => {
  const { mill, clock } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  const failing = await mill.enqueue(tick, undefined, { attempts: 1 })
  const [job] = await consumer.claim()
  const error = Object.assign(new TypeError('no route'), { code: 'E_ROUTE' })
  await consumer.nack(job!, { error })
  const cause = { name: 'TypeError', message: 'no route', code: 'E_ROUTE', class: 'unknown' }
  await expect(failing.result()).rejects.toMatchObject({ code: 'JOB_FAILED', cause })

  const waiting = await mill.enqueue(tick)
  await expect(during(clock, waiting.result({ timeout: '2s' }))).rejects.toMatchObject({ code: 'WAIT_TIMEOUT' })
  const reason = new Error('enough')
  await expect(waiting.result({ signal: AbortSignal.abort(reason) })).rejects.toBe(reason)
  const stopping = new AbortController()
  const stopped = waiting.result({ signal: stopping.signal })
  stopping.abort(reason)
  await expect(stopped).rejects.toBe(reason)

  expect(await waiting.cancel('changed my mind')).toBe('cancelled')
  await expect(waiting.result()).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
  expect(await mill.jobs.remove(waiting)).toBe('removed')
  await expect(waiting.result()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  await expect(waiting.status()).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  await expect(mill.result('nonsense')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(waiting.result({ timeot: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})

test('J9 cancel answers by what became of the job', async () => {
  const { mill, clock } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  const [first, second, third] = await mill.enqueueMany([[tick], [tick], [tick, undefined, { delay: '1h' }]])
  const [running] = await consumer.claim()
  expect(running?.id).toBe(first.id)
  const answers = await mill.jobs.cancel([first, second, third, UNKNOWN_ID], { reason: 'clean-up' })
  expect(answers).toEqual(['requested', 'cancelled', 'cancelled', 'missing'])
  await clock.advance(3_000)
  expect(running?.signal.reason).toMatchObject({ code: 'JOB_CANCELLED' })
  expect(await consumer.nack(running!)).toBe('cancelled')
  expect(await mill.jobs.cancel(first)).toBe('finished')
  expect(await first.status()).toBe('cancelled')
  expect(await mill.jobs.attempts(second)).toMatchObject([{ status: 'cancelled', note: 'clean-up' }])
})

test('remove deletes a waiting job at once and a running one at the end of its run', async () => {
  const { mill, backend } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  const [first, second] = await mill.enqueueMany([[tick], [tick]])
  const [running] = await consumer.claim()
  expect([await mill.jobs.remove(first), await mill.jobs.remove(second)]).toEqual(['requested', 'removed'])
  expect(await mill.jobs.remove(second)).toBe('missing')
  expect(await consumer.nack(running!)).toBe('cancelled')
  expect(await mill.jobs.get(first.id)).toBeNull()
  expect(await stored(backend)).toBe(0)
})

test('J12 lists are filtered, paged and bounded', async () => {
  const { mill } = setup()
  await mill.enqueueMany(
    Array.from({ length: 120 }, (_, index) => [anything, { index, kind: 'a' }, { tags: [`t${index % 2}`] }] as const),
  )
  await mill.enqueue(tick)
  const page = await mill.jobs.list({ queue: 'default', tag: 't0' })
  expect(page.items).toHaveLength(50)
  const rest = await mill.jobs.list({ queue: 'default', tag: 't0' }, { limit: 200, cursor: page.nextCursor! })
  expect([rest.items.length, rest.nextCursor]).toEqual([10, undefined])
  expect((await mill.jobs.list({ payload: { path: 'index', equals: 7 } })).items).toHaveLength(1)
  expect((await mill.jobs.list({ name: 'tick', status: 'queued', enqueuedFrom: new Date(0) })).items).toHaveLength(1)
  expect(await mill.jobs.counts('ticks')).toMatchObject([
    { connection: 'default', queue: 'ticks', counts: { queued: 1 } },
  ])
  for (const limit of [0, 201, 1.5, Number.NaN]) {
    await expect(mill.jobs.list({}, { limit })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  }
  await expect(mill.jobs.list({ status: 'lost' as never })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(mill.jobs.list({ sttus: 'queued' } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})

test('a search by payload is refused where the backend has none', async () => {
  const wrap = (backend: Backend): Backend => ({
    ...backend,
    capabilities: { ...backend.capabilities, payloadSearch: false },
  })
  const { mill } = setup({ wrap })
  const search = mill.jobs.list({ payload: { path: ['a'], equals: 1 } })
  await expect(search).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
})

test('J14 a job runs directly, with its input and result passed through JSON', async () => {
  const direct = defineJob({
    name: 'direct',
    input: z.object({ to: z.string().default('nobody') }),
    async run({ input, progress, log, extend, idempotent, job }) {
      log.info('hello')
      progress(50)
      extend('5m')
      return { to: input.to, once: await idempotent('k', () => 1), attempt: job.attempt, at: { toJSON: () => 'json' } }
    },
  })
  expect(await direct.run({})).toEqual({ to: 'nobody', once: 1, attempt: 1, at: 'json' })
  await expect(direct.run({ to: 1 } as never)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
})

test('J14 a direct run throws the ending that the handler asked for, and what needs a queue', async () => {
  const ending = defineJob({
    name: 'ending',
    run: ({ input }: RunContext<number>) => (input > 1 ? snooze('5s') : fail('no')),
  })
  await expect(ending.run(2)).rejects.toMatchObject({ name: 'OutcomeSignal', outcome: { kind: 'snooze' } })
  await expect(ending.run(1)).rejects.toMatchObject({ outcome: { kind: 'fail' } })
  const reaching = defineJob({ name: 'reaching', run: ({ enqueue }: RunContext<unknown>) => enqueue(tick, undefined) })
  await expect(reaching.run(1)).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  const boasting = defineJob({ name: 'boasting', run: ({ progress }) => progress('x'.repeat(5_000)) })
  await expect(boasting.run(1)).rejects.toMatchObject({ code: 'PROGRESS_TOO_LARGE' })
  await expect(anything.run({ a: 1n })).rejects.toMatchObject({ code: 'PAYLOAD_NOT_JSON' })
})
