// What a job costs the database, counted and not timed: row versions, WAL bytes, statements, and the pages that a claim
// touches beside a past, a future and a paused queue. The numbers and the choices behind them are docs/adr/004.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgres } from '../../src/backends/postgres/backend.ts'
import type { BatchId, ClaimedJob, JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { startTestPostgres } from '../support/postgres-server.ts'
import type { TestPostgres } from '../support/postgres-server.ts'

const JOBS = 5_000
const BULK = 1_000
const CLAIM = 100
const PAYLOAD = JSON.stringify({ seq: 1, to: 'someone@example.com', body: 'x'.repeat(140) })
const WORKER = 'budget' as WorkerId // an id like any other

const { newId } = createRuntime()
/** Its own: the log that is counted belongs to the whole server. */
let database: TestPostgres
let client: pg.Client
let backend: Backend
let claimNo = 0

beforeAll(async () => {
  database = await startTestPostgres({ version: 18 })
  client = new pg.Client({ connectionString: database.url })
  await client.connect()
  backend = postgres({ url: database.url })
  await backend.start()
  await backend.workers.register({ id: WORKER, host: 'localhost', pid: 1, queues: ['work'], concurrency: CLAIM })
})

afterAll(async () => {
  await backend.stop()
  await client.end()
  await database.stop()
})

describe('what a job costs the database', () => {
  test('a plain job is four inserted and two deleted rows, none updated, and less than 1500 bytes of WAL', async () => {
    await insert(JOBS, {}) // tables, sequences and pages exist now
    await drain(JOBS)
    await client.query('checkpoint')
    await insert(CLAIM, {}) // the first touch of a page after a checkpoint writes all of it
    await drain(CLAIM)
    const before = await readCosts()
    await insert(JOBS, {})
    await drain(JOBS)
    const after = await readCosts()
    const per = (field: keyof Costs): number => (after[field] - before[field]) / JOBS
    // Bodies, ready, running, attempts; what a call writes besides (counters, claim numbers) is shared by its jobs.
    expect(per('inserted')).toBeGreaterThanOrEqual(4)
    expect(per('inserted')).toBeLessThan(4.1)
    expect(per('deleted')).toBeGreaterThanOrEqual(2)
    expect(per('deleted')).toBeLessThan(2.1)
    expect(per('updated')).toBeLessThan(0.05)
    expect(per('walBytes')).toBeLessThan(1_500)
  })

  test('a job of a batch costs one row more per call, not per job', async () => {
    const batch = newId() as BatchId // minted here
    const callbacks = { complete: null, success: null, failure: null }
    await backend.batches.create({ id: batch, name: 'budget', meta: null, callbacks })
    const before = await readCosts()
    await insert(1_000, { batch })
    await drain(1_000)
    const after = await readCosts()
    expect((after.updated - before.updated) / 1_000).toBeLessThan(0.1)
    expect((await backend.batches.get(batch))?.counts).toMatchObject({ total: 1_000, completed: 1_000, pending: 0 })
  })

  test('a claim touches the same pages beside many jobs that it does not want', async () => {
    await insert(20 * CLAIM, {})
    const alone = await claimPages()
    await fillOtherPlaces()
    await insert(20 * CLAIM, {})
    const beside = await claimPages()
    expect(beside).toBeLessThanOrEqual(alone * 1.2)
  })

  test('statistics from a moment without jobs do not make the next drain slow', async () => {
    await client.query('truncate millrace.ready')
    const rounds: number[] = []
    for (let round = 0; round < 3; round++) {
      await insert(2 * JOBS, {})
      // New sessions, new plans.
      await backend.stop()
      backend = postgres({ url: database.url })
      await backend.start()
      const beginMs = performance.now()
      await drain(2 * JOBS, 1_000)
      rounds.push(performance.now() - beginMs)
      await client.query('analyze')
    }
    // Every run compared with every completion would take ten times as long. A stall of the machine hits one round.
    expect(Math.min(...rounds.slice(1))).toBeLessThan(rounds[0]! * 4)
  })
})

interface Costs {
  readonly inserted: number
  readonly updated: number
  readonly deleted: number
  readonly walBytes: number
}

/** A connection reports what it did when it ends, at the latest: so ours end before the server is asked. */
async function readCosts(): Promise<Costs> {
  await backend.stop()
  backend = postgres({ url: database.url })
  await backend.start()
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

async function insert(count: number, extra: Partial<NewJob>): Promise<void> {
  for (let first = 0; first < count; first += BULK) {
    const jobs = Array.from({ length: Math.min(BULK, count - first) }, (): NewJob => {
      return { id: newId() as JobId, queue: 'work', name: 'noop', payload: PAYLOAD, timeoutMs: 30_000, ...extra } // minted here
    })
    expect(await backend.jobs.insert(jobs)).toMatchObject({ ok: true })
  }
}

async function drain(count: number, limit = CLAIM): Promise<void> {
  let held: readonly ClaimedJob[] = []
  for (let done = 0; done < count || held.length > 0;) {
    const settle = held.map(
      ({ id, lease }) =>
        ({
          jobId: id,
          edge: 'complete',
          guard: { from: ['running'], lease },
          to: 'completed',
          attempt: 'count',
          ranMs: 1,
        }) as const,
    )
    const request = { worker: WORKER, claimNo: ++claimNo, queues: ['work'], limit, settle }
    const reply = await backend.jobs.claim(request)
    expect(reply.verdicts.every((verdict) => verdict === 'applied')).toBe(true)
    done += settle.length
    held = reply.jobs
  }
}

/** Pages touched by a claim of 100, as the server counts them; the smallest of a few. */
async function claimPages(): Promise<number> {
  let least = Infinity
  for (let round = 0; round < 5; round++) {
    await client.query('begin')
    const { rows } = await client.query<{ 'QUERY PLAN': readonly [{ Plan: Record<string, number> }] }>(
      `explain (analyze, buffers, format json) select * from millrace.cycle('${WORKER}', ${claimNo + 1_000 + round}, '{work}', ${CLAIM},
         null, null, null, null, '{0}', '{0}', null, null, null, null, null)`,
    )
    await client.query('rollback')
    const plan = rows[0]!['QUERY PLAN'][0].Plan
    least = Math.min(least, (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0))
  }
  return least
}

/** Jobs that a claim must not meet: scheduled ones, those of a paused queue, and finished ones. */
async function fillOtherPlaces(): Promise<void> {
  const each = Number(process.env['BUDGET_OTHERS'] ?? 20_000)
  await backend.queues.configure('paused', { paused: true })
  await client.query(`
    create temp table made as
      select gen_random_uuid() as id, n, (select id from millrace.job_queues where name = case when n <= ${each} then 'paused' else 'work' end) as queue_id
      from generate_series(1, ${each} * 7) n;
    insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload)
      select id, now(), now(), queue_id, 30000, 3, 100, 'noop', '{}' from made;
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
      select nextval('millrace.entry_seq'), now(), now(), id, queue_id, 100, 0, 0, 0 from made where n <= ${each};
    insert into millrace.scheduled (run_at, id, queue_id, waits_for, priority, attempts, crashes, hooks)
      select now() + interval '1 day', id, queue_id, 1, 100, 0, 0, 0 from made where n > ${each} and n <= ${each} * 2;
    insert into millrace.job_attempts (job_id, no, started_at, finished_at, queue_id, worker_no, attempt, attempt_count, crash_count, status, ended)
      select id, n, now(), now(), queue_id, 1, 1, 1, 0, 1, 1 from made where n > ${each} * 2`)
}
