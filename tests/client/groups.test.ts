// Jobs that belong together: batches, flows, schedules, queues.
import { expect, test } from 'vitest'
import { anything, during, mail, setup, stored, tick } from './setup.ts'
import { createClient } from '../../src/client/client.ts'
import type { Consumer } from '../../src/client/consumer.ts'

async function drain(consumer: Consumer): Promise<readonly string[]> {
  const names: string[] = []
  for (let jobs = await consumer.claim(100); jobs.length > 0; jobs = await consumer.claim(100)) {
    for (const job of jobs) {
      names.push(job.name)
      await consumer.ack(job)
    }
  }
  return names
}

test('T3 a batch is filled, sealed and followed, and its callbacks come once', async () => {
  const { mill, clock } = setup()
  const consumer = mill.consumer({ queues: ['ticks', 'mail'] })
  const batch = await mill.batch('import', {
    onComplete: [mail, { to: 'done' }],
    onSuccess: [mail, { to: 'won' }],
    onFailure: [mail, { to: 'lost' }],
    meta: { file: 'a.csv' },
  })
  await batch.add(tick)
  await batch.addMany([[tick], [tick]])
  await drain(consumer)
  expect(await batch.progress()).toMatchObject({ total: 3, pending: 0, completed: 3, percent: 100, successRate: 1 })
  expect(await mill.batches.get(batch.id)).toMatchObject({
    name: 'import',
    meta: { file: 'a.csv' },
    sealed: false,
    finishedAt: null,
  })
  const waiting = batch.wait()
  await batch.seal()
  expect(await during(clock, waiting)).toMatchObject({
    id: batch.id,
    sealed: true,
    finishedAt: expect.any(Date) as Date,
  })
  const { items } = await mill.jobs.list({ queue: 'mail' })
  expect(items.map(({ payload }) => payload)).toEqual([{ to: 'won' }, { to: 'done' }])
  await expect(batch.add(tick)).rejects.toMatchObject({ code: 'BATCH_CLOSED' })
  await expect(mill.enqueue(tick, undefined, { batch })).rejects.toMatchObject({ code: 'BATCH_CLOSED' })
  expect((await mill.batches.list()).items).toHaveLength(1)
})

test('a whole batch is opened, filled and sealed in one call', async () => {
  const { mill, clock } = setup()
  const batch = await mill.enqueueBatch('b', [[tick], [mail, { to: 'a' }]], { onComplete: ['anything', 1] })
  await drain(mill.consumer({ queues: ['ticks', 'mail'] }))
  expect(await during(clock, batch.wait())).toMatchObject({ progress: { total: 2, completed: 2 } })
  expect((await mill.jobs.list({ name: 'anything' })).items).toHaveLength(1)
})

test('a whole batch with one bad line writes neither jobs nor batch', async () => {
  const { mill, backend } = setup()
  const bad = { to: 1 } as never
  await expect(mill.enqueueBatch('b', [[tick], [mail, bad]])).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
  await expect(mill.enqueueBatch('b', [[tick]], { onSuccess: [mail, bad] })).rejects.toMatchObject({
    code: 'INVALID_PAYLOAD',
  })
  await expect(mill.batch('bad name')).rejects.toMatchObject({ code: 'INVALID_NAME' })
  await expect(mill.batch('b', { onDone: [tick, undefined] } as never)).rejects.toMatchObject({
    code: 'INVALID_OPTION',
  })
  expect([await stored(backend), (await mill.batches.list()).items]).toEqual([0, []])
})

test('the queues of callbacks and schedules are made with their declared settings', async () => {
  const { mill } = setup({ queues: { mail: { attempts: 9 }, ticks: { attempts: 8 } } })
  await mill.batch('b', { onComplete: [mail, { to: 'a' }] })
  await mill.schedules.upsert('often', { job: tick, every: '1m' })
  expect((await mill.queues.list()).map(({ name, attempts }) => [name, attempts])).toEqual([
    ['mail', 9],
    ['ticks', 8],
  ])
})

test('cancelling a batch reaches every live job over many pages', async () => {
  const { mill } = setup()
  const consumer = mill.consumer({ queues: ['ticks'] })
  const batch = await mill.batch('big')
  await batch.addMany(Array.from({ length: 450 }, () => [tick] as const))
  const running = await consumer.claim(10)
  await consumer.ack(running[0]!)
  expect(await batch.cancel()).toBe(449)
  expect(await batch.progress()).toMatchObject({ pending: 9, completed: 1, cancelled: 440 })
  expect(await consumer.nack(running[1]!)).toBe('cancelled')
  await expect(mill.batches.cancel('019f0000-0000-7000-8000-000000000000')).rejects.toMatchObject({
    code: 'BATCH_NOT_FOUND',
  })
})

test('T4 a flow runs its leaves first, and a node used twice is one job', async () => {
  const { mill, backend } = setup()
  const shared = { job: tick } as const
  const flow = await mill.flow({
    job: anything,
    input: 'root',
    children: [
      { job: mail, input: { to: 'left' }, children: [shared] },
      { job: 'send-mail', input: { to: 'right' }, children: [shared] },
    ],
  })
  expect(await stored(backend)).toBe(4)
  expect(flow.handles).toHaveLength(4)
  expect(await flow.handleOf(shared)?.status()).toBe('queued')
  expect(await flow.root.status()).toBe('blocked')
  const consumer = mill.consumer({ queues: ['ticks', 'mail', 'default'] })
  const order: string[] = []
  for (let [job] = await consumer.claim(); job !== undefined; [job] = await consumer.claim()) {
    order.push(job.name)
    await consumer.ack(job)
  }
  expect(order).toEqual(['tick', 'send-mail', 'send-mail', 'anything'])
})

test('a very deep flow is no problem', async () => {
  const { mill, backend } = setup()
  let node: object = { job: tick }
  for (let depth = 1; depth < 3_000; depth++) node = { job: tick, children: [node] }
  await mill.flow(node as never)
  expect(await stored(backend)).toBe(3_000)
})

test('T2 a schedule is stored, previewed, paused, resumed, run and removed', async () => {
  const { mill, clock } = setup()
  const nightly = await mill.schedules.upsert('nightly', {
    job: mail,
    input: { to: 'all' },
    cron: '30 3 * * *',
    timeZone: 'Europe/Berlin',
    misfire: { catchUp: 3 },
    overlap: 'skip',
    priority: 'low',
  })
  expect(nightly).toMatchObject({
    name: 'nightly',
    job: 'send-mail',
    queue: 'mail',
    payload: { to: 'all' },
    priority: 200,
  })
  expect(nightly).toMatchObject({ enabled: true, nextRunAt: new Date('2030-01-02T02:30:00Z'), lastRunAt: null })
  expect(await mill.schedules.preview('nightly', 2)).toEqual([
    new Date('2030-01-02T02:30:00Z'),
    new Date('2030-01-03T02:30:00Z'),
  ])
  await mill.schedules.pause('nightly')
  expect(await mill.schedules.get('nightly')).toMatchObject({ enabled: false })
  await clock.advance(3 * 24 * 60 * 60_000)
  await mill.schedules.resume('nightly')
  expect(await mill.schedules.get('nightly')).toMatchObject({
    enabled: true,
    nextRunAt: new Date('2030-01-05T02:30:00Z'),
  })
  const extra = await mill.schedules.runNow('nightly')
  expect(await mill.jobs.get(extra)).toMatchObject({
    priority: 200,
    schedule: { name: 'nightly' },
    payload: { to: 'all' },
  })
  expect([await mill.schedules.remove('nightly'), await mill.schedules.remove('nightly')]).toEqual([true, false])
  await expect(mill.schedules.runNow('nightly')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
  await expect(mill.schedules.preview('nightly')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
})

test('T2 an interval starts at once, and the same upsert again neither starts nor resumes it', async () => {
  const { mill, clock } = setup()
  const first = await mill.schedules.upsert('often', { job: tick, every: '10m' })
  expect(first.nextRunAt).toEqual(new Date(clock.nowMs()))
  await clock.advance(90_000)
  const again = await mill.schedules.upsert('often', { job: tick, every: '10m' })
  expect([again.nextRunAt, again.recurrence]).toEqual([first.nextRunAt, first.recurrence])
  await mill.schedules.pause('often')
  expect(await mill.schedules.upsert('often', { job: tick, every: '10m' })).toMatchObject({ enabled: false })
  const changed = await mill.schedules.upsert('often', { job: tick, every: '5m', enabled: true })
  expect(changed.nextRunAt).toEqual(new Date(clock.nowMs()))
})

test('J3 a queue is configured piece by piece, paused and resumed', async () => {
  const { mill } = setup()
  await mill.queues.configure('mail', { rate: { limit: 100, per: '1m' }, perKey: { concurrency: 1 } })
  const queue = await mill.queues.configure('mail', {
    concurrency: 5,
    retention: { failed: '7d' },
    lowerLaneShare: 0,
    lanes: [10, 20],
  })
  expect(queue.limits).toEqual({
    concurrency: 5,
    rate: { limit: 100, perMs: 60_000, burst: 2 },
    perKeyConcurrency: 1,
    perKeyRate: null,
  })
  expect(queue).toMatchObject({
    retention: { failedMs: 604_800_000, completedMs: null },
    lowerLaneShare: 0,
    lanes: [10, 20],
  })
  expect((await mill.queues.configure('mail', { rate: null })).limits).toMatchObject({ concurrency: 5, rate: null })
  expect(await mill.queues.pause('mail')).toMatchObject({ paused: true })
  const consumer = mill.consumer({ queues: ['mail'] })
  await mill.enqueue(mail, { to: 'a' })
  expect(await consumer.claim()).toEqual([])
  expect(await mill.queues.resume('mail')).toMatchObject({ paused: false })
  expect(await consumer.claim()).toHaveLength(1)
  expect((await mill.queues.list()).map(({ name }) => name)).toEqual(['mail'])
  expect(await mill.queues.get('nobody')).toBeNull()
})

test('T3 a batch whose jobs are refused leaves nothing behind and fires no callback', async () => {
  const { mill, backend } = setup()
  const callbacks = { onComplete: ['anything', 1], onSuccess: ['anything', 2], onFailure: ['anything', 3] } as const
  const stranger = '019f0000-0000-7000-8000-00000000000a'
  const lines = [[tick], [tick, undefined, { after: stranger }]] as const
  await expect(mill.enqueueBatch('b', lines, callbacks)).rejects.toMatchObject({ code: 'DEPENDENCY_NOT_FOUND' })
  expect((await mill.batches.list()).items).toEqual([])
  expect((await backend.query.list({}, { limit: 10 })).items).toEqual([])
})

test('J3 queues that nobody declares take the defaults of the system', async () => {
  const { backend, runtime } = setup()
  const mill = createClient({
    jobs: [tick, mail],
    connections: { default: backend },
    runtime,
    defaults: { attempts: 7, priority: 'low' },
    queues: { mail: { attempts: 2 } },
  })
  await mill.enqueue(tick)
  await mill.enqueue(mail, { to: 'a' })
  expect(await mill.queues.get('ticks')).toMatchObject({ attempts: 7, priority: 200 })
  expect(await mill.queues.get('mail')).toMatchObject({ attempts: 2, priority: 200 })
})
