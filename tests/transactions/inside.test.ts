// The port behind `mill.in` and `completeWith`: who has it, what it says of other databases, and what others hear.
import { PGlite } from '@electric-sql/pglite'
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { FUNCTIONS, MIGRATIONS } from '../../src/backends/postgres/sql.generated.ts'
import { sqlText } from '../../src/backends/postgres/sql-text.ts'
import type { JobId, NewJob } from '../../src/core/job.ts'
import { createMillrace, defineJob, memory, postgres } from '../../src/index.ts'
import type { Backend } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { LIBRARIES, openPg } from './libraries.ts'
import type { Library } from './libraries.ts'
import { createMillDatabase } from './mill-database.ts'
import type { MillDatabase } from './mill-database.ts'
import { START_MAX_MS, caught } from './probe.ts'

const { newId } = createRuntime()
const job = (fields: Partial<NewJob> = {}): NewJob => ({
  id: newId() as JobId,
  queue: 'q',
  name: 'n',
  payload: '{"a":1}',
  timeoutMs: 1_000,
  ...fields,
})
const nothing = defineJob({ name: 'nothing', queue: 'q', run: () => undefined })

let database: MillDatabase<readonly [typeof nothing]>
let backend: Backend
let library: Library

beforeAll(async () => {
  database = await createMillDatabase({ jobs: [nothing] })
  backend = postgres({ url: database.url, poolMax: 2 })
  await backend.start()
  library = openPg(database.url)
}, START_MAX_MS)

afterAll(async () => {
  await library.close()
  await backend.stop()
  await database.drop()
})

test('D11 the port is there exactly where a store is transactional', () => {
  for (const one of [memory(), backend]) expect(one.inside !== undefined).toBe(one.capabilities.transactional)
})

test('D11 nothing to write is no statement', async () => {
  await library.transaction(async (tx) => {
    expect(await backend.inside!(tx).insert([])).toEqual({ ok: true, results: [] })
    expect(await backend.inside!(tx).apply([])).toEqual([])
  })
})

test('D11 an insert answers as it does outside, whichever way its jobs go', async () => {
  const [plain, keyed, first, second] = [job(), job(), job(), job()]
  const unique = { key: 'k', mode: 'until-finished', windowMs: 1, onDuplicate: 'keep' } as const
  await library.transaction(async (tx) => {
    const inside = backend.inside!(tx)
    const results = [{ id: plain.id, outcome: 'inserted' }]
    expect(await inside.insert([plain])).toEqual({ ok: true, results })
    expect(await inside.insert([plain])).toEqual({ ok: true, results: [{ id: plain.id, outcome: 'already' }] })
    expect(await inside.insert([{ ...keyed, unique }, plain, { ...job(), unique }])).toEqual({
      ok: true,
      results: [
        { id: keyed.id, outcome: 'inserted' },
        { id: plain.id, outcome: 'already' },
        { id: keyed.id, outcome: 'duplicate' },
      ],
    })
    const circle = [
      { ...first, dependsOn: [{ parent: second.id, onFailure: 'fail' as const }] },
      { ...second, dependsOn: [{ parent: first.id, onFailure: 'fail' as const }] },
    ]
    expect(await inside.insert(circle)).toMatchObject({ ok: false, refusal: { code: 'DEPENDENCY_CYCLE' } })
  })
  const stored = await backend.query.get([plain.id, keyed.id, first.id])
  expect(stored.map((one) => one?.status ?? 'none')).toEqual(['queued', 'queued', 'none'])
})

test('D11 jobs of one call keep their order, ten thousand of them', async () => {
  const jobs = Array.from({ length: 10_000 }, (_, index) => job({ queue: 'ordered', payload: `${index}` }))
  await library.transaction(async (tx) => void (await backend.inside!(tx).insert(jobs)))
  const rows = await database.query(
    `select b.payload::text from millrace.ready r join millrace.job_bodies b on b.id = r.id
     join millrace.job_queues q on q.id = b.queue_id where q.name = 'ordered' order by r.seq`,
  )
  expect(rows.map(({ payload }) => payload)).toEqual(jobs.map(({ payload }) => payload))
})

describe('the commit tells every process', () => {
  const heard: string[] = []
  let listener: pg.Client
  beforeAll(async () => {
    listener = new pg.Client(database.url)
    await listener.connect()
    await listener.query('listen "millrace:millrace"')
    listener.on('notification', ({ payload = '' }) => void (payload.startsWith('transaction') && heard.push(payload)))
  })
  afterAll(() => listener.end())

  /** What was heard once everything before this moment has been. */
  async function rings(): Promise<readonly string[]> {
    await listener.query('select 1')
    return heard.splice(0)
  }

  test('D11 of what became ready, of what is scheduled, and of nothing before it', async () => {
    await library.transaction(async (tx) => {
      await backend.inside!(tx).insert([job({ queue: 'a' }), job({ queue: 'b' }), job({ queue: 'b', delayMs: 1_000 })])
      expect(await rings()).toEqual([])
    })
    // A new queue is news for those who configure workers.
    const topics = (await rings()).flatMap((payload) => payload.split('\n').slice(1))
    expect(topics.sort()).toEqual(['config', 'ready:a', 'ready:b', 'scheduled'])
    await caught(() =>
      library.transaction(async (tx) => {
        await backend.inside!(tx).insert([job({ queue: 'a' })])
        throw new Error('roll back')
      }),
    )
    expect(await rings()).toEqual([])
  })

  test('D11 of queues only when there is too much to tell, and of nothing when even that is too much', async () => {
    const queues = (count: number, length: number) =>
      Array.from({ length: count }, (_, index) => job({ queue: `${index}`.padStart(length, 'q') }))
    await library.transaction(async (tx) => {
      await library.own(
        tx,
        `select millrace.tell_after_commit(repeat('finished:x' || chr(10), 800) || 'ready:a' || chr(10))`,
      )
    })
    expect(await rings()).toEqual(['transaction\nready:a'])
    await library.transaction(async (tx) => void (await backend.inside!(tx).insert(queues(100, 100))))
    expect(await rings()).toEqual([])
    await library.transaction(async (tx) => void (await backend.inside!(tx).insert(queues(60, 100))))
    const [told] = await rings()
    expect(told?.split('\n').filter((topic) => topic.startsWith('ready:'))).toHaveLength(60)
  })
})

describe('another database', () => {
  test.each(Object.entries(LIBRARIES))('D11 without the schema is named, with %s', async (name, open) => {
    const empty = await freshDatabase(await sharedPostgres(18))
    const elsewhere = open(empty.url)
    try {
      const failed = elsewhere.transaction(async (tx) => {
        expect(await caught(() => database.mill.in(tx).enqueue(nothing))).toMatchObject({
          code: 'SCHEMA_TOO_OLD',
          message: expect.stringContaining('transaction is on a database without the Millrace schema millrace'),
          details: { library: name.replace(/ over .*/, ''), schema: 'millrace' },
        })
        throw new Error('roll back')
      })
      await expect(failed).rejects.toThrow('roll back')
    } finally {
      await elsewhere.close()
      await empty.drop()
    }
  })

  test('D11 PGlite with the schema in it takes jobs like any other', { timeout: START_MAX_MS }, async () => {
    const lite = await PGlite.create()
    try {
      await lite.exec('create schema millrace')
      for (const { up } of MIGRATIONS) await lite.exec(up)
      for (const { sql } of FUNCTIONS) await lite.exec(sqlText(sql, 'millrace'))
      const [kept, lost] = [job({ payload: JSON.stringify(`it's $1`) }), job()]
      await lite.transaction(async (tx) => {
        expect(await backend.inside!(tx).insert([kept])).toEqual({
          ok: true,
          results: [{ id: kept.id, outcome: 'inserted' }],
        })
      })
      await caught(() =>
        lite.transaction(async (tx) => {
          await backend.inside!(tx).insert([lost])
          throw new Error('roll back')
        }),
      )
      const { rows } = await lite.query<{ id: string; payload: string }>('select id, payload::text from millrace.jobs')
      expect(rows).toEqual([{ id: kept.id, payload: kept.payload }])
    } finally {
      await lite.close()
    }
  })
})

test('D11 each connection decides for its own jobs', async () => {
  const here = defineJob({ name: 'here', queue: 'here', connection: 'durable', run: () => undefined })
  const there = defineJob({ name: 'there', run: () => undefined })
  const mill = await createMillrace({
    jobs: [here, there],
    connections: { default: memory(), durable: postgres({ url: database.url, poolMax: 2 }) },
  })
  try {
    expect(() => mill.in({})).toThrow('is not a transaction')
    await library.transaction(async (tx) => {
      expect(await mill.in(tx).enqueue(here)).toMatchObject({ outcome: 'inserted', connection: 'durable' })
      expect(await caught(() => mill.in(tx).enqueue(there))).toMatchObject({ code: 'NOT_SUPPORTED' })
    })
  } finally {
    await mill.stop()
  }
})
