// The way back to PostgreSQL alone, beside producers that are just minting; and the order of locks of what moves rows back.
import pg from 'pg'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import type { BatchId, JobId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { until } from '../postgres/faults/until.ts'
import { readText } from '../tidy/source.ts'
import { complete, createLedgerWorld, newJob } from './ledger-world.ts'
import type { LedgerWorld } from './ledger-world.ts'

let world: LedgerWorld
let third: pg.Client

beforeEach(async () => {
  world = await createLedgerWorld()
  third = new pg.Client({ connectionString: world.url })
  await third.connect()
})

afterEach(async () => {
  await third.end()
  await world.close()
})

/** Minted on the other connection, whose transaction stays open. */
async function mintThere(queue: string, tag: string): Promise<JobId> {
  const { id } = newJob(queue)
  await world.other.query('begin')
  const { rows } = await world.other.query<{ leases: readonly string[] | null }>(
    'select leases from millrace.insert_one($1, $2, $3, $4, 1000, null, null, null, null, null, null, null, $5, true)',
    [id, queue, 'noop', '{}', tag],
  )
  expect(rows[0]!.leases).toHaveLength(1)
  return id
}

/** Answers when somebody waits for a lock of whoever has this transaction open. */
async function untilWaitedFor(client: pg.Client): Promise<void> {
  const { rows } = await client.query<{ pid: number }>('select pg_backend_pid() as pid')
  const waits = 'select 1 from pg_stat_activity where $1 = any(pg_blocking_pids(pid))'
  await until(async () => (await third.query(waits, [rows[0]!.pid])).rowCount !== 0, 'somebody who waits')
}

async function lockThere(id: JobId): Promise<void> {
  await world.other.query('select 1 from millrace.running where id = $1 for update nowait', [id])
}

describe('recall_tokens', () => {
  test('a job that is being minted is waited for and comes back too; nobody mints afterwards', async () => {
    const { queue, tag } = await world.queue()
    const [before] = await world.mint(queue, tag, 1)
    const during = await mintThere(queue, tag)
    const client = new pg.Client({ connectionString: world.url })
    await client.connect()
    try {
      const recalled = client.query<{ moved: string }>('select millrace.recall_tokens() as moved')
      await untilWaitedFor(world.other)
      await world.other.query('commit')
      expect((await recalled).rows).toEqual([{ moved: '2' }])
    } finally {
      await client.end()
    }
    const late = newJob(queue)
    expect((await world.ledger.insert([late], new Map([[queue, tag]]))).leases).toEqual([0])
    for (const jobId of [before!.jobId, during, late.id]) expect(await world.statusOf({ jobId })).toBe('queued')
  })

  test('more than one step of many queues comes back, each job to its place', async () => {
    const queues = [await world.queue(), await world.queue()]
    for (const { queue, tag } of queues) for (let call = 0; call < 6; call++) await world.mint(queue, tag, 1_000)
    const { rows } = await third.query<{ moved: string }>('select millrace.recall_tokens() as moved')
    expect(rows).toEqual([{ moved: '12000' }])
    for (const { queue } of queues) {
      expect((await world.backend.query.counts(queue))[0]?.counts).toMatchObject({ queued: 6_000, dispatched: 0 })
    }
  })

  test('while somebody has one of the jobs locked nothing is changed', async () => {
    const { queue, tag } = await world.queue()
    const [locked, free] = await world.mint(queue, tag, 2)
    await world.other.query('begin')
    await lockThere(locked!.jobId)
    await expect(third.query('select millrace.recall_tokens()')).rejects.toMatchObject({ code: '55006' })
    await world.other.query('rollback')
    expect(await world.statusOf(free!)).toBe('dispatched')
    expect((await world.ledger.dispatch([queue])).rows[0]).toMatchObject({ mode: 'token' })
  })
})

test('migrate down: a job that is being minted comes back too', async () => {
  const { queue, tag } = await world.queue()
  const [before] = await world.mint(queue, tag, 1)
  const during = await mintThere(queue, tag)
  const client = new pg.Client({ connectionString: world.url })
  await client.connect()
  try {
    // This step alone: what a migrator does before it locks other tables by chance.
    const gone = client.query(readText('src/backends/postgres/migrations/0002_hybrid.down.sql'))
    await untilWaitedFor(world.other)
    await world.other.query('commit')
    await gone
    const { rows } = await client.query<{ id: string }>('select id from millrace.ready order by id')
    expect(rows.map(({ id }) => id)).toEqual([before!.jobId, during].toSorted())
    expect((await client.query('select 1 from millrace.running')).rows).toEqual([])
  } finally {
    await client.end()
  }
})

describe('locks are taken in one order', () => {
  test('a flagged job that goes back: its batch before its row', async () => {
    const { queue, tag } = await world.queue()
    const batch = newJob(queue).id as string as BatchId // an id like any other
    const callbacks = { complete: null, success: null, failure: null }
    await world.backend.batches.create({ id: batch, name: 'b', meta: null, callbacks })
    const [ref] = await world.mint(queue, tag, 1, { batch })
    const worker = await world.worker([queue])
    await world.ledger.flagCancel(ref!, worker, false)
    await world.other.query('begin')
    await world.other.query('select 1 from millrace.batches where id = $1 for update', [batch])
    const back = world.ledger.giveBack(worker, [ref!])
    await untilWaitedFor(world.other)
    // Whoever settles has the batch, and comes to the row next.
    await lockThere(ref!.jobId)
    await world.other.query('rollback')
    expect(await back).toBe(1)
    expect(await world.statusOf(ref!)).toBe('cancelled')
  })

  test('a settlement of several kinds: rows by their ids, as an adoption marks them', async () => {
    const { queue, tag } = await world.queue()
    const worker = await world.worker([queue])
    const [low, high] = (await world.mint(queue, tag, 2)).toSorted((a, b) => (a.jobId < b.jobId ? -1 : 1))
    const release: Transition = {
      ...complete(low!),
      edge: 'retry',
      to: 'scheduled',
      delayMs: 60_000,
      waitsFor: 'retry',
      error: { name: 'Error', message: 'no', kind: 'error' } as never, // what a run that failed brings
    }
    await world.other.query('begin')
    await lockThere(low!.jobId)
    const settled = world.ledger.settle(worker, [complete(high!), release])
    await untilWaitedFor(world.other)
    await lockThere(high!.jobId)
    await world.other.query('rollback')
    expect((await settled).verdicts).toEqual(['applied', 'applied'])
  })
})

test('a report that marks its row remembers the start that the row shows', async () => {
  const { queue, tag } = await world.queue()
  const worker = await world.worker([queue])
  const [ref] = await world.mint(queue, tag, 1)
  await third.query("update millrace.running set started_at = started_at - interval '1 hour'")
  const guard = { from: ['running'], lease: ref!.lease } as const
  const report: Transition = { jobId: ref!.jobId, edge: 'report', guard, to: 'running', progress: '5' }
  expect((await world.ledger.settle(worker, [report])).verdicts).toEqual(['applied'])
  const { rows } = await third.query<{ same: boolean }>(
    'select r.started_at = s.started_at as same from millrace.running r join millrace.job_states s on s.id = r.id',
  )
  expect(rows).toEqual([{ same: true }])
})
