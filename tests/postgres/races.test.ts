// Two sessions that meet: what must hold when one of them waits for the other in the middle of a call.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { postgres } from '../../src/backends/postgres/backend.ts'
import { decideOutcome, decideReplay, decideReport } from '../../src/core/decide.ts'
import type { BatchId, ClaimedJob, JobId, LogLine, NewJob, WorkerId } from '../../src/core/job.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { DEFAULT_POLICY } from '../../src/core/policy.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase } from '../support/postgres-server.ts'

const { newId } = createRuntime()
const WORKER = 'racer' as WorkerId // an id like any other
let database: FreshDatabase
let other: pg.Client
let backend: Backend
let claimNo = 0

beforeAll(async () => {
  database = await freshDatabase(await sharedPostgres(18))
  backend = postgres({ url: database.url })
  await backend.start()
  other = new pg.Client({ connectionString: database.url })
  await other.connect()
  await backend.workers.register({ id: WORKER, host: 'localhost', pid: 1, queues: ['q'], concurrency: 10 })
})

afterAll(async () => {
  await other.end()
  await backend.stop()
  await database.drop()
})

function job(extra: Partial<NewJob> = {}): NewJob {
  return { id: newId() as JobId, queue: 'q', name: 'noop', payload: '{}', timeoutMs: 1_000, ...extra } // minted here
}

async function claim(): Promise<readonly ClaimedJob[]> {
  return (await backend.jobs.claim({ worker: WORKER, claimNo: ++claimNo, queues: ['q'], limit: 100 })).jobs
}

function settle(run: ClaimedJob, outcome: Outcome) {
  return decideOutcome(run, { outcome, ranMs: 1, nowMs: 0 }, DEFAULT_POLICY, () => 0)
}

function lineOf(message: string): LogLine {
  return { atMs: 0, attempt: 1, level: 'info', message }
}

/** Resolves when some session waits for a lock. */
async function somebodyWaits(): Promise<void> {
  await expect
    .poll(
      async () =>
        (
          await other.query(
            `select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()`,
          )
        ).rowCount,
      { timeout: 5_000, interval: 10 },
    )
    .toBeGreaterThan(0)
}

describe('two sessions that meet', () => {
  test('D11 a report of a job that somebody has locked is answered busy, or waits if it has to', async () => {
    await backend.jobs.insert([job()])
    const [run] = await claim()
    const report = decideReport(run!, { progress: '1', logFrom: 0, logLines: [lineOf('hello')] })
    await other.query('begin')
    await other.query('select 1 from millrace.running where id = $1 for update', [run!.id])
    expect(await backend.jobs.apply([{ ...report, ifFree: true }])).toEqual(['busy'])
    const waiting = backend.jobs.apply([report])
    await somebodyWaits()
    await other.query('commit')
    expect(await waiting).toEqual(['applied'])
    expect(await backend.jobs.apply([{ ...report, ifFree: true }])).toEqual(['applied'])
    expect(await backend.jobs.apply([settle(run!, { kind: 'done', result: null })])).toEqual(['applied'])
    expect(await backend.jobs.apply([{ ...report, ifFree: true }])).toEqual(['stale'])
    expect((await backend.query.get([run!.id]))[0]).toMatchObject({ progress: '1' })
  })

  test('D1 holdings lists what a claim took that was still being committed', async () => {
    const wanted = job()
    await backend.jobs.insert([wanted])
    await other.query('begin')
    await other.query(
      `select * from millrace.cycle($1, $2, '{q}', 10, null, null, null, null, '{0}', '{0}', null, null, null, null, null)`,
      [WORKER, ++claimNo],
    )
    const asked = backend.jobs.holdings(WORKER, claimNo)
    await somebodyWaits()
    await other.query('commit')
    const held = await asked
    expect(held.map(({ jobId }) => jobId)).toEqual([wanted.id])
    const [lease] = held
    const back = { id: wanted.id, lease: lease!.lease, attemptCount: 0, maxAttempts: 1, crashCount: 0 }
    const end = { outcome: { kind: 'cancel', reason: 'over' } as const, ranMs: 0, nowMs: 0 }
    expect(await backend.jobs.apply([decideOutcome(back, end, DEFAULT_POLICY, () => 0)])).toEqual(['applied'])
  })

  test('D7 a replay does not take a key that another job is just taking', async () => {
    const unique = { key: 'k', mode: 'until-finished', windowMs: 0, onDuplicate: 'keep' } as const
    const dead = job({ unique, maxAttempts: 1 })
    await backend.jobs.insert([dead])
    const [run] = await claim()
    expect(await backend.jobs.apply([settle(run!, { kind: 'fail', error: new Error('no') })])).toEqual(['applied'])
    await other.query('begin')
    const rival = { ...job(), timeout_ms: 1_000, unique: { key: 'k', mode: 2, window_ms: 0, on_duplicate: 1 } }
    await other.query('select millrace.insert_jobs($1)', [JSON.stringify([rival])])
    const replayed = backend.jobs.apply([decideReplay(dead.id, 'ada')])
    await somebodyWaits()
    await other.query('commit')
    expect(await replayed).toEqual(['conflict'])
    const [held] = await claim()
    expect(held?.id).toBe(rival.id)
    await backend.jobs.apply([settle(held!, { kind: 'done', result: null })])
  })

  test('J2 a repeated insert into a batch that was sealed meanwhile knows its jobs', async () => {
    const batch = newId() as BatchId // minted here
    await backend.batches.create({
      id: batch,
      name: 'b',
      meta: null,
      callbacks: { complete: null, success: null, failure: null },
    })
    const joined = job({ batch })
    await other.query('begin')
    const row = { id: joined.id, queue: 'q', name: 'noop', payload: '{}', timeout_ms: 1_000, batch }
    await other.query('select millrace.insert_jobs($1)', [JSON.stringify([row])])
    const sealed = backend.batches.seal(batch)
    await somebodyWaits()
    const repeated = backend.jobs.insert([joined])
    await other.query('commit')
    expect(await sealed).toBe(true)
    expect(await repeated).toMatchObject({ ok: true, results: [{ id: joined.id, outcome: 'already' }] })
    const [run] = await claim()
    await backend.jobs.apply([settle(run!, { kind: 'done', result: null })])
  })

  test('D6 a character that the database does not take holds up nobody', async () => {
    await backend.jobs.insert([job(), job()])
    const [first, second] = await claim()
    const verdicts = await backend.jobs.apply([
      settle(first!, { kind: 'cancel', reason: 'a\0b \ud83d c' }),
      settle(second!, { kind: 'done', result: null }),
    ])
    expect(verdicts).toEqual(['applied', 'applied'])
    expect((await backend.query.attempts(first!.id))[0]?.note).toBe('a\uFFFDb \uFFFD c')
  })

  test('T4 a chain as long as a bulk call may be is checked for circles in time, in any order', async () => {
    const ids = Array.from({ length: 2_000 }, () => newId() as JobId) // minted here
    const chain = ids.map((id, index) =>
      job({ id, queue: 'chain', ...(index > 0 && { dependsOn: [{ parent: ids[index - 1]!, onFailure: 'fail' }] }) }),
    )
    expect(await backend.jobs.insert(chain.toReversed())).toMatchObject({ ok: true })
  })
})
