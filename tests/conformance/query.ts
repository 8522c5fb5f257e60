// Reading: by id, by filter, page by page; counts per queue and status.
import { expect } from 'vitest'
import type { JobFilter } from '../../src/store/job-query.ts'
import type { JobId } from '../../src/core/job.ts'
import { allPages } from './dump.ts'
import { completed, failed, retried } from './outcomes.ts'
import { QUEUE, after } from './world.ts'
import type { Setup, World } from './world.ts'

export function query({ test }: Setup): void {
  test('J12 get answers in the order asked, null where there is none', async (world) => {
    const [a, b] = await world.add({}, {})
    const found = await world.query.get([b!, world.newId(), a!, b!])
    expect(found.map((job) => job?.id ?? null)).toEqual([b, null, a, b])
    expect(await world.query.get([])).toEqual([])
  })

  test('O2 ready jobs are counted by lane, in those that are configured', async (world) => {
    await world.add({ priority: 1 }, { priority: 50 }, { priority: 51 }, { priority: 151 }, { delayMs: 5 })
    expect(await world.query.lanes?.(QUEUE)).toEqual([2, 1, 1])
    expect(await world.query.lanes?.('empty')).toEqual([0, 0, 0])
    await (await world.worker()).claim(1)
    expect(await world.query.lanes?.(QUEUE)).toEqual([1, 1, 1])
  })

  test('J12 a listing is newest first and complete, page by page', async (world) => {
    const ids = [
      ...(await world.add(...Array.from({ length: 5 }, () => ({})))),
      ...(await world.add({ priority: 1 }, { delayMs: 5 })),
    ]
    for (const limit of [1, 2, 3, 7, 50]) {
      const jobs = await allPages((page) => world.query.list({}, page), limit)
      expect(jobs.map(({ id }) => id)).toEqual(ids.toReversed())
    }
  })

  test('J12 the last page has no cursor', async (world) => {
    await world.add({}, {})
    expect((await world.query.list({}, { limit: 2 })).nextCursor).toBeUndefined()
    expect(await world.query.list({ queue: 'empty' }, { limit: 2 })).toEqual({ items: [] })
  })

  test('J12 a listing neither repeats nor skips older jobs while new ones arrive and others move', async (world) => {
    const ids = await world.add(...Array.from({ length: 6 }, () => ({})))
    const first = await world.query.list({}, { limit: 3 })
    await world.add({}, {})
    await (await world.worker()).claim(4)
    const rest = await allPages((page) => world.query.list({}, { cursor: first.nextCursor!, ...page }), 2)
    expect([...first.items, ...rest].map(({ id }) => id)).toEqual(ids.toReversed())
  })

  test('J12 filters by queue, name, tag, group and schedule', async (world) => {
    const [plain] = await world.add({})
    const [other] = await world.add({ queue: 'other' })
    const [named] = await world.add({ name: 'resize' })
    const [tagged] = await world.add({ tags: ['eu', 'vip'] })
    const [grouped] = await world.add({ group: 'g' })
    const [ticked] = await world.add({ schedule: { name: 'nightly', tickMs: 1 } })
    expect(await ids(world, { queue: 'other' })).toEqual([other])
    expect(await ids(world, { name: 'resize' })).toEqual([named])
    expect(await ids(world, { tag: 'vip' })).toEqual([tagged])
    expect(await ids(world, { group: 'g' })).toEqual([grouped])
    expect(await ids(world, { schedule: 'nightly' })).toEqual([ticked])
    expect(await ids(world, { queue: QUEUE, name: 'send-welcome' })).toContain(plain)
  })

  test('J12 filters by status, worker and batch', async (world) => {
    const batch = await world.batch()
    const [one, two, waiting] = await world.add({ batch }, {}, { delayMs: 10 })
    const worker = await world.worker()
    const [run] = await worker.claim(2)
    await world.apply(completed(run!))
    expect(await ids(world, { status: ['completed'] })).toEqual([one])
    expect(await ids(world, { status: ['scheduled', 'completed'] })).toEqual([waiting, one])
    expect(await ids(world, { worker: worker.id, status: ['running'] })).toEqual([two])
    expect(await ids(world, { batch })).toEqual([one])
    expect(await ids(world, { batch, status: ['running'] })).toEqual([])
  })

  test('J12 filters by the time of enqueue and of the end', async (world) => {
    const startMs = world.clock.nowMs()
    const [early] = await world.add({})
    await world.clock.advance(100)
    const [late] = await world.add({})
    expect(await ids(world, { enqueuedFromMs: startMs + 50 })).toEqual([late])
    expect(await ids(world, { enqueuedUntilMs: startMs + 50 })).toEqual([early])
    await world.clock.advance(100)
    await world.apply(completed(await (await world.worker()).claimOne()))
    expect(await ids(world, { finishedFromMs: startMs + 150 })).toEqual([early])
    expect(await ids(world, { finishedUntilMs: startMs + 150 })).toEqual([])
    expect(await ids(world, { finishedFromMs: startMs + 150, finishedUntilMs: startMs + 250 })).toEqual([early])
  })

  test('J12 filters by a part of the error: message, name or code, in any case', async (world) => {
    const worker = await world.worker()
    const [bad] = await world.add({ maxAttempts: 1 })
    const run = await worker.claimOne()
    const error = { name: 'SmtpError', message: 'Mailbox NOT found', class: 'permanent', code: 'E550' } as const
    await world.apply({ ...failed(run), error })
    await world.addOne()
    await world.apply(failed(await worker.claimOne(), 'disk full'))
    for (const errorText of ['mailbox not', 'SMTPERR', 'e550']) expect(await ids(world, { errorText })).toEqual([bad])
    expect(await ids(world, { errorText: 'nothing like it' })).toEqual([])
    expect(await ids(world, { errorText: '%' })).toEqual([])
    expect(await ids(world, { errorText: '_' })).toEqual([])
  })

  test('J12 filters by a payload field where the backend can search payloads', async (world) => {
    const [hit] = await world.add(
      { payload: '{"user":{"id":7,"tags":["a"]}}' },
      { payload: '{"user":{"id":"7"}}' },
      { payload: '7' },
    )
    const search = ids(world, { payload: { path: ['user', 'id'], equals: 7 } })
    if (world.capabilities.payloadSearch) {
      expect(await search).toEqual([hit])
      expect(await ids(world, { payload: { path: ['user', 'tags'], equals: ['a'] } })).toEqual([hit])
      expect(await ids(world, { payload: { path: ['nowhere'], equals: null } })).toEqual([])
    } else await expect(search).rejects.toMatchObject({ code: 'NOT_SUPPORTED' })
  })

  test('J12 counts tell every status of every queue, also of queues without jobs', async (world) => {
    await world.queues.configure('empty', { defaultPriority: 1 })
    const worker = await world.worker()
    await world.add({}, {}, { maxAttempts: 1 }, {}, { delayMs: 10 })
    const [one, two, three] = await worker.claim(3)
    await world.apply(completed(one!), retried(three!))
    await world.addOne({ dependsOn: [after(two!.id)] })
    const counts = Object.fromEntries((await world.query.counts()).map((entry) => [entry.queue, entry]))
    expect(Object.keys(counts).sort()).toEqual(['empty', QUEUE])
    const { queued, dispatched, ...rest } = counts[QUEUE]!.counts
    expect(queued + dispatched).toBe(1)
    expect(rest).toEqual({ scheduled: 1, blocked: 1, running: 1, completed: 1, failed: 1, cancelled: 0 })
    expect(counts['empty']).toMatchObject({ counts: { queued: 0, running: 0 }, oldestReadyAtMs: null })
  })

  test('J12 counts of one queue answer that queue', async (world) => {
    await world.add({}, { queue: 'other' })
    expect((await world.query.counts('other')).map(({ queue }) => queue)).toEqual(['other'])
  })

  test('J12 counts tell since when the oldest ready job is ready', async (world) => {
    await world.addOne({ delayMs: 100 })
    expect((await world.query.counts(QUEUE))[0]?.oldestReadyAtMs).toBeNull()
    await world.clock.advance(150)
    await world.jobs.promote(10)
    const readyAtMs = world.clock.nowMs()
    await world.clock.advance(50)
    await world.addOne({ priority: 0 })
    expect((await world.query.counts(QUEUE))[0]?.oldestReadyAtMs).toBe(readyAtMs)
  })

  test('J12 logs of a job without any are empty', async (world) => {
    expect(await world.query.logs(await world.addOne())).toEqual([])
    expect(await world.query.logs(world.newId())).toEqual([])
  })
}

async function ids(world: World, filter: JobFilter): Promise<readonly JobId[]> {
  return (await world.query.list(filter, { limit: 50 })).items.map(({ id }) => id)
}
