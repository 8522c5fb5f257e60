// What a job of the hybrid costs PostgreSQL, counted and not timed: row versions and bytes of WAL; and plans that a moment
// without jobs cannot spoil.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgresWithLedger } from '../../src/backends/postgres/backend.ts'
import type { PostgresWithLedger } from '../../src/backends/postgres/backend.ts'
import type { JobId, LeaseNumber, LeaseRef, NewJob, WorkerId } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { startTestPostgres } from '../support/postgres-server.ts'
import type { TestPostgres } from '../support/postgres-server.ts'
import { complete, inFlight } from './ledger-world.ts'

const JOBS = 5_000
const BULK = 1_000
const PAYLOAD = JSON.stringify({ seq: 1, to: 'someone@example.com', body: 'x'.repeat(140) })
const WORKER = 'budget' as WorkerId // an id like any other
const QUEUE = 'work'

const { newId } = createRuntime()
/** Its own: the log that is counted belongs to the whole server. */
let database: TestPostgres
let client: pg.Client
let store: PostgresWithLedger
let tag: string

beforeAll(async () => {
  database = await startTestPostgres({ version: 18 })
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  store = await open()
  const { ledger } = store
  await ledger.renewServer()
  await ledger.register({ id: WORKER, host: 'localhost', pid: 1, queues: [QUEUE], concurrency: 100 })
  const queues = [{ queue: QUEUE, expected: 0 }]
  const [row] = await ledger.flip({ queues, mode: 'token', redisId: 'r', unlessHealthy: false })
  await ledger.born(QUEUE, row!.epoch, 'b')
  tag = `${row!.epoch}.b`
})

afterAll(async () => {
  await store.backend.stop()
  await client.end()
  await database.stop()
})

describe('what a job of the hybrid costs PostgreSQL', () => {
  test('by the fast path three inserted rows and one deleted, none updated, and less than 1000 bytes of WAL', async () => {
    const per = await costsOf(async (count) => settle(await mint(count)))
    // Bodies, running, attempts; what a call writes besides is shared by its jobs.
    expect(per('inserted')).toBeGreaterThanOrEqual(3)
    expect(per('inserted')).toBeLessThan(3.05)
    expect(per('deleted')).toBeGreaterThanOrEqual(1)
    expect(per('deleted')).toBeLessThan(1.05)
    expect(per('updated')).toBeLessThan(0.05)
    expect(per('walBytes')).toBeLessThan(1_000)
  })

  test('by the relay one more of each, and less than 1500 bytes', async () => {
    const per = await costsOf(async (count) => {
      for (let first = 0; first < count; first += BULK) {
        await store.backend.jobs.insert(jobs(Math.min(BULK, count - first)))
        const { jobs: minted } = await store.ledger.relay(QUEUE, tag, [BULK, BULK, BULK])
        await settle(minted.map(({ id, lease }) => ({ jobId: id, lease })))
      }
    })
    expect(per('inserted')).toBeLessThan(4.05)
    expect(per('deleted')).toBeLessThan(2.05)
    expect(per('updated')).toBeLessThan(0.05)
    expect(per('walBytes')).toBeLessThan(1_500)
  })

  test('a mark is one update, and a second one none', async () => {
    const refs = await mint(BULK)
    const before = await readCosts()
    for (let round = 0; round < 3; round++) expect(await store.ledger.mark(WORKER, inFlight(refs))).toEqual([])
    const after = await readCosts()
    expect((after.updated - before.updated) / BULK).toBeLessThan(1.05)
    await settle(refs)
  })

  test('statistics from a moment without jobs make nothing slow', async () => {
    await client.query('truncate millrace.running, millrace.ready; analyze')
    const rounds: number[] = []
    for (let round = 0; round < 3; round++) {
      // New sessions, new plans.
      await store.backend.stop()
      store = await open()
      const beginMs = performance.now()
      const refs = await mint(2 * JOBS)
      const parts = Array.from({ length: 10 }, (_, part) => refs.slice(part * BULK, (part + 1) * BULK))
      for (const part of parts) expect(await store.ledger.mark(WORKER, inFlight(part))).toEqual([])
      for (const part of parts) expect(await store.ledger.giveBack(WORKER, part)).toBe(BULK)
      const minted: LeaseRef[] = []
      for (let part = 0; part < 10; part++) {
        const { jobs: relayed } = await store.ledger.relay(QUEUE, tag, [BULK, BULK, BULK])
        for (const { id, lease } of relayed) minted.push({ jobId: id, lease })
      }
      expect(minted).toHaveLength(2 * JOBS)
      await settle(minted)
      rounds.push(performance.now() - beginMs)
      await client.query('vacuum analyze millrace.running, millrace.ready')
    }
    // All compared with all would take ten times as long, from the second round on. A stall of the machine hits one round.
    expect(Math.min(...rounds.slice(1))).toBeLessThan(rounds[0]! * 4)
    expect(Math.min(...rounds)).toBeLessThan(15_000)
  })
})

async function open(): Promise<PostgresWithLedger> {
  const opened = postgresWithLedger({ url: database.url })
  await opened.backend.start()
  return opened
}

function jobs(count: number): readonly NewJob[] {
  return Array.from({ length: count }, () => {
    return { id: newId() as JobId, queue: QUEUE, name: 'noop', payload: PAYLOAD, timeoutMs: 30_000 } // minted here
  })
}

async function mint(count: number): Promise<readonly LeaseRef[]> {
  const refs: LeaseRef[] = []
  for (let first = 0; first < count; first += BULK) {
    const part = jobs(Math.min(BULK, count - first))
    const { leases } = await store.ledger.insert(part, new Map([[QUEUE, tag]]))
    for (const [index, { id }] of part.entries()) refs.push({ jobId: id, lease: leases[index] as LeaseNumber }) // minted by the ledger
  }
  expect(refs.every(({ lease }) => lease > 0)).toBe(true)
  return refs
}

async function settle(refs: readonly LeaseRef[]): Promise<void> {
  for (let first = 0; first < refs.length; first += 500) {
    const part = refs.slice(first, first + 500).map((ref) => complete(ref))
    const { verdicts } = await store.ledger.settle(WORKER, part)
    expect(verdicts.every((verdict) => verdict === 'applied')).toBe(true)
  }
}

interface Costs {
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
  readonly walBytes: number
}

/** Per job of `work`. */
async function costsOf(work: (count: number) => Promise<void>): Promise<(field: keyof Costs) => number> {
  await work(JOBS) // tables, sequences and pages exist now
  await client.query('checkpoint')
  await work(BULK) // the first touch of a page after a checkpoint writes all of it
  const before = await readCosts()
  await work(JOBS)
  const after = await readCosts()
  return (field) => (after[field] - before[field]) / JOBS
}

/** A connection reports what it did when it ends, at the latest: so ours end before the server is asked. */
async function readCosts(): Promise<Costs> {
  await store.backend.stop()
  store = await open()
  let last = await readTotals()
  for (;;) {
    await new Promise((resolve) => setTimeout(resolve, 50))
    const next = await readTotals()
    if (JSON.stringify(next) === JSON.stringify(last)) return next
    last = next
  }
}

async function readTotals(): Promise<Costs> {
  await client.query('select pg_stat_clear_snapshot()')
  const { rows } = await client.query<Costs>(`
    select sum(n_tup_ins)::float8 as inserted, sum(n_tup_upd)::float8 as updated, sum(n_tup_del)::float8 as deleted,
      (pg_current_wal_insert_lsn() - '0/0')::float8 as "walBytes"
    from pg_stat_user_tables where schemaname = 'millrace' and relname not in ('workers', 'leaders')`)
  return rows[0]!
}
