// The commands of random programs. Each does one thing to the store and to the model and compares.
import fc from 'fast-check'
import { expect } from 'vitest'
import { decideCancel, decideExpiry, decideOrphan, decideRemove, decideReplay } from '../../src/core/decide.ts'
import type { RunFacts } from '../../src/core/decide.ts'
import type { LeaseNumber } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { POLICY, ended, expired, expiredForGood } from '../conformance/outcomes.ts'
import { openGates, promoteDue } from './gates.ts'
import { fireCommand } from './fire-command.ts'
import { insertCommand } from './insert-command.ts'
import { QUEUES, applyBoth, command, freshDelay, hire, newBatchId, newJob, pickFrom, runningJobs } from './program.ts'
import type { Command, Program, Store } from './program.ts'
import { findJob, nextJobs, queueOf, readyJobs, startJob } from './state.ts'
import type { ModelJob } from './state.ts'
import { finishBatch, settle } from './settle.ts'

const dice = fc.nat({ max: 1_000 })
const delays = fc.oneof(fc.constant(0), fc.integer({ min: 1, max: 2_000 }))

const claims = fc
  .record({ who: dice, limit: fc.integer({ min: 1, max: 4 }), free: fc.boolean(), settling: fc.option(dice) })
  .map(({ who, limit, free, settling }) =>
    command(`claim(worker ${who}, ${limit}, ${free}, settling ${settling})`, (program, store) =>
      claim(program, store, who, limit, free ? QUEUES : QUEUES.toReversed(), settling),
    ),
  )

const settles = fc.record({ job: dice, how: dice, delayMs: delays }).map(({ job, how, delayMs }) =>
  command(`settle(${job}, ${how}, ${delayMs} ms)`, async (program, store) => {
    const run = pickFrom(runningJobs(program), job)
    if (run === undefined) return
    program.last = ending(program, run, run.lease, how, delayMs)
    await applyBoth(program, store, [program.last])
  }),
)

const settlesAgain = fc.constant(null).map(() =>
  command('settle the same again', async (program, store) => {
    if (program.last !== null) await applyBoth(program, store, [program.last, program.last])
  }),
)

const settlesStale = fc.record({ job: dice, lease: dice, how: dice }).map(({ job, lease, how }) =>
  command(`settle stale(${job}, ${lease}, ${how})`, async (program, store) => {
    const victim = pickFrom(
      program.model.jobs.filter(({ leases }) => leases.length > 0),
      job,
    )
    if (victim === undefined) return
    const old = pickFrom(victim.leases, lease)!
    if (victim.status === 'running' && old === victim.lease) return
    const run = { ...victim, lease: old as LeaseNumber } // one that the store has minted
    const expiry = how % 3 === 0 ? expired(run) : expiredForGood(run)
    await applyBoth(program, store, [how % 2 === 0 ? expiry : ending(program, victim, old, how, 100)])
  }),
)

const promotes = fc.oneof(fc.integer({ min: 1, max: 3 }), fc.constant(1_000)).map((limit) =>
  command(`promote(${limit})`, async ({ model }, { backend }) => {
    // Which queue comes first is nobody's promise: where each is an atom of its own, all of them go.
    const most = backend.capabilities.atomicAcrossQueues ? limit : 1_000
    expect(await backend.jobs.promote(most)).toEqual(promoteDue(model, most))
  }),
)

const advances = fc.integer({ min: 1, max: 2_500 }).map((ms) =>
  command(`advance(${ms})`, async ({ model }, { clock }) => {
    await clock.advance(ms)
    model.nowMs += ms
  }),
)

const pauses = fc.record({ queue: fc.constantFrom(...QUEUES), paused: fc.boolean() }).map(({ queue, paused }) =>
  command(`${paused ? 'pause' : 'resume'}(${queue})`, async ({ model }, { backend }) => {
    await backend.queues.configure(queue, { paused })
    queueOf(model, queue).paused = paused
  }),
)

const limits = fc
  .record({ concurrency: fc.integer({ min: 1, max: 4 }), perKey: fc.integer({ min: 1, max: 2 }) })
  .map(({ concurrency, perKey }) =>
    command(`limit(tight, ${concurrency}, ${perKey} per key)`, (program, store) =>
      configure(program, store, concurrency, perKey),
    ),
  )

const batches = fc.constant(null).map(() =>
  command('create a batch', async (program, { backend }) => {
    const callbacks = { complete: newJob(program), success: newJob(program), failure: newJob(program) }
    const id = newBatchId(program)
    await backend.batches.create({ id, name: 'batch', meta: null, callbacks })
    program.model.batches.push({ id, callbacks, sealed: false, cancelled: false, finished: false })
  }),
)

const batchEnds = fc.record({ batch: dice, cancels: fc.boolean() }).map(({ batch, cancels }) =>
  command(`${cancels ? 'cancel' : 'seal'} batch ${batch}`, async ({ model }, { backend }) => {
    const picked = pickFrom(model.batches, batch)
    if (picked === undefined) return
    expect(await (cancels ? backend.batches.cancel(picked.id) : backend.batches.seal(picked.id))).toBe(true)
    if (cancels && !picked.finished) picked.cancelled = true
    picked.sealed = true
    finishBatch(model, picked.id)
  }),
)

const simple = (words: string, run: Command['run']): fc.Arbitrary<Command> =>
  fc.constant(null).map(() => command(words, run))

/** The more often one is named, the more often it comes. */
export const commands: readonly fc.Arbitrary<Command>[] = [
  ...Array<fc.Arbitrary<Command>>(6).fill(insertCommand),
  ...Array<fc.Arbitrary<Command>>(7).fill(claims),
  ...Array<fc.Arbitrary<Command>>(9).fill(settles),
  ...Array<fc.Arbitrary<Command>>(2).fill(promotes),
  ...Array<fc.Arbitrary<Command>>(2).fill(advances),
  ...Array<fc.Arbitrary<Command>>(2).fill(settlesAgain),
  settlesStale,
  onJob('cancel', (job) => decideCancel(job.id, 'no')),
  onJob('remove', (job) => decideRemove(job.id)),
  onJob(
    'replay',
    (job) => [decideReplay(job.id, 'ada')],
    (job) => job.status === 'failed',
  ),
  onJob('replay anything', (job) => [decideReplay(job.id, 'ada')]),
  dice.map((who) => command(`worker ${who} dies`, (program, store) => die(program, store, who))),
  simple('expire what is due', expireDue),
  simple('settle orphans', settleOrphans),
  simple('cancel what cancelled batches left', cancelBatchJobs),
  pauses,
  limits,
  batches,
  batchEnds,
  fireCommand,
]

async function claim(
  program: Program,
  { backend }: Store,
  who: number,
  limit: number,
  queues: readonly string[],
  settling: number | null,
): Promise<void> {
  const { model } = program
  const worker = pickFrom(program.workers, who)!
  const run = settling === null ? undefined : pickFrom(runningJobs(program), settling)
  const ending_ = run === undefined ? null : ending(program, run, run.lease, settling!, 0)
  worker.claimNo += 1
  const settleFirst = ending_ === null ? {} : { settle: [ending_] }
  const reply = await backend.jobs.claim({ worker: worker.id, claimNo: worker.claimNo, queues, limit, ...settleFirst })
  if (ending_ !== null) {
    program.last = ending_
    expect(settle(model, ending_)).toContain(reply.verdicts[0])
  }
  expect(reply.refused).toBe(worker.alive ? undefined : 'worker-dead')
  if (!worker.alive) return expect(reply.jobs).toEqual([])
  expect([...reply.paused].sort()).toEqual(queues.filter((name) => queueOf(model, name).paused).sort())
  const ready = queues.flatMap((name) => (queueOf(model, name).paused ? [] : readyJobs(model, name)))
  expect(reply.jobs).toHaveLength(Math.min(limit, ready.length))
  if (backend.capabilities.strictPriority) {
    expect(reply.jobs.map(({ id }) => id)).toEqual(nextJobs(model, queues, limit))
  }
  for (const { id, lease, attemptCount, payload } of reply.jobs) {
    const job = findJob(model, id)!
    expect(job).toMatchObject({ status: 'queued', attemptCount, payload })
    expect(lease).toBeGreaterThan(job.lease)
    startJob(model, id, lease, worker.id)
  }
}

/** One of the ways a run can end, as the worker decides it. */
function ending(program: Program, job: ModelJob, lease: number, how: number, delayMs: number): Transition {
  const run: RunFacts = { ...job, lease: lease as LeaseNumber } // one that the store has minted
  const later = delayMs === 0 ? 0 : freshDelay(program, delayMs)
  const outcomes: readonly Outcome[] = [
    { kind: 'done', result: null },
    { kind: 'done', result: '1' },
    { kind: 'retry-after', delayMs: later, reason: 'failed' },
    { kind: 'retry-after', delayMs: 0, reason: 'failed' },
    { kind: 'fail', error: new Error('for good') },
    { kind: 'snooze', delayMs: later, reason: 'later' },
    { kind: 'release', reason: 'stopping' },
    { kind: 'returned' },
    { kind: 'deferred', waitMs: freshDelay(program, delayMs + 1) },
    { kind: 'cancel', reason: 'not wanted' },
  ]
  return ended(run, pickFrom(outcomes, how)!)
}

function onJob(
  name: string,
  decide: (job: ModelJob) => readonly Transition[],
  among: (job: ModelJob) => boolean = () => true,
): fc.Arbitrary<Command> {
  return dice.map((which) =>
    command(`${name}(${which})`, async (program, store) => {
      const job = pickFrom(program.model.jobs.filter(among), which)
      if (job !== undefined) await applyBoth(program, store, decide(job))
    }),
  )
}

async function die(program: Program, { backend }: Store, who: number): Promise<void> {
  const worker = pickFrom(
    program.workers.filter(({ alive }) => alive),
    who,
  )!
  const { beat } = (await backend.workers.list()).find(({ id }) => id === worker.id)!
  expect(await backend.workers.declareDead([{ id: worker.id, beat }])).toEqual([worker.id])
  worker.alive = false
  await hire(program, backend)
}

async function expireDue(program: Program, store: Store): Promise<void> {
  const due = await store.backend.jobs.due('expired', 1_000)
  const dead = program.workers.filter(({ alive }) => !alive).map(({ id }) => id)
  const lost = runningJobs(program).filter(({ worker }) => worker !== null && dead.includes(worker))
  expect(due.map(({ job }) => job.id).sort()).toEqual(lost.map(({ id }) => id).sort())
  for (const { job } of due) {
    const decided = decideExpiry(job, POLICY, () => 0)
    const delayed = decided.edge === 'expire' && job.crashCount > 0
    const later = { to: 'scheduled', delayMs: freshDelay(program, 400) } as const
    await applyBoth(program, store, [delayed ? { ...decided, ...later } : decided])
  }
}

async function settleOrphans(program: Program, store: Store): Promise<void> {
  const due = await store.backend.jobs.due('orphaned', 2)
  await applyBoth(
    program,
    store,
    due.map(({ job, orphan }) => decideOrphan(job, orphan!)),
  )
}

async function cancelBatchJobs(program: Program, store: Store): Promise<void> {
  const due = await store.backend.jobs.due('batch-cancelled', 2)
  await applyBoth(
    program,
    store,
    due.flatMap(({ job }) => decideCancel(job.id, 'batch cancelled')),
  )
}

async function configure({ model }: Program, { backend }: Store, concurrency: number, wanted: number): Promise<void> {
  // Whoever is due goes first, so that only those who waited for the limits are left to go on.
  await backend.jobs.promote(1_000)
  promoteDue(model, 1_000)
  // Which key goes first when several have waiters is open.
  const keys = new Set(model.jobs.filter((job) => job.waitsFor === 'key-slot').map((job) => job.limitKey))
  const perKey = keys.size > 1 ? queueOf(model, 'tight').perKey : wanted
  const limits = { concurrency, rate: null, perKeyConcurrency: perKey, perKeyRate: null }
  expect(await backend.queues.configure('tight', { limits })).toMatchObject({ limits })
  Object.assign(queueOf(model, 'tight'), { concurrency, perKey })
  await backend.jobs.promote(1_000)
  openGates(model, 'tight')
}
