// Dead letters: inspect, replay one or many, never anything else.
import { expect, test } from 'vitest'
import { decideReplay } from '../../src/core/decide.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { Backend } from '../../src/store/ports.ts'
import { during, setup, stored, tick } from './setup.ts'

const UNKNOWN_ID = '019f0000-0000-7000-8000-000000000000'

async function withFailed(count: number, options: { readonly wrap?: (backend: Backend) => Backend } = {}) {
  const world = setup(options)
  const { mill } = world
  const consumer = mill.consumer({ queues: ['ticks'] })
  const lines = Array.from(
    { length: count },
    (_, index) => [tick, undefined, { attempts: 1, unique: `k${index}`, priority: 7 }] as const,
  )
  const handles = await mill.enqueueMany(lines)
  for (const job of await consumer.claim(1_000))
    await consumer.nack(job, { error: new RangeError(`broken ${job.attempt}`) })
  return { ...world, consumer, handles }
}

test('D7 a dead letter keeps what is known of it', async () => {
  const { mill, handles } = await withFailed(1)
  const letter = await mill.deadLetters.get(handles[0]!.id)
  expect(letter).toMatchObject({
    status: 'failed',
    priority: 7,
    connection: 'default',
    lastError: { name: 'RangeError' },
  })
  expect(letter?.attempts).toMatchObject([{ status: 'failed', attempt: 1, error: { message: 'broken 1' } }])
  expect((await mill.deadLetters.list({ errorText: 'BROKEN' })).items).toHaveLength(1)
  expect((await mill.deadLetters.list({ errorText: 'fine' })).items).toEqual([])
  expect(await mill.deadLetters.get(await mill.enqueue(tick))).toBeNull()
})

test('D7 replay runs the same job again with fresh attempts, and says when it cannot', async () => {
  const { mill, handles, clock } = await withFailed(2)
  const [first, second] = handles
  await clock.advance(1_000)
  await mill.deadLetters.replay(first!, { actor: 'ada' })
  const job = await mill.jobs.get(first!)
  expect(job).toMatchObject({ status: 'queued', attemptCount: 0, replayedBy: 'ada', priority: 7 })
  await mill.deadLetters.replay(first!)
  expect((await mill.jobs.attempts(first!)).filter(({ status }) => status === 'replayed')).toHaveLength(1)
  const fresh = await mill.enqueue(tick)
  await expect(mill.deadLetters.replay(fresh)).rejects.toMatchObject({ code: 'NOT_REPLAYABLE' })
  await expect(mill.deadLetters.replayAsNew(fresh)).rejects.toMatchObject({ code: 'NOT_REPLAYABLE' })
  await expect(mill.deadLetters.replay(UNKNOWN_ID)).rejects.toMatchObject({ code: 'JOB_NOT_FOUND' })
  await expect(mill.deadLetters.replay('x')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await mill.enqueue(tick, undefined, { unique: 'k1' })
  await expect(mill.deadLetters.replay(second!)).rejects.toMatchObject({ code: 'UNIQUE_KEY_TAKEN' })
})

test('D7 a replay as a new job is linked both ways, and one failure gives one copy', async () => {
  const { mill, backend, handles } = await withFailed(1)
  const [old] = handles
  const id = await mill.deadLetters.replayAsNew(old!)
  expect(await mill.deadLetters.replayAsNew(old!)).toBe(id)
  expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
  expect(await mill.jobs.get(id)).toMatchObject({
    status: 'queued',
    replayOf: old!.id,
    priority: 7,
    maxAttempts: 1,
    uniqueKey: null,
  })
  expect(await mill.jobs.get(old!)).toMatchObject({ status: 'failed', replayedInto: id })
  expect((await mill.jobs.attempts(old!)).filter(({ status }) => status === 'replayed')).toHaveLength(1)
  expect(await stored(backend)).toBe(2)
})

test('a replay as a new job survives a lost reply of either write', async () => {
  let calls = 0
  const wrap = (backend: Backend): Backend => {
    const flaky = async <Value>(reply: Promise<Value>): Promise<Value> => {
      const value = await reply
      if (armed && ++calls % 2 === 1) throw new MillraceError('STORE_TIMEOUT', 'no answer', { retryable: true })
      return value
    }
    const { jobs } = backend
    return {
      ...backend,
      jobs: { ...jobs, insert: (list) => flaky(jobs.insert(list)), apply: (list) => flaky(jobs.apply(list)) },
    }
  }
  let armed = false
  const { mill, backend, handles, clock } = await withFailed(1, { wrap })
  armed = true
  const id = await during(clock, mill.deadLetters.replayAsNew(handles[0]!))
  expect(await mill.jobs.get(handles[0]!)).toMatchObject({ replayedInto: id })
  expect(await stored(backend)).toBe(2)
})

test('D7 replaying many is counted first, paced, idempotent and touches only what matches', async () => {
  const { mill, handles, clock, backend } = await withFailed(25)
  await mill.enqueue(tick, undefined, { unique: 'k3' })
  expect(await mill.deadLetters.replayMany({ queue: 'ticks' }, { dryRun: true })).toEqual({
    matched: 25,
    replayed: 0,
    skipped: 0,
  })
  expect(await mill.deadLetters.replayMany({ queue: 'mail' })).toEqual({ matched: 0, replayed: 0, skipped: 0 })
  expect(await mill.deadLetters.replayMany({ olderThan: '1h' })).toMatchObject({ matched: 0 })
  const startMs = clock.nowMs()
  const paced = mill.deadLetters.replayMany({ queue: 'ticks', errorText: 'broken' }, { perSecond: 10, limit: 20 })
  expect(await during(clock, paced)).toEqual({ matched: 20, replayed: 20, skipped: 0 })
  expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(1_000)
  expect(await mill.deadLetters.replayMany({ queue: 'ticks' })).toEqual({ matched: 5, replayed: 4, skipped: 1 })
  expect(await mill.deadLetters.replayMany({ queue: 'ticks' })).toEqual({ matched: 1, replayed: 0, skipped: 1 })
  expect(await handles[3]!.status()).toBe('failed')
  expect(await mill.deadLetters.replayMany({ name: 'tick' }, { asNew: true })).toEqual({
    matched: 1,
    replayed: 1,
    skipped: 0,
  })
  expect(await mill.deadLetters.replayMany({ name: 'tick' }, { asNew: true })).toEqual({
    matched: 1,
    replayed: 0,
    skipped: 1,
  })
  expect(await stored(backend)).toBe(27)
  await expect(mill.deadLetters.replayMany({}, { perSecond: 0 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  await expect(mill.deadLetters.replayMany({ qeue: 'a' } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
})

test('remove and prune delete failed jobs only', async () => {
  const { mill, handles, clock, backend } = await withFailed(3)
  const live = await mill.enqueue(tick)
  expect([await mill.deadLetters.remove(handles[0]!), await mill.deadLetters.remove(handles[0]!)]).toEqual([
    true,
    false,
  ])
  expect(await mill.deadLetters.remove(live)).toBe(false)
  expect(await mill.deadLetters.prune()).toBe(0)
  await clock.advance(2 * 60 * 60_000)
  expect(await mill.deadLetters.prune({ olderThan: '1h', queue: 'ticks' })).toBe(2)
  expect(await stored(backend)).toBe(1)
})

test('D7 a replay whose reply was lost is not repeated on a job that failed again meanwhile', async () => {
  const { mill, backend } = setup()
  const { id } = await mill.enqueue(tick)
  const consumer = mill.consumer({ queues: ['ticks'] })
  const failOnce = async (): Promise<void> => {
    const [job] = await consumer.claim()
    await consumer.nack(job!, { error: Object.assign(new Error('gone'), { status: 410 }) })
  }
  await failOnce()
  const [seen] = await backend.query.get([id])
  const decision = decideReplay(id, 'op', seen!.lease)
  expect(await backend.jobs.apply([decision])).toEqual(['applied'])
  await failOnce()
  expect(await backend.jobs.apply([decision])).toEqual(['stale'])
  expect(await mill.jobs.get(id)).toMatchObject({ status: 'failed' })
})
