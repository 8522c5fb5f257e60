// Every edge of core/edges.ts: what it changes in the job, and that doing it twice is harmless.
import { expect } from 'vitest'
import { EDGES, isLegal } from '../../src/core/edges.ts'
import type { EdgeName } from '../../src/core/edges.ts'
import {
  decideCancel,
  decideMarkReplayed,
  decideOrphan,
  decideRemove,
  decideReplay,
  decideReport,
} from '../../src/core/decide.ts'
import { isFinal } from '../../src/core/job.ts'
import type { ClaimedJob, JobId, StoredJob } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { dump } from './dump.ts'
import * as outcomes from './outcomes.ts'
import { after, place } from './world.ts'
import type { Setup, TestWorker, World } from './world.ts'

interface EdgeCase {
  readonly edge: EdgeName
  /** When two ways of one edge are worth a test. */
  readonly variant?: string
  /** Brings a job to where the edge starts, and answers the decision. */
  readonly prepare: (world: World, worker: TestWorker) => Promise<Transition>
  readonly becomes: Partial<StoredJob>
  /** What a repetition says; `already` unless the change leaves the job where it was. */
  readonly again?: 'applied' | 'missing'
}

const running = (decide: (run: ClaimedJob) => Transition): EdgeCase['prepare'] =>
  async function prepare(world, worker) {
    await world.addOne()
    return decide(await worker.claimOne())
  }

const waiting = (decide: (id: JobId) => Transition): EdgeCase['prepare'] =>
  async function prepare(world) {
    return decide(await world.addOne())
  }

const dead = (decide: (id: JobId) => Transition): EdgeCase['prepare'] =>
  async function prepare(world, worker) {
    await world.addOne()
    const run = await worker.claimOne()
    await world.apply(outcomes.failed(run))
    return decide(run.id)
  }

const orphan = (policy: 'fail' | 'cancel'): EdgeCase['prepare'] =>
  async function prepare(world, worker) {
    const parent = await world.addOne()
    await world.addOne({ dependsOn: [after(parent, policy)] })
    await world.apply(outcomes.failed(await worker.claimOne()))
    const due = (await world.jobs.due('orphaned', 10))[0]!
    return decideOrphan(due.job, due.orphan!)
  }

const CASES: readonly EdgeCase[] = [
  {
    edge: 'complete',
    prepare: running((run) => outcomes.completed(run, '{"sent":true}')),
    becomes: { status: 'completed', attemptCount: 1, result: '{"sent":true}', waitsFor: null },
  },
  {
    edge: 'retry',
    variant: 'later',
    prepare: running((run) => outcomes.retried(run, 500)),
    becomes: { status: 'scheduled', attemptCount: 1, waitsFor: 'retry', finishedAtMs: null },
  },
  {
    edge: 'retry',
    variant: 'at once',
    prepare: running(outcomes.retried),
    becomes: { status: 'queued', attemptCount: 1, waitsFor: null },
  },
  { edge: 'fail', prepare: running(outcomes.failed), becomes: { status: 'failed', attemptCount: 1, waitsFor: null } },
  {
    edge: 'snooze',
    prepare: running((run) => outcomes.snoozed(run, 500)),
    becomes: { status: 'scheduled', attemptCount: 0, waitsFor: 'snooze' },
  },
  {
    edge: 'release',
    prepare: running(outcomes.released),
    becomes: { status: 'queued', attemptCount: 0, waitsFor: null },
  },
  {
    edge: 'return',
    prepare: running(outcomes.returned),
    becomes: { status: 'queued', attemptCount: 0, waitsFor: null },
  },
  {
    edge: 'defer',
    prepare: running((run) => outcomes.deferred(run, 500)),
    becomes: { status: 'scheduled', attemptCount: 0, waitsFor: 'rate' },
  },
  {
    edge: 'cancel',
    prepare: waiting((id) => decideCancel(id, 'no')[0]),
    becomes: { status: 'cancelled', attemptCount: 0 },
  },
  {
    edge: 'cancel',
    variant: 'of a scheduled job',
    prepare: async (world) => decideCancel(await world.addOne({ delayMs: 500 }), 'no')[0],
    becomes: { status: 'cancelled', attemptCount: 0, waitsFor: null },
  },
  {
    edge: 'cancel',
    variant: 'of a blocked job',
    prepare: async (world) => {
      const parent = await world.addOne()
      return decideCancel(await world.addOne({ dependsOn: [after(parent)] }), 'no')[0]
    },
    becomes: { status: 'cancelled', attemptCount: 0, waitsFor: null },
  },
  {
    edge: 'requestCancel',
    prepare: running((run) => decideCancel(run.id, 'no')[1]),
    becomes: { status: 'running', cancelRequested: true },
    again: 'applied',
  },
  {
    edge: 'cancelRunning',
    prepare: running(outcomes.cancelledByHandler),
    becomes: { status: 'cancelled', attemptCount: 1 },
  },
  {
    edge: 'cancelUnstarted',
    prepare: running((run) => outcomes.returned(run).ifCancelRequested!),
    becomes: { status: 'cancelled', attemptCount: 0 },
  },
  {
    edge: 'expire',
    prepare: running((run) => outcomes.expired(run, 500)),
    becomes: { status: 'scheduled', attemptCount: 1, crashCount: 1, waitsFor: 'retry' },
  },
  {
    edge: 'expireForGood',
    prepare: running(outcomes.expiredForGood),
    becomes: { status: 'failed', attemptCount: 1, crashCount: 1 },
  },
  { edge: 'failOrphan', prepare: orphan('fail'), becomes: { status: 'failed', attemptCount: 0, waitsFor: null } },
  {
    edge: 'cancelOrphan',
    prepare: orphan('cancel'),
    becomes: { status: 'cancelled', attemptCount: 0, waitsFor: null },
  },
  {
    edge: 'replay',
    prepare: dead((id) => decideReplay(id, 'ada')),
    becomes: { status: 'queued', attemptCount: 0, crashCount: 0, replayedBy: 'ada', finishedAtMs: null },
  },
  {
    edge: 'markReplayed',
    prepare: dead((id) => decideMarkReplayed(id, '01890000-0000-7000-8000-000000000001' as JobId, 'ada')),
    becomes: { status: 'failed', replayedBy: 'ada', replayedInto: '01890000-0000-7000-8000-000000000001' as JobId },
  },
  {
    edge: 'report',
    prepare: running((run) => decideReport(run, { progress: '42' })),
    becomes: { status: 'running', progress: '42' },
    again: 'applied',
  },
]

/** Made by other calls than `apply`: insert, promote, the gates, claim, and the relay of the hybrid. */
const ELSEWHERE: readonly EdgeName[] = [
  'enqueue',
  'replace',
  'promote',
  'admit',
  'withhold',
  'claim',
  'dispatch',
  'undispatch',
  'remove',
]

export function applyEdges({ test }: Setup): void {
  for (const { edge, variant, prepare, becomes, again = 'already' } of CASES) {
    const title = variant === undefined ? edge : `${edge} (${variant})`

    test(`edge ${title} changes the job as the table says`, async (world) => {
      const transition = await prepare(world, await world.worker())
      const before = await world.get(transition.jobId)
      await world.clock.advance(30)
      expect(await world.apply(transition)).toEqual(['applied'])
      const job = await world.get(transition.jobId)
      expect({ ...job, status: place(job.status) }).toMatchObject(becomes)
      expect(isLegal(edge, before.status, job.status)).toBe(true)
      expect(job).toMatchObject({
        enqueuedAtMs: before.enqueuedAtMs,
        priority: before.priority,
        payload: before.payload,
      })
      const nowMs = world.clock.nowMs()
      if (job.status === 'scheduled') expect(job.runAtMs).toBe(nowMs + 500)
      if (job.status !== before.status)
        expect(job.finishedAtMs).toBe(['completed', 'failed', 'cancelled'].includes(job.status) ? nowMs : null)
      if (isFinal(job.status)) expect(job.worker).toBe(before.worker)
    })

    test(`edge ${title} may be repeated after a lost reply`, async (world) => {
      const transition = await prepare(world, await world.worker())
      await world.apply(transition)
      const before = await dump(world.backend)
      expect(await world.apply(transition, transition)).toEqual([again, again])
      const after = await dump(world.backend)
      expect(after).toEqual(before)
    })
  }

  test('edge remove deletes the job and all that hangs on it, in every status but running', async (world) => {
    const worker = await world.worker()
    const parent = await world.addOne({ delayMs: 10 })
    const ids = [parent, await world.addOne({ dependsOn: [after(parent)] })]
    for (const end of [outcomes.completed, outcomes.failed, outcomes.cancelledByHandler]) {
      ids.push(await world.addOne())
      await world.apply(end(await worker.claimOne()))
    }
    ids.push(await world.addOne())
    for (const id of ids.toReversed()) {
      const [remove] = decideRemove(id)
      expect(await world.apply(remove, remove)).toEqual(['applied', 'missing'])
      expect(await world.query.get([id])).toEqual([null])
      expect(await world.query.attempts(id)).toEqual([])
      expect(await world.query.logs(id)).toEqual([])
    }
    expect((await dump(world.backend)).jobs).toEqual({})
  })

  test('every edge of the table is checked', async () => {
    const checked = new Set<EdgeName>([...CASES.map(({ edge }) => edge), ...ELSEWHERE])
    expect(Object.keys(EDGES).filter((edge) => !checked.has(edge as EdgeName))).toEqual([])
  })
}
