// `mill.in(tx)` with every library: jobs share the fate of the transaction, and keep every promise of an enqueue.
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { JobHandle, RunContext } from '../../src/index.ts'
import { LIBRARIES, openPg } from './libraries.ts'
import type { Library } from './libraries.ts'
import { createMillDatabase } from './mill-database.ts'
import type { MillDatabase } from './mill-database.ts'
import { START_MAX_MS, caught } from './probe.ts'

const receipt = defineJob({
  name: 'receipt',
  queue: 'receipts',
  run: ({ input }: RunContext<{ order: string }>) => `sent ${input.order}`,
})
/** At most one at a time: its jobs pass a gate. */
const ledger = defineJob({ name: 'ledger', queue: 'ledgers', run: ({ input }: RunContext<number>) => input })
const grouped = defineJob({
  name: 'grouped',
  queue: 'receipts',
  group: (input: number) => `g${input % 2}`,
  run: ({ input }: RunContext<number>) => input,
})
const sum = defineJob({
  name: 'sum',
  queue: 'receipts',
  async run({ parents }: RunContext<undefined>) {
    return (await parents()).map(({ result }) => result)
  },
})
const jobs = [receipt, ledger, grouped, sum] as const

const boom = new Error('roll back')
let database: MillDatabase<typeof jobs>
let mill: MillDatabase<typeof jobs>['mill']

beforeAll(async () => {
  database = await createMillDatabase({ jobs, queues: { ledgers: { concurrency: 1 } } })
  mill = database.mill
  await mill.work({ concurrency: 4 })
}, START_MAX_MS)

afterAll(() => database.drop())

beforeEach(async () => void (await database.query('truncate orders')))

describe.each(Object.entries(LIBRARIES))('%s', (_, open) => {
  let library: Library
  beforeAll(() => void (library = open(database.url)))
  afterAll(() => library.close())

  test('D11 a job enqueued in a transaction starts after its commit and not before', async () => {
    let handle!: JobHandle<string>
    await library.transaction(async (tx) => {
      await library.own(tx, "insert into orders values ('o-1')")
      handle = await mill.in(tx).enqueue(receipt, { order: 'o-1' })
      expect(handle).toMatchObject({ outcome: 'inserted', duplicate: false, connection: 'default' })
      // Another job makes the round while this one is held back.
      expect(await mill.enqueueAndWait(receipt, { order: 'other' })).toBe('sent other')
      expect(await mill.jobs.get(handle.id)).toBeNull()
    })
    expect(await handle.result({ timeout: '10s' })).toBe('sent o-1')
    expect(await database.orders()).toEqual(['o-1'])
  })

  test('D11 a job enqueued in a transaction that is rolled back never existed', async () => {
    let handle!: JobHandle<string>
    const rolledBack = library.transaction(async (tx) => {
      await library.own(tx, "insert into orders values ('o-2')")
      handle = await mill.in(tx).enqueue(receipt, { order: 'o-2' }, { unique: 'rolled back' })
      throw boom
    })
    await expect(rolledBack).rejects.toBe(boom)
    expect(await caught(() => handle.status())).toMatchObject({ code: 'JOB_NOT_FOUND' })
    expect(await database.orders()).toEqual([])
    // Nor did its key.
    expect(await mill.enqueue(receipt, { order: 'o-2' }, { unique: 'rolled back' })).toMatchObject({ duplicate: false })
  })

  test('D11 many jobs, a flow, payloads of every kind: one transaction', async () => {
    const order = String.raw`it's $1, ? and \? — ü 😀`
    const handles: JobHandle[] = []
    await library.transaction(async (tx) => {
      const inside = mill.in(tx)
      handles.push(
        ...(await inside.enqueueMany([
          [receipt, { order }, { tags: ['a', 'b "c"'], meta: { trace: order }, priority: 'low' }],
          [receipt, { order: 'second' }, { attempts: 7, timeout: '1s' }],
        ])),
      )
      const flow = await inside.flow({ job: sum, children: [{ job: receipt, input: { order: 'child' } }] })
      handles.push(flow.root)
      // Calls of one tick share a statement.
      handles.push(
        ...(await Promise.all([inside.enqueue(receipt, { order: 'x' }), inside.enqueue(receipt, { order: 'y' })])),
      )
    })
    const results = await Promise.all(handles.map((one) => one.result({ timeout: '10s' })))
    expect(results).toEqual([`sent ${order}`, 'sent second', ['sent child'], 'sent x', 'sent y'])
    expect(await mill.jobs.get(handles[0]!.id)).toMatchObject({
      tags: ['a', 'b "c"'],
      meta: { trace: order },
      priority: 200,
    })
    expect(await mill.jobs.get(handles[1]!.id)).toMatchObject({ maxAttempts: 7, timeoutMs: 1000 })
  })

  test('D11 a job with a gate takes its place in line after the commit, and holds up nobody before', async () => {
    const handles: JobHandle[] = []
    await library.transaction(async (tx) => {
      handles.push(await mill.in(tx).enqueue(ledger, 1), await mill.in(tx).enqueue(grouped, 2))
      expect(await mill.enqueueAndWait(ledger, 3, {}, { timeout: '10s' })).toBe(3)
      expect(await mill.enqueueAndWait(grouped, 4, {}, { timeout: '10s' })).toBe(4)
    })
    expect(await Promise.all(handles.map((one) => one.result({ timeout: '10s' })))).toEqual([1, 2])
  })

  test('D11 what Millrace refuses leaves the transaction usable', async () => {
    await library.transaction(async (tx) => {
      const inside = mill.in(tx)
      const batch = '01890000-0000-7000-8000-000000000000'
      expect(await caught(() => inside.enqueue(receipt, { order: 'a' }, { batch }))).toMatchObject({
        code: 'BATCH_NOT_FOUND',
      })
      expect(await caught(() => inside.enqueue(receipt, { order: 'a' }, { after: batch }))).toMatchObject({
        code: 'DEPENDENCY_NOT_FOUND',
      })
      await library.own(tx, "insert into orders values ('kept')")
    })
    expect(await database.orders()).toEqual(['kept'])
  })
})

describe('with pg', () => {
  let library: Library
  beforeAll(() => void (library = openPg(database.url)))
  afterAll(() => library.close())

  test('D11 a unique key is held with the job: whoever wants it waits for the commit, or for the rollback', async () => {
    const hold = { unique: 'held', delay: '1h' } as const
    let second: Promise<JobHandle<string>> | undefined
    let first!: JobHandle<string>
    await caught(() =>
      library.transaction(async (tx) => {
        first = await mill.in(tx).enqueue(receipt, { order: 'a' }, hold)
        expect(await mill.in(tx).enqueue(receipt, { order: 'b' }, hold)).toMatchObject({
          duplicate: true,
          id: first.id,
        })
        second = mill.enqueue(receipt, { order: 'c' }, hold)
        throw boom
      }),
    )
    const holder = await second!
    expect(holder.duplicate).toBe(false)
    await library.transaction(async (tx) => {
      expect(await mill.in(tx).enqueue(receipt, { order: 'd' }, hold)).toMatchObject({ duplicate: true, id: holder.id })
      const replaced = { unique: { key: 'held', onDuplicate: 'replace' } } as const
      expect(await mill.in(tx).enqueue(receipt, { order: 'e' }, replaced)).toMatchObject({ outcome: 'replaced' })
    })
    expect(await mill.jobs.get(holder.id)).toMatchObject({ status: 'scheduled', payload: { order: 'e' } })
  })

  test('D11 a job joins its batch with the commit, and leaves no trace in it without', async () => {
    const batch = await mill.batch('shared')
    await caught(() =>
      library.transaction(async (tx) => {
        await mill.in(tx).enqueue(receipt, { order: 'a' }, { batch })
        throw boom
      }),
    )
    expect(await batch.progress()).toMatchObject({ total: 0, pending: 0 })
    await library.transaction(async (tx) => void (await mill.in(tx).enqueue(receipt, { order: 'b' }, { batch })))
    await batch.seal()
    expect((await batch.wait({ timeout: '10s' })).progress).toMatchObject({ total: 1, completed: 1 })
    await library.transaction(async (tx) => {
      expect(await caught(() => mill.in(tx).enqueue(receipt, { order: 'c' }, { batch }))).toMatchObject({
        code: 'BATCH_CLOSED',
      })
    })
  })

  test('D11 a delay counts from the call, and a delayed job waits for its time', async () => {
    let handle!: JobHandle<string>
    await library.transaction(async (tx) => {
      handle = await mill.in(tx).enqueue(receipt, { order: 'later' }, { delay: '1h' })
    })
    const job = await mill.jobs.get(handle.id)
    expect(job?.status).toBe('scheduled')
    expect(job!.runAt.getTime() - job!.enqueuedAt.getTime()).toBe(3_600_000)
    await handle.cancel()
  })

  test('D11 a debounced holder of a gated queue gives its slot to the next', async () => {
    await mill.queues.pause('ledgers')
    const first = await mill.enqueue(ledger, 1, { unique: 'd' })
    const second = await mill.enqueue(ledger, 2)
    expect(await Promise.all([first.status(), second.status()])).toEqual(['queued', 'blocked'])
    await library.transaction(async (tx) => {
      const later = { unique: { key: 'd', onDuplicate: 'debounce' }, delay: '1h' } as const
      expect(await mill.in(tx).enqueue(ledger, 3, later)).toMatchObject({ outcome: 'replaced', id: first.id })
    })
    expect(await Promise.all([first.status(), second.status()])).toEqual(['scheduled', 'queued'])
    await mill.queues.resume('ledgers')
    expect(await second.result({ timeout: '10s' })).toBe(2)
    await first.cancel()
  })

  test('D11 no event tells of a job before its commit; `enqueued` is silent', async () => {
    const events: string[] = []
    const stops = (['enqueued', 'completed'] as const).map((name) =>
      mill.on(name, ({ id }) => events.push(`${name} ${id}`)),
    )
    let handle!: JobHandle<string>
    // A job of the test before may still tell of its end.
    const own = (): readonly string[] => events.filter((event) => event.endsWith(handle.id))
    await library.transaction(async (tx) => {
      handle = await mill.in(tx).enqueue(receipt, { order: 'quiet' })
      expect(own()).toEqual([])
    })
    await handle.result({ timeout: '10s' })
    await expect.poll(own).toEqual([`completed ${handle.id}`])
    stops.forEach((stop) => stop())
  })

  test('D11 with repeatable read a conflict is the error of the library', async () => {
    const failed = library.transaction(async (tx) => {
      await library.own(tx, 'set transaction isolation level repeatable read')
      await library.own(tx, 'select 1 from orders')
      await mill.enqueue(receipt, { order: 'a' }, { unique: 'rr', delay: '1h' })
      await mill.in(tx).enqueue(receipt, { order: 'b' }, { unique: 'rr' })
    })
    await expect(failed).rejects.toMatchObject({ code: '40001', name: 'error' })
  })

  test('D11 a queue is made once and outside, however often a transaction is passed', async () => {
    const fresh = defineJob({ name: 'fresh', queue: 'fresh', run: () => 'ran' })
    const other = await createMillrace({ jobs: [fresh], postgres: { url: database.url, poolMax: 2 } })
    try {
      await caught(() =>
        library.transaction(async (tx) => {
          await other.in(tx).enqueue(fresh)
          // Of others, who would wait for this transaction if it had made the queue.
          expect(await database.query("select 1 from millrace.job_queues where name = 'fresh'")).toHaveLength(1)
          throw boom
        }),
      )
      await database.query("delete from millrace.job_queues where name = 'fresh'")
      await library.transaction(async (tx) => {
        await other.in(tx).enqueue(fresh, undefined, { delay: '1h' })
        expect(await database.query("select 1 from millrace.job_queues where name = 'fresh'")).toHaveLength(0)
      })
    } finally {
      await other.stop()
    }
  })
})

describe('refused at once is', () => {
  test('what is no transaction', () => {
    expect(() => mill.in({})).toThrow('an empty object is not a transaction')
    expect(() => mill.in(undefined as never)).toThrow('undefined is not a transaction')
  })

  test('any transaction where jobs are not kept in PostgreSQL', async () => {
    const elsewhere = await createMillrace({ jobs: [receipt], backend: memory() })
    expect(() => elsewhere.in({})).toThrow('connection default cannot write inside your transaction')
    await elsewhere.stop()
  })
})
