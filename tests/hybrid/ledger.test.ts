// The ledger half of the hybrid on a real PostgreSQL: every guard of its protocol, call by call.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { decideCancel, decideRemove } from '../../src/core/decide.ts'
import type { LeaseNumber, NewJob, WorkerId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { createSessionLedger } from '../../src/backends/postgres/session-ledger.ts'
import { complete, createLedgerWorld, inFlight, newJob } from './ledger-world.ts'
import type { LedgerWorld } from './ledger-world.ts'

describe.each([18, 15] as const)('PostgreSQL %i', (version) => {
  let world: LedgerWorld

  beforeAll(async () => {
    world = await createLedgerWorld(version)
  })

  afterAll(() => world.close())

  async function dueIn(queue: string) {
    return (await world.backend.jobs.due('expired', 1_000)).filter(({ job }) => job.queue === queue)
  }

  describe('minting at the insert', () => {
    test('a plain job of an offered queue gets a lease and is dispatched', async () => {
      const { queue, tag } = await world.queue()
      const jobs = [newJob(queue), newJob(queue, { priority: 7, maxAttempts: 9 }), newJob(queue)]
      const minted = await world.ledger.insert(jobs, new Map([[queue, tag]]))
      expect(minted.reply).toEqual({ ok: true, results: jobs.map(({ id }) => ({ id, outcome: 'inserted' })) })
      expect(minted.leases).toEqual(minted.leases.toSorted((a, b) => a - b))
      expect(new Set(minted.leases).size).toBe(3)
      expect(minted.defaults.get(queue)).toEqual({ priority: 100, maxAttempts: 3 })
      expect(minted.news.rows).toEqual([])
      const stored = await world.backend.query.get(jobs.map(({ id }) => id))
      expect(stored.map((job) => [job?.status, job?.lease, job?.worker, job?.startedAtMs])).toEqual(
        minted.leases.map((lease) => ['dispatched', lease, null, null]),
      )
      expect(stored[0]?.enqueuedAtMs).toBe(minted.nowMs)
      expect(stored[0]?.runAtMs).toBe(minted.nowMs)
      const [counts] = await world.backend.query.counts(queue)
      expect(counts).toMatchObject({ counts: { dispatched: 3, running: 0, queued: 0 }, oldestReadyAtMs: minted.nowMs })
      const listed = await world.backend.query.list({ queue, status: ['dispatched'] }, { limit: 10 })
      expect(listed.items).toHaveLength(3)
      expect((await world.backend.query.list({ queue, status: ['running'] }, { limit: 10 })).items).toEqual([])
      expect(await world.backend.query.attempts(jobs[0]!.id)).toEqual([])
    })

    test('the same by one job, and in a batch', async () => {
      const { queue, tag } = await world.queue()
      const one = await world.ledger.insert([newJob(queue)], new Map([[queue, tag]]))
      expect(one.leases[0]).toBeGreaterThan(0)
      expect(one.defaults.get(queue)).toEqual({ priority: 100, maxAttempts: 3 })
      const batch = newJob(queue).id as never
      await world.backend.batches.create({
        id: batch,
        name: 'b',
        meta: null,
        callbacks: { complete: null, success: null, failure: null },
      })
      const refs = await world.mint(queue, tag, 3, { batch })
      expect(refs.every(({ lease }) => lease > 0)).toBe(true)
      const worker = await world.worker([queue])
      const { verdicts } = await world.ledger.settle(
        worker,
        refs.map((ref) => complete(ref)),
      )
      expect(verdicts).toEqual(['applied', 'applied', 'applied'])
      expect((await world.backend.batches.get(batch))?.counts).toMatchObject({ completed: 3, pending: 0 })
    })

    test('another tag, a pause, ledger mode, an epoch that is not born and no offer: ready, and the row as it is', async () => {
      const { queue, epoch, tag } = await world.queue()
      const insert = async (offer: string | null) => {
        const job = newJob(queue)
        const bulk = newJob(queue)
        const offers = new Map(offer === null ? [] : [[queue, offer]])
        const one = await world.ledger.insert([job], offers)
        const two = await world.ledger.insert([bulk, newJob(queue)], offers)
        expect([...one.leases, ...two.leases]).toEqual([0, 0, 0])
        expect(await world.statusOf({ jobId: job.id })).toBe('queued')
        expect(await world.statusOf({ jobId: bulk.id })).toBe('queued')
        expect(two.news).toEqual(one.news)
        return one.news.rows
      }
      expect(await insert(`${epoch}.other`)).toMatchObject([
        { queue, epoch, birth: 'born', mode: 'token', paused: false },
      ])
      expect(await insert(null)).toMatchObject([{ queue, epoch }])
      await world.backend.queues.configure(queue, { paused: true })
      expect(await insert(tag)).toMatchObject([{ queue, epoch, paused: true }])
      await world.backend.queues.configure(queue, { paused: false })
      const next = await world.flip(queue)
      expect(await insert(tag)).toMatchObject([{ queue, epoch: next.epoch, birth: null }])
      expect(await insert(`${next.epoch}.`)).toMatchObject([{ birth: null }])
      const last = await world.flip(queue, 'ledger')
      await world.ledger.born(queue, last.epoch, 'born')
      expect(await insert(`${last.epoch}.born`)).toMatchObject([{ mode: 'ledger' }])
    })

    test('a delay, a key, a group and a limit of the queue take the other way', async () => {
      const { queue, tag } = await world.queue()
      const offers = new Map([[queue, tag]])
      const key = { key: 'k', mode: 'until-finished', windowMs: 0, onDuplicate: 'keep' } as const
      const jobs = [newJob(queue, { delayMs: 60_000 }), newJob(queue)]
      const mixed = await world.ledger.insert(jobs, offers)
      expect(mixed.leases[0]).toBe(0)
      expect(mixed.leases[1]).toBeGreaterThan(0)
      expect(await world.statusOf({ jobId: jobs[0]!.id })).toBe('scheduled')
      const others: readonly Partial<NewJob>[] = [{ unique: key }, { group: 'g' }, { limitKey: 'l' }]
      for (const extra of others) {
        const { leases, reply } = await world.ledger.insert([newJob(queue, extra)], offers)
        expect([reply.ok, leases]).toEqual([true, [0]])
      }
      await world.backend.queues.configure(queue, { limits: limitOf(1) })
      const limited = await world.ledger.insert([newJob(queue), newJob(queue)], offers)
      expect(limited.leases).toEqual([0, 0])
    })

    test('a repeated insert mints nothing again', async () => {
      const { queue, tag } = await world.queue()
      const jobs = [newJob(queue), newJob(queue)]
      const offers = new Map([[queue, tag]])
      const first = await world.ledger.insert(jobs.slice(0, 1), offers)
      const again = await world.ledger.insert(jobs, offers)
      expect(again.reply).toMatchObject({ results: [{ outcome: 'already' }, { outcome: 'inserted' }] })
      expect(again.leases[0]).toBe(0)
      expect(again.leases[1]).toBeGreaterThan(first.leases[0]!)
      expect((await world.ledger.insert(jobs.slice(0, 1), offers)).leases).toEqual([0])
    })
  })

  describe('the server', () => {
    test('another server mints nothing until it is known, and then no number of before comes again', async () => {
      const { queue, tag, epoch } = await world.queue()
      const before = await world.ledger.leaseMark()
      await world.other.query(
        "update millrace.ledger set pg_identity = 'another'; update millrace.dispatch set pg_identity = 'another'",
      )
      expect((await world.ledger.dispatch()).serverChanged).toBe(true)
      expect(await world.ledger.insert([newJob(queue)], new Map([[queue, tag]]))).toMatchObject({
        leases: [0],
        news: { serverChanged: true },
      })
      expect(await world.ledger.relay(queue, tag, [10, 10, 10])).toMatchObject({
        jobs: [],
        refused: { serverChanged: true },
      })
      await Promise.all([world.ledger.renewServer(), world.ledger.renewServer()])
      const news = await world.ledger.dispatch([queue])
      expect(news).toMatchObject({ serverChanged: false, rows: [{ mode: 'ledger', birth: null }] })
      expect(news.rows[0]!.epoch).toBeGreaterThan(epoch + 2 ** 20)
      expect(news.rows[0]!.epoch).toBeLessThan(epoch + 2 ** 21 + 10)
      const after = await world.ledger.leaseMark()
      expect(after.next).toBeGreaterThan(before.next + 2 ** 32)
      expect(news.rows[0]!.firstLease).toBeLessThan(after.next)
      expect(after.server).toBe(before.server)
      await world.ledger.renewServer()
      expect((await world.ledger.dispatch([queue])).rows).toEqual(news.rows)
    })

    test('a claim of ready jobs makes it known by itself', async () => {
      const { queue, epoch } = await world.queue()
      const worker = await world.worker([queue])
      await world.backend.jobs.insert([newJob(queue)])
      const { next } = await world.ledger.leaseMark()
      await world.other.query("update millrace.ledger set pg_identity = 'another'")
      const { jobs } = await world.backend.jobs.claim({ worker, claimNo: 1, queues: [queue], limit: 1 })
      expect(jobs[0]!.lease).toBeGreaterThan(next + 2 ** 32)
      const news = await world.ledger.dispatch([queue])
      expect(news).toMatchObject({ serverChanged: false, rows: [{ mode: 'ledger' }] })
      expect(news.rows[0]!.epoch).toBeGreaterThan(epoch + 2 ** 20)
    })

    test('who it is can be asked by anybody, and differs by server and timeline', async () => {
      const { rows } = await world.other.query<{ own: string; system: string }>(
        'select millrace.pg_identity() as own, system_identifier::text as system from pg_control_system()',
      )
      expect(rows[0]!.own).toBe(`${rows[0]!.system}.00000001`)
    })
  })

  describe('epochs', () => {
    test('a flip is for the one who expected right, and numbers rise over all queues', async () => {
      const { queue, epoch } = await world.queue()
      const request = {
        queues: [{ queue, expected: epoch }],
        mode: 'token',
        redisId: 'x',
        unlessHealthy: false,
      } as const
      const flips = await Promise.all([world.ledger.flip(request), world.ledger.flip(request)])
      expect(flips.map((rows) => rows.length).toSorted()).toEqual([0, 1])
      const [row] = flips.flat()
      expect(row).toMatchObject({ queue, redisId: 'x', birth: null, mode: 'token', paused: false, lanes: [50, 150] })
      const more = await world.queue()
      expect(more.epoch).toBeGreaterThan(row!.epoch)
      const above = await world.ledger.flip({
        ...request,
        queues: [{ queue, expected: row!.epoch }],
        above: more.epoch + 100,
      })
      expect(above[0]!.epoch).toBe(more.epoch + 101)
      expect((await world.ledger.dispatch([])).epoch).toBe(more.epoch + 101)
    })

    test('a birth counts once, and only for its epoch', async () => {
      const { queue, epoch } = await world.queue()
      expect(await world.ledger.born(queue, epoch, 'again')).toBe(false)
      const row = await world.flip(queue)
      expect(await world.ledger.born(queue, epoch, 'late')).toBe(false)
      expect(await world.ledger.born(queue, row.epoch, 'now')).toBe(true)
    })

    test('a queue that a living worker uses without trouble is left alone', async () => {
      const { queue, epoch } = await world.queue()
      const worker = await world.worker([queue])
      const flip = async () =>
        (
          await world.ledger.flip({
            queues: [{ queue, expected: epoch }],
            mode: 'ledger',
            redisId: '',
            unlessHealthy: true,
          })
        ).length
      const beat = (failing: readonly string[]) =>
        world.ledger.beat({ id: worker, running: 0, commandsSeen: 0, failing })
      await world.ledger.adopt(worker, epoch, [])
      expect(await flip()).toBe(0)
      await beat([queue])
      expect(await flip()).toBe(1)
    })

    test('a worker that has not adopted it is no reason to leave it', async () => {
      const { queue, epoch } = await world.queue()
      await world.worker([queue])
      const queues = [{ queue, expected: epoch }]
      expect(await world.ledger.flip({ queues, mode: 'ledger', redisId: '', unlessHealthy: true })).toHaveLength(1)
    })
  })

  describe('relay', () => {
    test('moves each lane by priority and order up to its room, with all that a token needs', async () => {
      const { queue, tag } = await world.queue()
      const big = JSON.stringify('x'.repeat(5_000))
      const jobs = [
        newJob(queue, { priority: 140 }),
        newJob(queue, { priority: 10, tags: ['t'], meta: '{"m":1}' }),
        newJob(queue, { priority: 120, payload: big }),
        newJob(queue, { priority: 120 }),
        newJob(queue, { priority: 900 }),
      ]
      await world.backend.jobs.insert(jobs)
      const first = await world.ledger.relay(queue, tag, [5, 2, 0])
      expect(first.jobs.map(({ id }) => id)).toEqual([jobs[1]!.id, jobs[2]!.id, jobs[3]!.id])
      expect(first.jobs[0]).toMatchObject({
        queue,
        name: 'noop',
        payload: '{"a":1}',
        priority: 10,
        tags: ['t'],
        meta: '{"m":1}',
        attemptCount: 0,
        maxAttempts: 3,
        timeoutMs: 1_000,
        rateLimited: false,
      })
      expect(first.jobs[1]!.payload).toBeNull()
      expect((await world.ledger.bodies([jobs[2]!.id, newJob(queue).id])).get(jobs[2]!.id)).toBe(big)
      expect(first).toMatchObject({ backlog: [false, true, true], refused: null })
      const second = await world.ledger.relay(queue, tag, [5, 5, 5])
      expect(second.jobs.map(({ id }) => id)).toEqual([jobs[0]!.id, jobs[4]!.id])
      expect(second.backlog).toEqual([false, false, false])
      expect(Math.min(...second.jobs.map(({ lease }) => lease))).toBeGreaterThan(
        Math.max(...first.jobs.map(({ lease }) => lease)),
      )
    })

    test('refuses another tag, a paused queue and one that is not there', async () => {
      const { queue, epoch, tag } = await world.queue()
      await world.backend.jobs.insert([newJob(queue)])
      expect(await world.ledger.relay(queue, `${epoch}.x`, [1, 1, 1])).toMatchObject({
        jobs: [],
        refused: { rows: [{ epoch }] },
      })
      await world.other.query('update millrace.job_queues set is_active = false where name = $1', [queue])
      const paused = await world.ledger.relay(queue, tag, [1, 1, 1])
      expect(paused).toMatchObject({ refused: { rows: [{ paused: true, configVersion: 2 }] } })
      expect((await world.ledger.relay('nowhere', tag, [1, 1, 1])).refused).toMatchObject({ rows: [] })
    })

    test('an until-started key is given back, and slots are kept', async () => {
      const { queue, tag } = await world.queue()
      await world.backend.queues.configure(queue, { limits: limitOf(1) })
      const unique = { key: 'k', mode: 'until-started', windowMs: 0, onDuplicate: 'keep' } as const
      const jobs = [newJob(queue, { unique }), newJob(queue)]
      for (const job of jobs) await world.backend.jobs.insert([job])
      const { jobs: minted } = await world.ledger.relay(queue, tag, [5, 5, 5])
      expect(minted.map(({ id }) => id)).toEqual([jobs[0]!.id])
      const next = newJob(queue, { unique })
      expect(await world.backend.jobs.insert([next])).toMatchObject({ results: [{ id: next.id, outcome: 'inserted' }] })
      const worker = await world.worker([queue])
      const ref = { jobId: jobs[0]!.id, lease: minted[0]!.lease }
      expect(await world.ledger.settle(worker, [complete(ref)])).toMatchObject({ verdicts: ['applied'] })
      expect(await world.statusOf({ jobId: jobs[1]!.id })).toBe('queued')
    })
  })

  describe('settling what is not marked', () => {
    test('leaves the audit of a marked run', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const [marked, unmarked] = await world.mint(queue, tag, 2)
      await world.ledger.mark(worker, inFlight([marked!], 1_000))
      expect(await world.backend.query.attempts(marked!.jobId)).toMatchObject([{ status: 'attempting', worker }])
      const settled = await world.ledger.settle(worker, [complete(marked!, 1_000), complete(unmarked!, 1_000)])
      expect(settled).toEqual({ verdicts: ['applied', 'applied'], dispatched: [] })
      const [a, b] = await Promise.all(
        [marked!, unmarked!].map(async ({ jobId }) => (await world.backend.query.attempts(jobId))[0]!),
      )
      expect({ ...b, jobId: '', lease: 0 }).toEqual({ ...a, jobId: '', lease: 0 })
      expect(b).toMatchObject({ status: 'success', worker, durationMs: 1_000, attempt: 1, lease: unmarked!.lease })
      const [job] = await world.backend.query.get([unmarked!.jobId])
      expect(job).toMatchObject({ status: 'completed', worker, lease: unmarked!.lease, attemptCount: 1 })
    })

    test('a second time is `already`, another lease is `stale`', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const [ref] = await world.mint(queue, tag, 1)
      const wrong = { jobId: ref!.jobId, lease: (ref!.lease - 1) as LeaseNumber } // a lease of before
      expect((await world.ledger.settle(worker, [complete(wrong)])).verdicts).toEqual(['stale'])
      expect(await world.statusOf(ref!)).toBe('dispatched')
      expect((await world.ledger.settle(worker, [complete(ref!)])).verdicts).toEqual(['applied'])
      expect((await world.ledger.settle(worker, [complete(ref!)])).verdicts).toEqual(['already'])
      expect((await world.ledger.settle(worker, [complete(wrong)])).verdicts).toEqual(['stale'])
    })

    test('a retry, a report and a return know the worker too', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const [retried, returned] = await world.mint(queue, tag, 2)
      const error = { name: 'Error', message: 'no', kind: 'error' } as never
      const retry: Transition = {
        ...complete(retried!, 20),
        edge: 'retry',
        to: 'scheduled',
        delayMs: 60_000,
        waitsFor: 'retry',
        error,
      }
      const report: Transition = {
        jobId: retried!.jobId,
        edge: 'report',
        guard: { from: ['running'], lease: retried!.lease },
        to: 'running',
        progress: '5',
      }
      const { verdicts } = await world.ledger.settle(worker, [report, retry, returnOf(returned!)])
      expect(verdicts).toEqual(['applied', 'applied', 'applied'])
      expect(await world.backend.query.attempts(retried!.jobId)).toMatchObject([
        { status: 'retry', worker, durationMs: 20 },
      ])
      expect(await world.statusOf(retried!)).toBe('scheduled')
      expect(await world.statusOf(returned!)).toBe('queued')
    })

    test('in a transaction of the caller', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const [ref] = await world.mint(queue, tag, 1)
      await world.other.query('begin')
      const inside = world.ledger.inside(world.other, () => worker)
      expect(await inside.apply([complete(ref!, 7)])).toEqual(['applied'])
      // A mark does not wait for it, nor does it call the lease lost.
      expect(await world.ledger.mark(worker, inFlight([ref!]))).toEqual([])
      await world.other.query('commit')
      expect(await world.backend.query.attempts(ref!.jobId)).toMatchObject([
        { status: 'success', worker, durationMs: 7 },
      ])
    })
  })

  describe('marks', () => {
    test('are of rows that are nobody’s or its own; all others are lost', async () => {
      const { queue, tag } = await world.queue()
      const [worker, stranger] = [await world.worker([queue]), await world.worker([queue])]
      const refs = await world.mint(queue, tag, 3)
      const gone = { jobId: newJob(queue).id, lease: 1 as LeaseNumber } // never minted
      const old = { jobId: refs[2]!.jobId, lease: (refs[2]!.lease - 1) as LeaseNumber } // a lease of before
      expect(await world.ledger.mark(stranger, inFlight([refs[1]!]))).toEqual([])
      const lost = await world.ledger.mark(worker, inFlight([...refs.slice(0, 2), gone, old], 2_000))
      expect(sorted(lost)).toEqual(sorted([refs[1]!, gone, old]))
      expect(await world.ledger.mark(worker, inFlight([refs[0]!]))).toEqual([])
      const [job] = await world.backend.query.get([refs[0]!.jobId])
      expect(job).toMatchObject({ status: 'running', worker })
      expect(job!.updatedAtMs - job!.startedAtMs!).toBeGreaterThanOrEqual(0)
    })

    test('of a dead worker are none', async () => {
      const { queue, epoch, tag } = await world.queue()
      const worker = await world.worker([queue])
      const refs = await world.mint(queue, tag, 1)
      await world.backend.workers.retire(worker)
      expect(await world.ledger.mark(worker, inFlight(refs))).toEqual(refs)
      expect(await world.ledger.adopt(worker, epoch, inFlight(refs))).toBeNull()
      expect(await world.ledger.confirm(worker, refs)).toEqual([])
      expect(await world.statusOf(refs[0]!)).toBe('dispatched')
    })

    test('adopting never goes back, and marks what is in flight', async () => {
      const { queue, epoch, tag } = await world.queue()
      const worker = await world.worker([queue])
      const refs = await world.mint(queue, tag, 2)
      const beat = async () =>
        (await world.ledger.beat({ id: worker, running: 1, commandsSeen: 0, failing: [] })).epochSeen
      expect(await beat()).toBe(0)
      expect(await world.ledger.adopt(worker, epoch, inFlight(refs))).toEqual([])
      expect(await world.ledger.adopt(worker, epoch - 1, [])).toEqual([])
      expect(await beat()).toBe(epoch)
      expect(await world.statusOf(refs[1]!)).toBe('running')
    })

    test('a confirmed start is of one worker', async () => {
      const { queue, tag } = await world.queue()
      const [a, b] = [await world.worker([queue]), await world.worker([queue])]
      const refs = await world.mint(queue, tag, 2)
      const both = await Promise.all([world.ledger.confirm(a, refs), world.ledger.confirm(b, refs)])
      expect(sorted(both.flat())).toEqual(sorted(refs))
      expect(sorted(await world.ledger.confirm(a, refs))).toEqual(sorted(both[0]))
      const [mine] = await world.mint(queue, tag, 1)
      expect(await world.ledger.confirm(a, [mine!], 60_000)).toEqual([mine])
      expect(await world.ledger.confirm(a, [mine!], 60_000)).toEqual([mine])
    })
  })

  describe('a beat', () => {
    test('tells the rows of its queues, its epoch and its cancels, and keeps what fails', async () => {
      const { queue, epoch, tag } = await world.queue()
      const worker = await world.worker([queue, 'unknown'])
      const [ref] = await world.mint(queue, tag, 1)
      const thread = await createSessionLedger(world.session)
      try {
        expect(await thread.adopt(worker, epoch, inFlight([ref!]))).toEqual([])
        await world.backend.jobs.apply(decideCancel(ref!.jobId, 'why'))
        const reply = await thread.beat({ id: worker, running: 1, commandsSeen: 0, failing: ['unknown'] })
        expect(reply).toMatchObject({
          alive: true,
          cancels: [ref],
          commands: [],
          epochSeen: epoch,
          news: { serverChanged: false, rows: [{ queue, epoch, mode: 'token', birth: 'born', configVersion: 1 }] },
        })
        expect(reply.news.epoch).toBeGreaterThanOrEqual(epoch)
        expect(await thread.mark(worker, inFlight([ref!]))).toEqual([])
        await world.backend.workers.retire(worker)
        expect(await thread.beat({ id: worker, running: 1, commandsSeen: 0, failing: [] })).toMatchObject({
          alive: false,
        })
      } finally {
        await thread.close()
      }
    })
  })

  describe('back to ready', () => {
    test('only under the barrier, at exactly that epoch', async () => {
      const { queue, epoch, tag } = await world.queue()
      const refs = await world.mint(queue, tag, 2)
      const behind = await world.worker([queue])
      expect(await world.ledger.requeue(queue, epoch, refs)).toBe(0)
      expect(await world.ledger.requeueOld(queue, epoch, 10)).toBe(-1)
      await adoptAll(world, epoch)
      expect(await world.ledger.requeue(queue, epoch - 1, refs)).toBe(0)
      expect(await world.ledger.requeue(queue, epoch + 1, refs)).toBe(0)
      expect(await world.ledger.requeue('another', epoch, refs)).toBe(0)
      const other = { ...refs[0]!, lease: (refs[0]!.lease + 1_000) as LeaseNumber } // not minted
      expect(await world.ledger.requeue(queue, epoch, [refs[0]!, other])).toBe(1)
      expect(await world.ledger.requeue(queue, epoch, [refs[0]!])).toBe(0)
      expect(await world.statusOf(refs[0]!)).toBe('queued')
      expect(await world.ledger.mark(behind, inFlight([refs[0]!]))).toEqual([refs[0]])
    })

    test('a worker of the plain backend is in nobody’s way', async () => {
      const { queue, epoch, tag } = await world.queue()
      await adoptAll(world, epoch)
      const id = newJob(queue).id as string as WorkerId // an id like any other
      await world.backend.workers.register({ id, host: 'h', pid: 1, queues: [queue], concurrency: 1 })
      const refs = await world.mint(queue, tag, 1)
      expect(await world.ledger.requeue(queue, epoch, refs)).toBe(1)
    })

    test('a marked row stays, its place in the order, attempts and gates stay', async () => {
      const { queue, epoch, tag } = await world.queue()
      const worker = await world.worker([queue])
      const refs = await world.mint(queue, tag, 3)
      await adoptAll(world, epoch)
      await world.ledger.mark(worker, inFlight([refs[1]!]))
      await world.backend.jobs.insert([newJob(queue)])
      expect(await world.ledger.requeue(queue, epoch, refs)).toBe(2)
      const { jobs } = await world.ledger.relay(queue, tag, [9, 9, 9])
      expect(jobs.slice(0, 2).map(({ id }) => id)).toEqual([refs[0]!.jobId, refs[2]!.jobId])
      expect(jobs[0]!.lease).toBeGreaterThan(refs[2]!.lease)
      expect(jobs[0]!.attemptCount).toBe(0)
    })

    test('the old ones of an earlier epoch; in ledger mode all', async () => {
      const { queue, tag } = await world.queue()
      const old = await world.mint(queue, tag, 3)
      const next = await world.flip(queue)
      await world.ledger.born(queue, next.epoch, 'born')
      const fresh = await world.mint(queue, `${next.epoch}.born`, 1)
      await adoptAll(world, next.epoch)
      expect(await world.ledger.requeueOld(queue, next.epoch, 2)).toBe(2)
      expect(await world.ledger.requeueOld(queue, next.epoch, 10)).toBe(1)
      expect(await world.ledger.requeueOld(queue, next.epoch, 10)).toBe(0)
      expect(await world.statusOf(fresh[0]!)).toBe('dispatched')
      const last = await world.flip(queue, 'ledger')
      await adoptAll(world, last.epoch)
      expect(await world.ledger.requeueOld(queue, last.epoch, 10)).toBe(1)
      expect(await Promise.all([...old, ...fresh].map((ref) => world.statusOf(ref)))).toEqual(Array(4).fill('queued'))
    })

    test('all of it, when no worker of the hybrid is left', async () => {
      const { queue, tag } = await world.queue()
      const refs = await world.mint(queue, tag, 2)
      await expect(world.other.query('select millrace.recall_tokens()')).rejects.toMatchObject({ code: '55006' })
      await world.other.query('begin; update millrace.workers set is_alive = false where epoch_seen is not null')
      await world.other.query('select millrace.recall_tokens()')
      const { rows } = await world.other.query('select 1 from millrace.running where worker_no = 0')
      expect(rows).toEqual([])
      await world.other.query('rollback')
      expect(await world.statusOf(refs[0]!)).toBe('dispatched')
    })

    test('a row whose cancellation was asked for ends instead', async () => {
      const { queue, epoch, tag } = await world.queue()
      const [ref, own] = await world.mint(queue, tag, 2)
      expect(await world.backend.jobs.apply(decideCancel(ref!.jobId, 'why'))).toEqual(['stale', 'applied'])
      expect((await world.backend.query.get([ref!.jobId]))[0]).toMatchObject({
        status: 'dispatched',
        cancelRequested: true,
      })
      await adoptAll(world, epoch)
      expect(await world.ledger.requeue(queue, epoch, [ref!])).toBe(1)
      expect(await world.statusOf(ref!)).toBe('cancelled')
      const worker = await world.worker([queue])
      await world.ledger.flagCancel(own!, worker, true)
      expect(await world.ledger.giveBack(worker, [own!])).toBe(1)
      expect(await world.statusOf(own!)).toBeUndefined()
    })

    test('a worker gives back what is nobody’s or its own', async () => {
      const { queue, tag } = await world.queue()
      const [worker, stranger] = [await world.worker([queue]), await world.worker([queue])]
      const refs = await world.mint(queue, tag, 3)
      await world.ledger.mark(worker, inFlight([refs[0]!]))
      await world.ledger.mark(stranger, inFlight([refs[1]!]))
      expect(await world.ledger.giveBack(worker, refs)).toBe(2)
      expect(await world.ledger.giveBack(worker, refs)).toBe(0)
      expect(await Promise.all(refs.map((ref) => world.statusOf(ref)))).toEqual(['queued', 'running', 'queued'])
    })

    test('what somebody has locked is passed over', async () => {
      const { queue, epoch, tag } = await world.queue()
      const refs = await world.mint(queue, tag, 2)
      await adoptAll(world, epoch)
      await world.other.query('begin')
      await world.other.query('select 1 from millrace.running where id = $1 for update', [refs[0]!.jobId])
      expect(await world.ledger.requeue(queue, epoch, refs)).toBe(1)
      await world.other.query('rollback')
      expect(await world.ledger.requeue(queue, epoch, refs)).toBe(1)
    })
  })

  describe('the dead', () => {
    test('inherit rows that are nobody’s, and the rescuer finds them', async () => {
      const { queue, tag } = await world.queue()
      const [dead, alive] = [await world.worker([queue]), await world.worker([queue])]
      const refs = await world.mint(queue, tag, 2)
      await world.ledger.mark(alive, inFlight([refs[1]!]))
      expect(await world.ledger.bequeath(dead, refs)).toBe(0)
      await world.backend.workers.retire(dead)
      expect(await dueIn(queue)).toEqual([])
      expect(await world.ledger.bequeath(dead, refs)).toBe(1)
      expect(await world.ledger.bequeath(dead, refs)).toBe(0)
      const due = await dueIn(queue)
      expect(due).toMatchObject([
        { job: { id: refs[0]!.jobId, status: 'running', worker: dead, lease: refs[0]!.lease } },
      ])
      expect(await world.ledger.notAlive([dead, alive, 'never' as WorkerId])).toEqual([dead, 'never'])
      await world.ledger.giveBack(dead, refs)
    })

    test('one that was never known here can inherit', async () => {
      const { queue, tag } = await world.queue()
      const refs = await world.mint(queue, tag, 1)
      const never = newJob(queue).id as string as WorkerId // an id like any other
      expect(await world.ledger.bequeath(never, refs)).toBe(1)
      expect(await dueIn(queue)).toMatchObject([{ job: { worker: never } }])
      await world.ledger.giveBack(never, refs)
    })

    test('unmarked rows are neither held by anybody nor expired', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      await world.mint(queue, tag, 2)
      expect(await world.backend.jobs.holdings(worker, 1)).toEqual([])
      await world.backend.workers.retire(worker)
      expect(await dueIn(queue)).toEqual([])
      expect((await world.backend.jobs.promote(100)).promoted).toBe(0)
    })
  })

  describe('reconcile', () => {
    test('lists unmarked rows between two leases, in order', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const before = await world.ledger.leaseMark()
      const refs = await world.mint(queue, tag, 4)
      const after = await world.ledger.leaseMark()
      expect(before.next).toBeLessThanOrEqual(refs[0]!.lease)
      expect(after.next).toBe(refs[3]!.lease + 1)
      await world.ledger.mark(worker, inFlight([refs[1]!]))
      expect(await world.ledger.unmarked(queue, 0, after.next, 10)).toEqual([refs[0], refs[2], refs[3]])
      expect(await world.ledger.unmarked(queue, refs[0]!.lease, refs[3]!.lease, 10)).toEqual([refs[2]])
      expect(await world.ledger.unmarked(queue, 0, after.next, 1)).toEqual([refs[0]])
      expect(await world.ledger.unmarked('another', 0, after.next, 10)).toEqual([])
    })
  })

  describe('cancelling what is dispatched', () => {
    test('without a revoked token nothing changes, and the caller learns the lease', async () => {
      const { queue, tag } = await world.queue()
      const [ref] = await world.mint(queue, tag, 1)
      const [cancel] = decideCancel(ref!.jobId, 'why')
      const [remove] = decideRemove(ref!.jobId)
      const reply = await world.ledger.settle(null, [cancel, remove])
      expect(reply.verdicts).toEqual(['stale', 'stale'])
      expect(reply.dispatched).toEqual([
        { index: 0, queue, lease: ref!.lease },
        { index: 1, queue, lease: ref!.lease },
      ])
      expect(await world.statusOf(ref!)).toBe('dispatched')
      await expect(world.other.query('delete from millrace.jobs where id = $1', [ref!.jobId])).rejects.toMatchObject({
        code: '55006',
      })
    })

    test('with a revoked token it is cancelled, once, under exactly that lease', async () => {
      const { queue, tag } = await world.queue()
      const [a, b] = await world.mint(queue, tag, 2)
      const [cancel] = decideCancel(a!.jobId, 'why')
      expect(await world.ledger.settleRevoked(cancel, (a!.lease + 1) as LeaseNumber, null)).toBe('stale')
      expect(await world.ledger.settleRevoked(cancel, a!.lease, null)).toBe('applied')
      expect(await world.ledger.settleRevoked(cancel, a!.lease, null)).toBe('already')
      expect(await world.statusOf(a!)).toBe('cancelled')
      expect(await world.backend.query.attempts(a!.jobId)).toMatchObject([
        { status: 'cancelled', worker: null, note: 'why' },
      ])
      const [remove] = decideRemove(b!.jobId)
      expect(await world.ledger.settleRevoked(remove, b!.lease, null)).toBe('applied')
      expect(await world.statusOf(b!)).toBeUndefined()
      expect(await world.ledger.settleRevoked(remove, b!.lease, null)).toBe('missing')
    })

    test('where the token was absent, only under the barrier', async () => {
      const { queue, epoch, tag } = await world.queue()
      const [ref] = await world.mint(queue, tag, 1)
      await world.worker([queue])
      const [cancel] = decideCancel(ref!.jobId, 'why')
      expect(await world.ledger.settleRevoked(cancel, ref!.lease, { queue, epoch })).toBe('stale')
      await adoptAll(world, epoch)
      expect(await world.ledger.settleRevoked(cancel, ref!.lease, { queue, epoch: epoch - 1 })).toBe('stale')
      expect(await world.ledger.settleRevoked(cancel, ref!.lease, { queue, epoch })).toBe('applied')
    })

    test('in flight: the flag and the mark, and the beat tells it', async () => {
      const { queue, tag } = await world.queue()
      const worker = await world.worker([queue])
      const [ref] = await world.mint(queue, tag, 1)
      expect(await world.ledger.flagCancel({ ...ref!, lease: 1 as LeaseNumber }, worker, false)).toBe(false)
      expect(await world.ledger.flagCancel(ref!, worker, false)).toBe(true)
      expect(await world.ledger.flagCancel(ref!, worker, false)).toBe(true)
      const { cancels } = await world.ledger.beat({ id: worker, running: 1, commandsSeen: 0, failing: [] })
      expect(cancels).toEqual([ref])
    })

    test('a batch that is cancelled flags its dispatched jobs once', async () => {
      const { queue, tag } = await world.queue()
      const batch = newJob(queue).id as never
      const callbacks = { complete: null, success: null, failure: null }
      await world.backend.batches.create({ id: batch, name: 'b', meta: null, callbacks })
      const [ref] = await world.mint(queue, tag, 1, { batch })
      await world.backend.batches.cancel(batch)
      const due = await world.backend.jobs.due('batch-cancelled', 10)
      expect(due.map(({ job }) => job.id)).toEqual([ref!.jobId])
      await world.backend.jobs.apply(decideCancel(ref!.jobId, 'its batch was cancelled'))
      expect(await world.backend.jobs.due('batch-cancelled', 10)).toEqual([])
    })
  })
})

function limitOf(concurrency: number) {
  return { concurrency, perKeyConcurrency: null, rate: null, perKeyRate: null }
}

function returnOf({ jobId, lease }: { readonly jobId: Transition['jobId']; readonly lease: LeaseNumber }): Transition {
  return { jobId, edge: 'return', guard: { from: ['running'], lease }, to: 'queued' }
}

/** Every living worker of the world has said what it runs: nothing. */
async function adoptAll({ backend, ledger }: LedgerWorld, epoch: number): Promise<void> {
  for (const { id, state } of await backend.workers.list()) if (state === 'alive') await ledger.adopt(id, epoch, [])
}

function sorted<Ref extends { readonly jobId: string }>(refs: readonly Ref[]): readonly Ref[] {
  return refs.toSorted((a, b) => (a.jobId < b.jobId ? -1 : 1))
}
