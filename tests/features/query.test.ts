// Metadata of a kind, looking at jobs, and running a job without a queue.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { defineJob, snooze } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { setup } from './support.ts'

const thing = defineJob({
  name: 'thing',
  queue: 'things',
  attempts: 1,
  run({ input }: RunContext<{ readonly user: { readonly id: number }; readonly fails?: string }>) {
    if (input.fails !== undefined) throw Object.assign(new Error(input.fails), { code: 'E_THING' })
  },
})
const other = defineJob({ name: 'other', queue: 'others', run: () => 1 })

describe('memory', () => {
  test('J10 values of a kind survive its runs, increments are atomic, kinds do not meet', async () => {
    const counting = defineJob({
      name: 'counting',
      async run({ metadata, job }) {
        await metadata.increment('runs')
        await metadata.set('last', job.id)
        return metadata.get('cursor')
      },
    })
    const { clock, mill } = await setup([counting, other])
    await mill.metadata(counting).set('cursor', { page: 3 })
    await mill.work({ concurrency: 20 })
    const handles = await mill.enqueueMany(Array.from({ length: 100 }, () => [counting] as const))
    for (const handle of handles) expect(await clock.during(handle.result())).toEqual({ page: 3 })
    expect(await mill.metadata('counting').get('runs')).toBe(100)
    expect(await mill.metadata(other).get('runs')).toBeNull()
    expect(Object.keys(await mill.metadata(counting).entries()).sort()).toEqual(['cursor', 'last', 'runs'])
    expect(await mill.metadata(counting).increment('runs', -40)).toBe(60)
    expect(await mill.metadata(counting).remove('runs')).toBe(true)
    expect(await mill.metadata(counting).get('runs')).toBeNull()
  })

  test('J10 metadata of one run travels with the job', async () => {
    const job = defineJob({ name: 'job', run: ({ job: self }) => self.meta })
    const { clock, mill } = await setup([job])
    await mill.work()
    const handle = await mill.enqueue(job, undefined, { meta: { trace: 'abc' } })
    expect(await clock.during(handle.result())).toEqual({ trace: 'abc' })
  })

  test('J12 jobs are found by queue, name, status, tag, time, error text and payload field', async () => {
    const { clock, mill } = await setup([thing, other])
    const one = await mill.enqueue(thing, { user: { id: 1 } }, { tags: ['red'] })
    const two = await mill.enqueue(thing, { user: { id: 2 }, fails: 'Disk On Fire' }, { tags: ['red', 'blue'] })
    const middle = clock.nowMs() + 500
    await clock.advance(1_000)
    const three = await mill.enqueue(other, undefined, { delay: '1h' })
    await mill.work()
    await clock.advance(5_000)
    const ids = async (filter: Parameters<typeof mill.jobs.list>[0]) =>
      (await mill.jobs.list(filter)).items.map(({ id }) => id)
    expect(await ids({})).toEqual([three.id, two.id, one.id])
    expect(await ids({ queue: 'things' })).toEqual([two.id, one.id])
    expect(await ids({ name: 'other' })).toEqual([three.id])
    expect(await ids({ status: ['failed', 'scheduled'] })).toEqual([three.id, two.id])
    expect(await ids({ tag: 'blue' })).toEqual([two.id])
    expect(await ids({ enqueuedFrom: new Date(middle) })).toEqual([three.id])
    expect(await ids({ enqueuedUntil: middle })).toEqual([two.id, one.id])
    expect(await ids({ finishedFrom: middle, status: 'completed' })).toEqual([one.id])
    expect(await ids({ errorText: 'disk on' })).toEqual([two.id])
    expect(await ids({ errorText: 'e_thing' })).toEqual([two.id])
    expect(await ids({ payload: { path: 'user.id', equals: 2 } })).toEqual([two.id])
    await expect(mill.jobs.list({ colour: 'red' } as never)).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('J12 pages are bounded and a walk over them meets every job once while others come and go', async () => {
    const { mill } = await setup([other])
    const handles = await mill.enqueueMany(Array.from({ length: 450 }, () => [other] as const))
    await expect(mill.jobs.list({}, { limit: 201 })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    expect((await mill.jobs.list()).items.length).toBe(50)
    const seen: string[] = []
    let cursor: string | undefined
    do {
      const page = await mill.jobs.list({}, { limit: 100, ...(cursor !== undefined && { cursor }) })
      seen.push(...page.items.map(({ id }) => id))
      cursor = page.nextCursor
      await mill.enqueue(other)
      await mill.jobs.remove(seen.at(-1)!)
    } while (cursor !== undefined)
    expect(seen).toEqual(handles.map(({ id }) => id).reverse())
  })

  test('J12 counts per queue and status equal what the jobs say', async () => {
    const { clock, mill } = await setup([thing, other])
    await mill.enqueueMany([
      [thing, { user: { id: 1 } }],
      [thing, { user: { id: 1 }, fails: 'x' }],
      [thing, { user: { id: 1 } }, { delay: '1h' }],
      [other, undefined, { delay: '1h' }],
    ])
    await mill.work()
    await clock.advance(2_000)
    const counts = await mill.jobs.counts()
    const of = (queue: string) => counts.find((one) => one.queue === queue)?.counts
    expect(of('things')).toMatchObject({ completed: 1, failed: 1, scheduled: 1, queued: 0, running: 0 })
    expect(of('others')).toMatchObject({ scheduled: 1, completed: 0 })
  })

  test('J12 an id that is no id, and a cursor that is none, are typed errors', async () => {
    const { mill } = await setup([other])
    await expect(mill.jobs.get('42')).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await mill.enqueueMany(Array.from({ length: 3 }, () => [other] as const))
    await expect(mill.jobs.list({}, { cursor: "nonsense'; drop" })).rejects.toMatchObject({ code: 'INVALID_OPTION' })
  })

  test('J14 a job is called directly with typed input, without a queue', async () => {
    const doubled = defineJob({
      name: 'doubled',
      input: z.object({ n: z.coerce.number() }),
      run: async ({ input, progress, log, attempt, idempotent }) => {
        progress(50)
        log.info('half')
        return { twice: (await idempotent('key', () => input.n)) * 2, attempt }
      },
    })
    const answer: { twice: number; attempt: number } = await doubled.run({ n: 21 })
    expect(answer).toEqual({ twice: 42, attempt: 1 })
    await expect(doubled.run({ n: 'x' } as never)).rejects.toMatchObject({ code: 'INVALID_PAYLOAD' })
    const sleepy = defineJob({ name: 'sleepy', run: () => snooze('1m', 'not now') })
    await expect(sleepy.run(undefined)).rejects.toThrow('not now')
    const controller = new AbortController()
    const stopped = defineJob({ name: 'stopped', run: ({ signal }) => signal.throwIfAborted() })
    controller.abort(new Error('enough'))
    await expect(stopped.run(undefined, { signal: controller.signal })).rejects.toThrow('enough')
  })
})
