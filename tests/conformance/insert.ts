// Inserting: what is stored, the defaults, the time, and calls that are repeated.
import { expect } from 'vitest'
import { dump } from './dump.ts'
import { QUEUE, accepted } from './world.ts'
import type { Setup } from './world.ts'

export function insert({ test }: Setup): void {
  test('J1 a stored job shows everything it was given', async (world) => {
    const nowMs = world.clock.nowMs()
    const origin = await world.addOne()
    const batch = await world.batch()
    const job = world.job({
      priority: 12,
      maxAttempts: 5,
      timeoutMs: 1_234,
      tags: ['eu', 'vip'],
      meta: '{"trace":"t1"}',
      batch,
      group: 'ada',
      limitKey: 'smtp',
      replayOf: origin,
      schedule: { name: 'nightly', tickMs: 99 },
      unique: { key: 'welcome:1', mode: 'until-finished', windowMs: 1_000, onDuplicate: 'keep' },
    })
    await world.jobs.insert([job])
    expect(await world.get(job.id)).toEqual({
      id: job.id,
      queue: QUEUE,
      name: job.name,
      payload: job.payload,
      priority: 12,
      status: expect.stringMatching(/^(queued|dispatched)$/),
      attemptCount: 0,
      maxAttempts: 5,
      crashCount: 0,
      timeoutMs: 1_234,
      runAtMs: nowMs,
      enqueuedAtMs: nowMs,
      updatedAtMs: nowMs,
      startedAtMs: null,
      finishedAtMs: null,
      lastError: null,
      result: null,
      progress: null,
      worker: null,
      lease: expect.any(Number),
      batch,
      tags: ['eu', 'vip'],
      meta: '{"trace":"t1"}',
      group: 'ada',
      limitKey: 'smtp',
      uniqueKey: 'welcome:1',
      parents: [],
      schedule: { name: 'nightly', tickMs: 99 },
      waitsFor: null,
      cancelRequested: false,
      replayOf: origin,
      replayedAtMs: null,
      replayedBy: null,
      replayedInto: null,
    })
  })

  test('J1 fields that were not given are null or empty', async (world) => {
    const job = await world.get(await world.addOne())
    const { batch, meta, group, limitKey, uniqueKey, schedule, replayOf } = job
    expect({ batch, meta, group, limitKey, uniqueKey, schedule, replayOf }).toEqual({
      batch: null,
      meta: null,
      group: null,
      limitKey: null,
      uniqueKey: null,
      schedule: null,
      replayOf: null,
    })
    expect(job.tags).toEqual([])
  })

  test('J2 the payload comes back byte for byte', async (world) => {
    const payload = '{"b":1,"a":"ünï – 日本 \\u0007 \\"x\\"", "n": 1.0, "big": 12345678901234567890}'
    const id = await world.addOne({ payload })
    expect((await world.get(id)).payload).toBe(payload)
    const worker = await world.worker()
    expect((await worker.claimOne()).payload).toBe(payload)
  })

  test('J2 priority and attempts default to those of the queue', async (world) => {
    await world.queues.configure(QUEUE, { defaultPriority: 30, defaultAttempts: 9 })
    const [plain, own] = await world.add({}, { priority: 0, maxAttempts: 1 })
    expect(await world.get(plain!)).toMatchObject({ priority: 30, maxAttempts: 9 })
    expect(await world.get(own!)).toMatchObject({ priority: 0, maxAttempts: 1 })
  })

  test('J2 a change of the defaults of a queue does not touch jobs that are stored', async (world) => {
    const id = await world.addOne()
    const before = await world.get(id)
    await world.queues.configure(QUEUE, { defaultPriority: 1, defaultAttempts: 1 })
    expect(await world.get(id)).toEqual(before)
  })

  test('J2 a delay is added to the clock of the store', async (world) => {
    const id = await world.addOne({ delayMs: 5_000 })
    expect(await world.get(id)).toMatchObject({
      status: 'scheduled',
      waitsFor: 'delay',
      runAtMs: world.clock.nowMs() + 5_000,
    })
  })

  test('J2 a moment in the future is kept, a moment in the past means now', async (world) => {
    const nowMs = world.clock.nowMs()
    const [future, past] = await world.add({ runAtMs: nowMs + 60_000 }, { runAtMs: nowMs - 60_000 })
    expect(await world.get(future!)).toMatchObject({ status: 'scheduled', runAtMs: nowMs + 60_000 })
    expect(await world.statusOf(past!)).toEqual(['queued'])
  })

  test('J2 with a delay and a moment the later one counts', async (world) => {
    const nowMs = world.clock.nowMs()
    const [delayLater, momentLater] = await world.add(
      { delayMs: 9_000, runAtMs: nowMs + 1_000 },
      { delayMs: 1_000, runAtMs: nowMs + 9_000 },
    )
    expect((await world.get(delayLater!)).runAtMs).toBe(nowMs + 9_000)
    expect((await world.get(momentLater!)).runAtMs).toBe(nowMs + 9_000)
  })

  test('J2 many jobs of several kinds and queues go in by one call, results in the order given', async (world) => {
    const jobs = [world.job({ name: 'a' }), world.job({ queue: 'other', name: 'b' }), world.job({ delayMs: 10 })]
    const results = accepted(await world.jobs.insert(jobs))
    expect(results).toEqual(jobs.map(({ id }) => ({ id, outcome: 'inserted' })))
  })

  test('J2 an insert repeated with the same ids writes nothing and says so', async (world) => {
    const jobs = [world.job(), world.job({ delayMs: 1_000 }), world.job({ priority: 1 })]
    await world.jobs.insert(jobs)
    const before = await dump(world.backend)
    await world.clock.advance(50)
    expect(accepted(await world.jobs.insert(jobs))).toEqual(jobs.map(({ id }) => ({ id, outcome: 'already' })))
    expect(await dump(world.backend)).toEqual(before)
  })

  test('J2 a repeated insert is recognised while the job runs and after it has ended', async (world) => {
    const job = world.job()
    await world.jobs.insert([job])
    const worker = await world.worker()
    const run = await worker.claimOne()
    expect(accepted(await world.jobs.insert([job]))).toEqual([{ id: job.id, outcome: 'already' }])
    const done = {
      jobId: run.id,
      edge: 'complete',
      guard: { from: ['running'], lease: run.lease },
      to: 'completed',
    } as const
    await world.apply({ ...done, attempt: 'count' })
    expect(accepted(await world.jobs.insert([job]))).toEqual([{ id: job.id, outcome: 'already' }])
    expect(await world.statusOf(job.id)).toEqual(['completed'])
  })

  test('J2 a repeat that adds new jobs inserts only those', async (world) => {
    const [old, fresh] = [world.job(), world.job()]
    await world.jobs.insert([old])
    expect(accepted(await world.jobs.insert([old, fresh]))).toEqual([
      { id: old.id, outcome: 'already' },
      { id: fresh.id, outcome: 'inserted' },
    ])
  })

  test('J2 one id twice in a call is one job', async (world) => {
    const job = world.job()
    expect(accepted(await world.jobs.insert([job, job])).map(({ outcome }) => outcome)).toEqual(['inserted', 'already'])
    const worker = await world.worker()
    expect(await world.drain(worker)).toEqual([job.id])
  })

  test('J2 an id that its caller chose is one job, whatever queues it is enqueued in', async (world) => {
    const id = await world.addOne({ ownId: true, queue: 'first' })
    const [twice, fresh] = [world.newId(), world.newId()]
    const asked = [
      { id, queue: 'second' },
      { id: twice, queue: 'third' },
      { id: twice, queue: 'third' },
      { id, queue: 'first' },
      { id: fresh },
    ]
    const results = await world.accept(...asked.map((one) => ({ ...one, ownId: true })))
    expect(results).toEqual([
      { id, outcome: 'already' },
      { id: twice, outcome: 'inserted' },
      { id: twice, outcome: 'already' },
      { id, outcome: 'already' },
      { id: fresh, outcome: 'inserted' },
    ])
    expect(await world.get(id)).toMatchObject({ queue: 'first' })
    const { items } = await world.query.list({}, { limit: 10 })
    expect(items.map((one) => one.id).sort()).toEqual([id, twice, fresh].sort())
  })

  test('J2 an insert of nothing is accepted', async (world) => {
    expect(await world.jobs.insert([])).toEqual({ ok: true, results: [] })
  })

  test('J2 ten thousand jobs go in by one call', async (world) => {
    const jobs = Array.from({ length: 10_000 }, () => world.job())
    expect(accepted(await world.jobs.insert(jobs))).toHaveLength(10_000)
    expect(await world.countReady()).toBe(10_000)
  })
}
