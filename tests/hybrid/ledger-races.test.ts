// Two sessions that meet in the ledger of the hybrid: what must hold when one of them waits for the other, or passes it by.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import type { LeaseNumber, LeaseRef, WorkerId } from '../../src/core/job.ts'
import { uuidArray, bigintArray, intArray } from '../../src/backends/postgres/wire.ts'
import { complete, createLedgerWorld, inFlight, newJob } from './ledger-world.ts'
import type { LedgerWorld } from './ledger-world.ts'

let world: LedgerWorld

beforeAll(async () => {
  world = await createLedgerWorld()
})

afterAll(() => world.close())

/** On the other connection, in the transaction that is open there. */
async function markThere(worker: WorkerId, epoch: number | null, refs: readonly LeaseRef[]): Promise<void> {
  await world.other.query('select millrace.mark_runs($1, $2, $3, $4, $5)', [
    worker,
    epoch,
    uuidArray(refs.map(({ jobId }) => jobId)),
    bigintArray(refs.map(({ lease }) => lease)),
    intArray(refs.map(() => 300)),
  ])
}

async function untilWaiting(): Promise<void> {
  for (let look = 0; look < 500; look++) {
    // A transaction sees what it has seen first.
    await world.other.query('select pg_stat_clear_snapshot()')
    const { rowCount } = await world.other.query(
      "select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )
    if (rowCount !== null && rowCount > 0) return
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
  throw new Error('nobody waits')
}

async function counts(queue: string) {
  return (await world.backend.query.counts(queue))[0]!.counts
}

describe('two sessions at one ledger', () => {
  test('an adoption that is not committed is still behind the barrier; committed, it has marked what it runs', async () => {
    const { queue, epoch, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 2)
    await world.other.query('begin')
    await markThere(worker, epoch, refs.slice(0, 1))
    expect(await world.ledger.requeue(queue, epoch, refs)).toBe(0)
    expect(await world.ledger.requeueOld(queue, epoch, 10)).toBe(-1)
    await world.other.query('commit')
    expect(await world.ledger.requeue(queue, epoch, refs)).toBe(1)
    expect(await world.statusOf(refs[0]!)).toBe('running')
    expect(await world.statusOf(refs[1]!)).toBe('queued')
    await world.backend.workers.retire(worker)
  })

  test('a mark that is not committed keeps its row from going back', async () => {
    const { queue, epoch, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 1)
    await world.ledger.adopt(worker, epoch, [])
    await world.other.query('begin')
    await markThere(worker, null, refs)
    expect(await world.ledger.requeue(queue, epoch, refs)).toBe(0)
    await world.other.query('commit')
    expect(await world.ledger.requeue(queue, epoch, refs)).toBe(0)
    expect(await world.statusOf(refs[0]!)).toBe('running')
    await world.backend.workers.retire(worker)
  })

  test('nobody is declared dead in the middle of a mark, so no marked row is forgotten', async () => {
    const { queue, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 1)
    await world.other.query('begin')
    await markThere(worker, null, refs)
    const retired = world.backend.workers.retire(worker)
    await untilWaiting()
    await world.other.query('commit')
    await retired
    expect(await dueIn(queue)).toEqual([refs[0]!.jobId])
    expect(await world.ledger.mark(worker, inFlight(refs))).toEqual(refs)
  })

  test('completions that wait for a mark are applied with the results that belong to them', async () => {
    const { queue, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 3)
    await world.other.query('begin')
    await markThere(worker, null, refs.slice(1, 2))
    const ends = refs.map((ref, index) => ({ ...complete(ref, 100 * index), result: `"${index}"` }))
    // Not in the order of ids, and one of a lease that is not the row's.
    const wrong = { ...complete({ ...refs[0]!, lease: (refs[0]!.lease + 1_000) as LeaseNumber }), result: '"wrong"' }
    const settled = world.ledger.settle(worker, [ends[2]!, ends[1]!, wrong])
    await untilWaiting()
    await world.other.query('commit')
    expect((await settled).verdicts).toEqual(['applied', 'applied', 'stale'])
    const jobs = await world.backend.query.get(refs.map(({ jobId }) => jobId))
    expect(jobs.map((job) => job?.result)).toEqual([null, '"1"', '"2"'])
    expect(jobs.map((job) => job?.status)).toEqual(['dispatched', 'completed', 'completed'])
    expect(jobs.slice(1).map((job) => job!.finishedAtMs! - job!.startedAtMs!)).toEqual([100, 200])
    expect((await world.ledger.settle(worker, [ends[0]!])).verdicts).toEqual(['applied'])
    await world.backend.workers.retire(worker)
  })

  test('a claim that is under way holds up no mark', async () => {
    const { queue, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 1)
    await world.backend.jobs.insert([newJob(queue)])
    await world.other.query('begin')
    const claim = `select * from millrace.cycle($1, 1, $2, 1, null, null, null, null, '{0}', '{0}', null, null, null, null, null)`
    expect((await world.other.query(claim, [worker, [queue]])).rows).toHaveLength(2)
    expect(await world.ledger.mark(worker, inFlight(refs))).toEqual([])
    await world.other.query('rollback')
    await world.backend.workers.retire(worker)
  })

  test('the dead inherit although somebody is just finding that they hold nothing', async () => {
    const { queue, tag } = await world.queue()
    const worker = await world.worker([queue])
    await world.backend.workers.retire(worker)
    const refs = await world.mint(queue, tag, 2)
    // Looking comes first: the heir waits for it.
    await world.other.query('begin')
    await world.other.query('select * from millrace.expired_jobs(1000)')
    const first = world.ledger.bequeath(worker, refs.slice(0, 1))
    await untilWaiting()
    await world.other.query('commit')
    expect(await first).toBe(1)
    expect(await dueIn(queue)).toEqual([refs[0]!.jobId])
    // The heir comes first: looking passes it by.
    await world.ledger.giveBack(worker, refs.slice(0, 1))
    expect(await dueIn(queue)).toEqual([])
    await world.other.query('begin')
    await world.other.query('select millrace.bequeath_runs($1, $2, $3)', [
      worker,
      uuidArray([refs[1]!.jobId]),
      bigintArray([refs[1]!.lease]),
    ])
    expect(await dueIn(queue)).toEqual([])
    await world.other.query('commit')
    expect(await dueIn(queue)).toEqual([refs[1]!.jobId])
    await world.ledger.giveBack(worker, refs)
  })

  test('an insert of the old epoch that commits after the flip is found by it', async () => {
    const { queue, tag } = await world.queue()
    const job = newJob(queue)
    await world.other.query('begin')
    const { rows } = await world.other.query<{ leases: readonly string[] }>(
      'select leases from millrace.insert_one($1, $2, $3, $4, 1000, null, null, null, null, null, null, null, $5, true)',
      [job.id, queue, 'noop', '{}', tag],
    )
    const next = await world.flip(queue)
    expect(Number(rows[0]!.leases[0])).toBeLessThan(next.firstLease)
    for (const { id, state } of await world.backend.workers.list()) {
      if (state === 'alive') await world.ledger.adopt(id, next.epoch, [])
    }
    expect(await world.ledger.requeueOld(queue, next.epoch, 10)).toBe(0)
    await world.other.query('commit')
    expect(await world.ledger.requeueOld(queue, next.epoch, 10)).toBe(1)
    expect(await world.statusOf({ jobId: job.id })).toBe('queued')
  })

  test('settling, giving back and cancelling at once: each job ends in one place', async () => {
    const { queue, epoch, tag } = await world.queue()
    const worker = await world.worker([queue])
    const refs = await world.mint(queue, tag, 300)
    for (const { id, state } of await world.backend.workers.list()) {
      if (state === 'alive') await world.ledger.adopt(id, epoch, [])
    }
    const parts = Array.from({ length: 6 }, (_, part) => refs.filter((_ref, index) => index % 6 >= part))
    const settled: Promise<unknown>[] = parts.flatMap((part) => [
      world.ledger.settle(
        worker,
        part.map((ref) => complete(ref)),
      ),
      world.ledger.requeue(queue, epoch, part),
      world.ledger.giveBack(worker, part),
      world.ledger.mark(worker, inFlight(part)),
    ])
    await Promise.all(settled)
    const { dispatched, running, queued, completed } = await counts(queue)
    expect(dispatched + running + queued + completed).toBe(300)
    const { rows } = await world.other.query<{ twice: number }>(
      `select count(*)::int as twice from (
         select id from (select id from millrace.ready union all select id from millrace.running
           union all select job_id from millrace.job_attempts where ended is not null) p group by id having count(*) > 1) t`,
    )
    expect(rows[0]!.twice).toBe(0)
    await world.backend.workers.retire(worker)
  })

  test('two relays share the work', async () => {
    const { queue, tag } = await world.queue()
    await world.backend.jobs.insert(Array.from({ length: 500 }, () => newJob(queue)))
    const replies = await Promise.all(Array.from({ length: 4 }, () => world.ledger.relay(queue, tag, [0, 200, 0])))
    const jobs = replies.flatMap((reply) => reply.jobs)
    expect(new Set(jobs.map(({ id }) => id)).size).toBe(jobs.length)
    expect(new Set(jobs.map(({ lease }) => lease)).size).toBe(jobs.length)
    const { dispatched, queued } = await counts(queue)
    expect([dispatched, queued]).toEqual([jobs.length, 500 - jobs.length])
  })
})

async function dueIn(queue: string) {
  const due = await world.backend.jobs.due('expired', 1_000)
  return due.filter(({ job }) => job.queue === queue).map(({ job }) => job.id)
}
