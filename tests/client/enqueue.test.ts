// Enqueue: one insert for many calls, the same ids after a lost reply, middleware, events, connections.
import { afterEach, expect, test, vi } from 'vitest'
import { memory } from '../../src/backends/memory/backend.ts'
import { createClient } from '../../src/client/client.ts'
import { defineJob } from '../../src/client/define-job.ts'
import type { EnqueueMiddleware } from '../../src/client/middleware.ts'
import type { RunContext } from '../../src/core/definition.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { NewJob } from '../../src/core/job.ts'
import { plant } from '../../src/core/planted.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend, InsertReply } from '../../src/store/ports.ts'
import { anything, during, mail, setup, stored, tick } from './setup.ts'

afterEach(() => plant(undefined))

/** The backend with every insert passed through `around`. */
function inserting(around: (jobs: readonly NewJob[], insert: Backend['jobs']['insert']) => Promise<InsertReply>) {
  return (backend: Backend): Backend => ({
    ...backend,
    jobs: { ...backend.jobs, insert: (jobs) => around(jobs, (list) => backend.jobs.insert(list)) },
  })
}

const lost = (): never => {
  throw new MillraceError('STORE_TIMEOUT', 'no answer', { retryable: true })
}

test('J1 a job is stored with its input as given and the defaults of its kind and queue', async () => {
  const { mill } = setup()
  const handle = await mill.enqueue(
    'send-mail',
    { to: 'ada' },
    { tags: ['vip'], meta: { trace: 'x' }, priority: 'high' },
  )
  expect(handle).toMatchObject({ duplicate: false, outcome: 'inserted', connection: 'default' })
  const job = await mill.jobs.get(handle.id)
  expect(job).toMatchObject({ name: 'send-mail', queue: 'mail', status: 'queued', payload: { to: 'ada' } })
  expect(job).toMatchObject({ priority: 50, maxAttempts: 3, timeoutMs: 300_000, tags: ['vip'], meta: { trace: 'x' } })
  expect(job?.enqueuedAt).toBeInstanceOf(Date)
  expect(await mill.jobs.get(await mill.enqueue(tick))).toMatchObject({ payload: null, priority: 100 })
})

test('the input is stored, not what the schema made of it', async () => {
  const { z } = await import('zod')
  const parsed = defineJob({
    name: 'parsed',
    input: z.object({ day: z.string().transform(async (day) => day.length) }),
    run: ({ input }) => input.day,
  })
  const { mill } = setup({ jobs: [parsed] })
  const { id } = await mill.enqueue(parsed, { day: 'monday' })
  expect((await mill.jobs.get(id))?.payload).toEqual({ day: 'monday' })
  expect(await parsed.run({ day: 'monday' })).toBe(6)
})

test('J2 calls of one tick share an insert, and each gets its own answer', async () => {
  const inserts: number[] = []
  const { mill } = setup({ wrap: inserting((jobs, insert) => (inserts.push(jobs.length), insert(jobs))) })
  await mill.enqueue(tick)
  const numbers = Array.from({ length: 50 }, (_, index) => index)
  const handles = await Promise.all(
    numbers.map((index) => mill.enqueue(anything, index, { unique: `key-${index % 40}` })),
  )
  expect(inserts).toEqual([1, 50])
  expect(handles.filter(({ duplicate }) => duplicate)).toHaveLength(10)
  expect(handles[45]?.id).toBe(handles[5]?.id)
  expect((await mill.jobs.get(handles[39]!))?.payload).toBe(39)
})

test('J2 a store that keeps the order of inserts gets a second one while the first is under way, never a third', async () => {
  let answer = (): void => undefined
  const answered = new Promise<void>((resolve) => (answer = resolve))
  const inserts: (readonly string[])[] = []
  const { mill } = setup({
    wrap: (backend) => {
      const slow = inserting(async (jobs, insert) => {
        inserts.push(jobs.map(({ payload }) => payload))
        await answered
        return insert(jobs)
      })(backend)
      return { ...slow, capabilities: { ...slow.capabilities, orderedInserts: 2 } }
    },
  })
  await mill.queues.configure('default', {})
  const call = (from: number, count: number) =>
    Promise.all(Array.from({ length: count }, (_, index) => mill.enqueue(anything, from + index)))
  const calls = [call(0, 1)]
  await vi.waitFor(() => expect(inserts.map((jobs) => jobs.length)).toEqual([1]))
  calls.push(call(1, 31))
  expect(inserts).toHaveLength(1)
  calls.push(call(32, 40))
  await new Promise(setImmediate)
  expect(inserts.map((jobs) => jobs.length)).toEqual([1, 32])
  answer()
  await Promise.all(calls)
  expect(inserts.flat()).toEqual(Array.from({ length: 72 }, (_, index) => String(index)))
})

test('a job that the store cannot take fails only its own call', async () => {
  const { mill, backend } = setup({
    wrap: inserting((jobs, insert) => {
      if (jobs.some(({ payload }) => payload === '7')) throw new RangeError('the store chokes on 7')
      return insert(jobs)
    }),
  })
  const calls = await Promise.allSettled(Array.from({ length: 20 }, (_, index) => mill.enqueue(anything, index)))
  expect(calls.flatMap(({ status }, index) => (status === 'rejected' ? [index] : []))).toEqual([7])
  expect(await stored(backend)).toBe(19)
})

test('a batch or a parent that refuses does not refuse the calls beside it', async () => {
  const { mill, backend } = setup()
  const batch = '019f0000-0000-7000-8000-000000000000'
  const [bad, good] = await Promise.allSettled([mill.enqueue(tick, undefined, { batch }), mill.enqueue(tick)])
  expect([bad?.status, good?.status]).toEqual(['rejected', 'fulfilled'])
  expect(await stored(backend)).toBe(1)
})

test('a lost reply is repeated with the same ids, so the job is stored once', async () => {
  let calls = 0
  const wrap = inserting(async (jobs, insert) => {
    const reply = await insert(jobs)
    return ++calls === 1 ? lost() : reply
  })
  const { mill, backend, clock } = setup({ wrap })
  const handle = await during(clock, mill.enqueue(tick))
  expect(handle).toMatchObject({ outcome: 'inserted', duplicate: false })
  expect([calls, await stored(backend)]).toEqual([2, 1])
})

test('the planted bug of new ids on a retry stores the job twice', async () => {
  plant('enqueue-retried-with-new-id')
  let calls = 0
  const wrap = inserting(async (jobs, insert) => {
    const reply = await insert(jobs)
    return ++calls === 1 ? lost() : reply
  })
  const { mill, backend, clock } = setup({ wrap })
  await during(clock, mill.enqueue(tick))
  expect(await stored(backend)).toBe(2)
})

test('a store that never answers is given up after three tries', async () => {
  let calls = 0
  const wrap = inserting(() => (calls++, new Promise<InsertReply>(() => undefined)))
  const { mill, clock } = setup({ wrap, storeTimeoutMs: 1_000 })
  await expect(during(clock, mill.enqueue(tick))).rejects.toMatchObject({ code: 'STORE_TIMEOUT', retryable: true })
  expect(calls).toBe(3)
})

test('an id of the caller makes the call repeatable', async () => {
  const { mill, backend } = setup()
  const id = '019F0000-0000-7000-8000-000000000000'
  expect(await mill.enqueue(tick, undefined, { id })).toMatchObject({ id: id.toLowerCase(), outcome: 'inserted' })
  expect(await mill.enqueue(tick, undefined, { id })).toMatchObject({ outcome: 'already', duplicate: true })
  expect(await stored(backend)).toBe(1)
})

test('J2 a bulk call is one atom over mixed kinds, answered in order', async () => {
  const inserts: number[] = []
  const { mill, backend } = setup({ wrap: inserting((jobs, insert) => (inserts.push(jobs.length), insert(jobs))) })
  const [first, second, third] = await mill.enqueueMany([
    [mail, { to: 'a' }, { unique: 'k' }],
    ['tick'],
    [mail, { to: 'b' }, { unique: 'k' }],
  ])
  expect([first.duplicate, second.duplicate, third.duplicate]).toEqual([false, false, true])
  expect(third.id).toBe(first.id)
  expect([inserts, await stored(backend)]).toEqual([[3], 2])
  expect(await mill.enqueueMany([])).toEqual([])
})

test('jobs of one call may depend on each other, in any order', async () => {
  const { mill } = setup()
  const parent = '019f0000-0000-7000-8000-000000000001'
  const [child] = await mill.enqueueMany([
    [tick, undefined, { after: { job: parent, onFailure: 'continue' } }],
    [tick, undefined, { id: parent }],
  ])
  expect(await mill.jobs.get(child)).toMatchObject({ status: 'blocked', waitsFor: 'parents', parents: [parent] })
})

test('D9 the unique rules of a kind apply, and one call may change or drop them', async () => {
  const once = defineJob({
    name: 'once',
    unique: true,
    run: ({ input }: RunContext<{ a: number; b: number }>) => input.a,
  })
  const keyed = defineJob({
    name: 'keyed',
    unique: { by: ({ a }: { a: number }) => `a:${a}`, window: '1m', onDuplicate: 'replace' },
    run: ({ input }: RunContext<{ a: number }>) => input.a,
  })
  const { mill } = setup({ jobs: [once, keyed] })
  const first = await mill.enqueue(once, { a: 1, b: 2 })
  expect(await mill.enqueue(once, { b: 2, a: 1 })).toMatchObject({
    id: first.id,
    outcome: 'duplicate',
    duplicate: true,
  })
  expect(await mill.enqueue(once, { a: 1, b: 2 }, { unique: false })).toMatchObject({ duplicate: false })
  expect(await mill.enqueue(once, { a: 1, b: 2 }, { unique: 'own' })).toMatchObject({ duplicate: false })
  await mill.enqueue(keyed, { a: 1 })
  expect(await mill.enqueue(keyed, { a: 1 })).toMatchObject({ outcome: 'replaced', duplicate: true })
  expect(await mill.enqueue(keyed, { a: 1 }, { unique: { onDuplicate: 'keep' } })).toMatchObject({
    outcome: 'duplicate',
  })
})

test('group and limit keys come from the kind or from the call', async () => {
  const grouped = defineJob({
    name: 'grouped',
    group: (input) => input.user,
    limitKey: (input) => `u:${input.user}`,
    run: ({ input }: RunContext<{ user: string }>) => input.user,
  })
  const { mill } = setup({ jobs: [grouped] })
  expect(await mill.jobs.get(await mill.enqueue(grouped, { user: 'ada' }))).toMatchObject({
    group: 'ada',
    limitKey: 'u:ada',
  })
  expect(await mill.jobs.get(await mill.enqueue(grouped, { user: 'ada' }, { group: 'g' }))).toMatchObject({
    group: 'g',
  })
  await expect(mill.enqueue(grouped, { user: '' })).rejects.toMatchObject({ code: 'INVALID_KEY' })
})

test('middleware may add to a call, one by one and in bulk, and still shares the bulk insert', async () => {
  const seen: string[] = []
  const trace: EnqueueMiddleware = async (call, next) => {
    const reply = await next({ ...call, options: { ...call.options, meta: { trace: 't' } } })
    seen.push(`${call.job.name} ${reply.outcome}`)
    return reply
  }
  const inserts: number[] = []
  const wrap = inserting((jobs, insert) => (inserts.push(jobs.length), insert(jobs)))
  const { mill } = setup({ middleware: [trace], wrap })
  const handles = [await mill.enqueue(tick), ...(await mill.enqueueMany([[tick], [mail, { to: 'a' }]]))]
  for (const { id } of handles) expect((await mill.jobs.get(id))?.meta).toEqual({ trace: 't' })
  expect(inserts).toEqual([1, 2])
  expect(seen).toEqual(['tick inserted', 'tick inserted', 'send-mail inserted'])
})

test('a line of a bulk call without options has none for middleware, and null is none', async () => {
  const seen: unknown[] = []
  const watch: EnqueueMiddleware = (call, next) => {
    seen.push(call.options)
    return next()
  }
  const none = null as never // from JavaScript
  for (const middleware of [[], [watch]]) {
    const { mill } = setup({ middleware })
    const handles = await mill.enqueueMany([
      [tick, undefined],
      [tick, undefined, none],
      [tick, undefined, { priority: 7 }],
    ])
    const jobs = await Promise.all(handles.map(({ id }) => mill.jobs.get(id)))
    expect(jobs.map((job) => job?.priority === 7)).toEqual([false, false, true])
  }
  expect(seen).toEqual([{}, {}, { priority: 7 }])
})

test('middleware that throws stops a whole bulk call', async () => {
  const guard: EnqueueMiddleware = async (call, next) => {
    if (call.job.name === 'send-mail') throw new Error('no mail today')
    return next()
  }
  const { mill, backend } = setup({ middleware: [guard] })
  await expect(mill.enqueueMany([[tick], [mail, { to: 'a' }], [tick]])).rejects.toThrow('no mail today')
  expect(await stored(backend)).toBe(0)
})

test('middleware that calls next twice is refused', async () => {
  const greedy: EnqueueMiddleware = async (_, next) => {
    await next()
    return next()
  }
  const { mill, backend } = setup({ middleware: [greedy] })
  await expect(mill.enqueue(tick)).rejects.toThrow('next() twice')
  expect(await stored(backend)).toBe(1)
})

test('events tell what was enqueued', async () => {
  const { mill } = setup()
  const listener = vi.fn<(event: unknown) => void>()
  const stop = mill.on('enqueued', listener)
  const { id } = await mill.enqueue(tick, undefined, { unique: 'a' })
  await mill.enqueue(tick, undefined, { unique: 'a' })
  stop()
  await mill.enqueue(tick)
  expect(listener.mock.calls.map(([event]) => event)).toEqual([
    { id, name: 'tick', queue: 'ticks', duplicate: false, batch: null },
    { id, name: 'tick', queue: 'ticks', duplicate: true, batch: null },
  ])
})

test('J7 a secret is told once per kind, by field and never by value', async () => {
  const warn = vi.fn<(fields: object, message: string) => void>()
  const nothing = (): void => undefined
  const logger = { debug: nothing, info: nothing, error: nothing, warn }
  const runtime = createRuntime({ logger })
  const mill = createClient({ jobs: [anything], connections: { default: memory() }, runtime })
  await mill.enqueue(anything, { password: 'hunter2' })
  await mill.enqueue(anything, { password: 'hunter2' })
  expect(warn).toHaveBeenCalledTimes(1)
  expect(JSON.stringify(warn.mock.calls)).toContain('payload.password')
  expect(JSON.stringify(warn.mock.calls)).not.toContain('hunter2')
})

test('J3 a queue is made once, with the declared settings', async () => {
  let ensured = 0
  const wrap = (backend: Backend): Backend => ({
    ...backend,
    queues: { ...backend.queues, ensure: (queues) => (ensured++, backend.queues.ensure(queues)) },
  })
  const { mill } = setup({ wrap, queues: { ticks: { priority: 'low', attempts: 9, concurrency: 2 } } })
  const handles = await Promise.all([mill.enqueue(tick), mill.enqueue(tick)])
  await mill.enqueue(tick)
  expect(ensured).toBe(1)
  expect(await mill.jobs.get(handles[0])).toMatchObject({ priority: 200, maxAttempts: 9 })
  expect(await mill.queues.get('ticks')).toMatchObject({ priority: 200, attempts: 9, limits: { concurrency: 2 } })
})

test('J13 jobs go to the connection of their kind or queue, and one call stays on one', async () => {
  const far = defineJob({ name: 'far', queue: 'far', connection: 'eu', run: () => 1 })
  const [near, eu] = [memory(), memory()]
  const connections = { default: near, eu }
  const queues = { ticks: { connection: 'eu' } }
  const mill = createClient({ jobs: [far, tick, anything], connections, queues, runtime: createRuntime() })
  const handle = await mill.enqueue(far)
  await mill.enqueue(tick)
  await mill.enqueue(anything, 1)
  expect([await stored(near), await stored(eu)]).toEqual([1, 2])
  expect(await mill.jobs.get(handle.id)).toMatchObject({ connection: 'eu', name: 'far' })
  expect(await mill.jobs.cancel(handle.id)).toBe('cancelled')
  await expect(mill.enqueueMany([[far], [anything, 1]])).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
  await expect(mill.enqueue(anything, 1, { after: handle })).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
  const batch = await mill.batch('b', { onComplete: [far, undefined] })
  await expect(batch.add(anything, 1)).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
  expect([await stored(near), await stored(eu)]).toEqual([1, 2])
})

test('the verbs work over the insert of a transaction, which is never repeated', async () => {
  const { mill, backend } = setup()
  const insert = vi.fn((_: string, jobs: readonly NewJob[]) => backend.jobs.insert(jobs))
  const inside = mill.internals.through(insert)
  await inside.enqueue(tick)
  await inside.enqueueMany([[tick], [mail, { to: 'a' }]])
  expect(insert.mock.calls.map(([connection, jobs]) => [connection, jobs.length])).toEqual([
    ['default', 1],
    ['default', 2],
  ])
  insert.mockImplementation(lost)
  await expect(inside.enqueue(tick)).rejects.toMatchObject({ code: 'STORE_TIMEOUT' })
  expect(insert).toHaveBeenCalledTimes(3)
})
