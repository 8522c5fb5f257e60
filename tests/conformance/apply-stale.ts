// Fencing: whatever a run that lost its job sends, under whatever edge, is refused without a trace.
import { expect } from 'vitest'
import { decideReport } from '../../src/core/decide.ts'
import type { ClaimedJob } from '../../src/core/job.ts'
import { EDGES } from '../../src/core/edges.ts'
import type { EdgeName } from '../../src/core/edges.ts'
import type { Transition, Verdict } from '../../src/core/transition.ts'
import { dump } from './dump.ts'
import * as outcomes from './outcomes.ts'
import type { Setup, World } from './world.ts'

const LEASED: Readonly<Partial<Record<EdgeName, (run: ClaimedJob) => Transition>>> = {
  report: (run) =>
    decideReport(run, {
      progress: '99',
      logLines: [{ atMs: 0, attempt: 1, level: 'info', message: 'stale' }],
      logFrom: 0,
    }),
  complete: (run) => outcomes.completed(run, '"stale"'),
  retry: (run) => outcomes.retried(run, 5),
  fail: (run) => outcomes.failed(run),
  snooze: (run) => outcomes.snoozed(run, 5),
  release: outcomes.released,
  return: outcomes.returned,
  defer: (run) => outcomes.deferred(run, 5),
  cancelRunning: outcomes.cancelledByHandler,
  cancelUnstarted: (run) => outcomes.returned(run).ifCancelRequested!,
  expire: (run) => outcomes.expired(run, 5),
  expireForGood: outcomes.expiredForGood,
}

export function applyStale({ test }: Setup): void {
  for (const [edge, decide] of Object.entries(LEASED)) {
    test(`D1 a stale worker cannot ${edge} a job that was claimed again`, async (world) => {
      const { stale, current } = await claimedTwice(world)
      const before = await dump(world.backend)
      expect(refusals(edge)).toContain((await world.apply(decide(stale)))[0])
      expect(await dump(world.backend)).toEqual(before)
      expect(await world.apply(outcomes.completed(current, '"ours"'))).toEqual(['applied'])
      expect((await world.get(current.id)).result).toBe('"ours"')
    })

    test(`D1 a stale worker cannot ${edge} a job that was expired and waits`, async (world) => {
      const { stale } = await expiredOnce(world)
      const before = await dump(world.backend)
      // Its own expiry was applied; everything else is void.
      expect(await world.apply(decide(stale))).toEqual([edge === 'expire' ? 'already' : 'stale'])
      expect(await dump(world.backend)).toEqual(before)
    })

    test(`D1 a stale worker cannot ${edge} a job that has ended`, async (world) => {
      const { stale, current } = await claimedTwice(world)
      await world.apply(outcomes.completed(current, '"ours"'))
      const before = await dump(world.backend)
      expect(refusals(edge)).toContain((await world.apply(decide(stale)))[0])
      expect(await dump(world.backend)).toEqual(before)
    })
  }

  test('D1 a late change is not taken for another one of the same run', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const first = await worker.claimOne()
    await world.apply(outcomes.released(first))
    await world.apply(outcomes.returned(await worker.claimOne()))
    expect(await world.apply(outcomes.snoozed(first, 5))).toEqual(['stale'])
  })

  test('D1 every edge that needs a lease is tried with a stale one', async () => {
    const leased = Object.entries(EDGES).filter(([edge, { lease }]) => lease && edge !== 'undispatch')
    expect(leased.map(([edge]) => edge).sort()).toEqual(Object.keys(LEASED).sort())
  })

  test('D1 a late result of a run that nobody took over yet still counts', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    await world.kill(worker)
    expect(await world.apply(outcomes.completed(run))).toEqual(['applied'])
    expect(await world.jobs.due('expired', 10)).toEqual([])
  })
}

/** The first run was expired by maintenance; the job waits again, behind a delay. */
async function expiredOnce(world: World): Promise<{ readonly stale: ClaimedJob }> {
  await world.addOne({ maxAttempts: 9 })
  const worker = await world.worker()
  const stale = await worker.claimOne()
  await world.kill(worker)
  expect(await world.apply(outcomes.expired(stale, 1_000))).toEqual(['applied'])
  return { stale }
}

/** Two runs of one job, of two workers; only the second owns it. */
async function claimedTwice(world: World): Promise<{ readonly stale: ClaimedJob; readonly current: ClaimedJob }> {
  const { stale } = await expiredOnce(world)
  await world.clock.advance(1_000)
  await world.jobs.promote(10)
  return { stale, current: await (await world.worker()).claimOne() }
}

/** The expiry of that lease did happen once: a store that remembers it may say so, others call it stale. */
function refusals(edge: string): readonly Verdict[] {
  return edge === 'expire' ? ['stale', 'already'] : ['stale']
}
