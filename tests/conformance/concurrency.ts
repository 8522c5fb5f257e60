// Many callers at once: no job is handed out twice, none is lost, counters stay true.
import { expect } from 'vitest'
import { decideReplay } from '../../src/core/decide.ts'
import type { ClaimedJob, JobId } from '../../src/core/job.ts'
import type { Verdict } from '../../src/core/transition.ts'
import { completed, failed, retried, returned } from './outcomes.ts'
import { NO_LIMITS, QUEUE, after, unique } from './world.ts'
import type { Setup, TestWorker, World } from './world.ts'

const WORKERS = 6

export function concurrency({ test }: Setup): void {
  test('D1 claims at once never hand out a job twice and leave none behind', async (world) => {
    const ids = await world.add(...Array.from({ length: 300 }, () => ({})))
    const crew = await hire(world)
    const claims = await Promise.all(
      crew.flatMap((worker) => Array.from({ length: 10 }, () => worker.ask({ limit: 5 }))),
    )
    // Calls of one worker may overtake each other; then the late one is superseded and takes nothing.
    const taken = claims.flatMap(({ jobs }) => jobs.map(({ id }) => id))
    expect(new Set(taken).size).toBe(taken.length)
    const rest = await world.drain(crew[0]!)
    expect([...taken, ...rest].sort()).toEqual([...ids].sort())
  })

  test('D1 workers that claim, end, retry and return at once finish every job exactly once', async (world) => {
    const ids = await world.add(
      ...Array.from({ length: 240 }, (_, index) => ({ maxAttempts: 50, priority: index % 3 === 0 ? 10 : 100 })),
    )
    const crew = await hire(world)
    const ended: JobId[] = []
    const leases = new Set<string>()
    await Promise.all(
      crew.map(async (worker, index) => {
        for (let round = 0; round < 400; round++) {
          const runs = await worker.claim(7)
          if (runs.length === 0 && (await isDrained(world))) return
          const settled = runs.map((run, at) => ending(run, index + round + at))
          const verdicts = await world.jobs.apply(settled)
          expect(verdicts).toEqual(runs.map(() => 'applied' satisfies Verdict))
          for (const run of runs) {
            expect(leases.has(`${run.id}:${run.lease}`)).toBe(false)
            leases.add(`${run.id}:${run.lease}`)
          }
          ended.push(...settled.filter(({ to }) => to === 'completed').map(({ jobId }) => jobId))
        }
      }),
    )
    expect([...ended].sort()).toEqual([...ids].sort())
    expect((await world.query.counts(QUEUE))[0]?.counts).toMatchObject({ completed: 240, running: 0, queued: 0 })
  })

  test('D1 of many endings of one run at once exactly one is applied', async (world) => {
    await world.addOne()
    const run = await (await world.worker()).claimOne()
    const endings = [completed(run), failed(run), retried(run, 10), returned(run), completed(run), failed(run)]
    const verdicts = (await Promise.all(endings.map((transition) => world.jobs.apply([transition])))).flat()
    expect(verdicts.filter((verdict) => verdict === 'applied')).toHaveLength(1)
    expect(verdicts.every((verdict) => ['applied', 'already', 'stale'].includes(verdict))).toBe(true)
  })

  test('D9 of many inserts of one key at once exactly one goes in, and all name it', async (world) => {
    const results = (await Promise.all(Array.from({ length: 20 }, () => world.accept(unique('k'))))).flat()
    expect(results.filter(({ outcome }) => outcome === 'inserted')).toHaveLength(1)
    expect(new Set(results.map(({ id }) => id)).size).toBe(1)
  })

  test('J2 one insert sent many times at once is one job', async (world) => {
    const jobs = [world.job(), world.job()]
    const replies = await Promise.all(Array.from({ length: 10 }, () => world.jobs.insert(jobs)))
    const outcomes = replies.flatMap((reply) => (reply.ok ? reply.results.map(({ outcome }) => outcome) : []))
    expect(outcomes.filter((outcome) => outcome === 'inserted')).toHaveLength(2)
    expect(await world.drain(await world.worker())).toHaveLength(2)
  })

  test('D7 of many replays of one dead letter at once one is applied', async (world) => {
    const id = await world.addOne()
    await world.apply(failed(await (await world.worker()).claimOne()))
    const verdicts = (await Promise.all(Array.from({ length: 10 }, () => world.apply(decideReplay(id, 'ada'))))).flat()
    expect(verdicts.filter((verdict) => verdict === 'applied')).toHaveLength(1)
    expect(await world.drain(await world.worker())).toEqual([id])
  })

  test('T3 jobs of a batch that end at once fire its callbacks once', async (world) => {
    const complete = world.job({ queue: 'callbacks' })
    const batch = await world.batch({ callbacks: { complete, success: null, failure: null } })
    await world.add(...Array.from({ length: 60 }, () => ({ batch })))
    const runs = await (await world.worker()).claim(60)
    await Promise.all([world.batches.seal(batch), ...runs.map((run) => world.apply(completed(run)))])
    expect((await world.batches.get(batch))?.counts).toEqual({
      total: 60,
      pending: 0,
      completed: 60,
      failed: 0,
      cancelled: 0,
    })
    expect((await world.query.list({ queue: 'callbacks' }, { limit: 10 })).items).toHaveLength(1)
  })

  test('T4 parents that end at once release their child once', async (world) => {
    const parents = await world.add(...Array.from({ length: 40 }, () => ({})))
    const child = await world.addOne({ dependsOn: parents.map((id) => after(id)) })
    const worker = await world.worker()
    const runs = await worker.claim(40)
    await Promise.all(runs.map((run) => world.apply(completed(run))))
    expect(await world.drain(worker)).toEqual([child])
  })

  test('T5 and T6 groups and slots hold while many workers claim and end at once', async (world) => {
    await world.queues.configure(QUEUE, { limits: { ...NO_LIMITS, concurrency: 4, perKeyConcurrency: 2 } })
    const fields = Array.from({ length: 90 }, (_, index) => ({
      group: index % 2 === 0 ? `g${index % 5}` : undefined,
      key: `k${index % 3}`,
    }))
    const ids = await world.add(
      ...fields.map(({ group, key }) => ({ limitKey: key, ...(group !== undefined && { group }) })),
    )
    const crew = await hire(world)
    const running = new Map<JobId, ClaimedJob>()
    const started: JobId[] = []
    await Promise.all(
      crew.map(async (worker) => {
        for (let round = 0; round < 500 && started.length < ids.length; round++) {
          const claimed = await worker.claim(2)
          for (const run of claimed) {
            running.set(run.id, run)
            started.push(run.id)
          }
          // The others claim meanwhile, so what is checked is what all of them hold.
          await Promise.resolve()
          expectWithinLimits([...running.values()])
          for (const run of claimed) {
            running.delete(run.id)
            await world.apply(completed(run))
          }
        }
      }),
    )
    expect([...started].sort()).toEqual([...ids].sort())
    for (let group = 0; group < 5; group++) {
      const inGroup = ids.filter((_, index) => fields[index]?.group === `g${group}`)
      expect(started.filter((id) => inGroup.includes(id))).toEqual(inGroup)
    }
  })
}

function hire(world: World): Promise<readonly TestWorker[]> {
  return Promise.all(Array.from({ length: WORKERS }, () => world.worker()))
}

function ending(run: ClaimedJob, dice: number) {
  if (run.attemptCount < 2 && dice % 3 === 0) return retried(run)
  return dice % 7 === 0 ? returned(run) : completed(run)
}

async function isDrained(world: World): Promise<boolean> {
  const counts = (await world.query.counts(QUEUE))[0]!.counts
  return counts.queued + counts.dispatched + counts.running === 0
}

function expectWithinLimits(running: readonly ClaimedJob[]): void {
  expect(running.length).toBeLessThanOrEqual(4)
  const groups = running.map(({ group }) => group).filter((group) => group !== null)
  expect(new Set(groups).size).toBe(groups.length)
  for (const { limitKey } of running) {
    expect(running.filter((other) => other.limitKey === limitKey).length).toBeLessThanOrEqual(2)
  }
}
