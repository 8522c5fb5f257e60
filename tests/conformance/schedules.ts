// Recurring jobs: one job per (schedule, tick), with many schedulers and lost replies.
import { expect } from 'vitest'
import { cronRecurrence, everyRecurrence } from '../../src/core/cron.ts'
import type { NewJob } from '../../src/core/job.ts'
import type { FireRequest, ScheduleSettings } from '../../src/store/schedule-store.ts'
import { dump } from './dump.ts'
import { completed } from './outcomes.ts'
import { QUEUE } from './world.ts'
import type { Setup, World } from './world.ts'

const MINUTE = 60_000

export function schedules({ test }: Setup): void {
  test('T2 a stored schedule shows what it was given and when it runs next', async (world) => {
    const settings = nightly(world)
    await world.schedules.upsert([settings])
    const { firstRunMs, ...shown } = settings
    expect(await world.schedules.get('nightly')).toEqual({
      ...shown,
      nextRunMs: firstRunMs,
      lastRunMs: null,
      lastJob: null,
      createdAtMs: world.clock.nowMs(),
      version: expect.any(Number),
    })
    expect(await world.schedules.get('unknown')).toBeNull()
  })

  test('T2 an upsert with the same recurrence changes the rest and keeps the place in time', async (world) => {
    await world.schedules.upsert([nightly(world)])
    const before = await world.schedules.get('nightly')
    await world.clock.advance(10)
    await world.schedules.upsert([
      nightly(world, { payload: '2', priority: 3, firstRunMs: world.clock.nowMs() + 5 * MINUTE }),
    ])
    expect(await world.schedules.get('nightly')).toMatchObject({
      payload: '2',
      priority: 3,
      nextRunMs: before?.nextRunMs,
      createdAtMs: before?.createdAtMs,
    })
  })

  test('T2 an upsert with another recurrence starts a new place in time', async (world) => {
    await world.schedules.upsert([nightly(world)])
    const firstRunMs = world.clock.nowMs() + 7 * MINUTE
    await world.schedules.upsert([nightly(world, { recurrence: cronRecurrence('0 3 * * *'), firstRunMs })])
    expect(await world.schedules.get('nightly')).toMatchObject({ nextRunMs: firstRunMs, recurrence: { kind: 'cron' } })
  })

  test('T2 only enabled schedules whose time has come are due, with the clock of the store', async (world) => {
    await world.schedules.upsert([
      nightly(world),
      nightly(world, { name: 'off', enabled: false }),
      nightly(world, { name: 'never', firstRunMs: null }),
    ])
    expect((await world.schedules.due(10)).schedules).toEqual([])
    await world.clock.advance(MINUTE)
    const due = await world.schedules.due(10)
    expect(due.nowMs).toBe(world.clock.nowMs())
    expect(due.schedules.map(({ name }) => name)).toEqual(['nightly'])
  })

  test('T2 due answers at most its limit', async (world) => {
    await world.schedules.upsert([1, 2, 3].map((no) => nightly(world, { name: `s${no}` })))
    await world.clock.advance(MINUTE)
    expect((await world.schedules.due(2)).schedules).toHaveLength(2)
    const clockAlone = { nowMs: world.clock.nowMs(), schedules: [], nextDueInMs: null }
    expect(await world.schedules.due(0)).toEqual(clockAlone)
  })

  test('T2 a fired tick inserts its job and moves the schedule on, in one step', async (world) => {
    const request = await dueTick(world)
    expect(await world.schedules.fire(request)).toBe('fired')
    const job = await world.get(request.jobs[0]!.id)
    expect(job).toMatchObject({ schedule: { name: 'nightly', tickMs: request.expectedRunMs }, queue: QUEUE })
    expect(await world.schedules.get('nightly')).toMatchObject({
      nextRunMs: request.nextRunMs,
      lastRunMs: expect.any(Number),
      lastJob: job.id,
    })
    expect((await world.schedules.due(10)).schedules).toEqual([])
    expect(await world.drain(await world.worker())).toEqual([job.id])
  })

  test('T2 a tick is fired once: another scheduler, or a repeated call, is stale', async (world) => {
    const request = await dueTick(world)
    await world.schedules.fire(request)
    const before = await dump(world.backend)
    expect(await world.schedules.fire(request)).toBe('stale')
    expect(await world.schedules.fire({ ...request, jobs: [tickJob(world, request.expectedRunMs)] })).toBe('stale')
    expect(await dump(world.backend)).toEqual(before)
  })

  test('T2 of many schedulers at once exactly one fires the tick', async (world) => {
    const request = await dueTick(world)
    const replies = await Promise.all(
      Array.from({ length: 12 }, () =>
        world.schedules.fire({ ...request, jobs: [tickJob(world, request.expectedRunMs)] }),
      ),
    )
    expect(replies.filter((reply) => reply === 'fired')).toHaveLength(1)
    expect(replies.filter((reply) => reply === 'stale')).toHaveLength(11)
    expect((await world.query.list({ schedule: 'nightly' }, { limit: 50 })).items).toHaveLength(1)
  })

  test('T2 several missed ticks are fired in one step, oldest first', async (world) => {
    const request = await dueTick(world)
    const jobs = [0, 1, 2].map((no) => tickJob(world, request.expectedRunMs + no))
    expect(await world.schedules.fire({ ...request, jobs })).toBe('fired')
    expect(await world.drain(await world.worker())).toEqual(jobs.map(({ id }) => id))
    expect((await world.schedules.get('nightly'))?.lastJob).toBe(jobs[2]!.id)
  })

  test('T2 skipped ticks move the schedule on without a job', async (world) => {
    const request = await dueTick(world)
    expect(await world.schedules.fire({ ...request, jobs: [] })).toBe('skipped')
    expect(await world.schedules.get('nightly')).toMatchObject({ nextRunMs: request.nextRunMs, lastJob: null })
    expect((await dump(world.backend)).jobs).toEqual({})
  })

  test('T2 overlap skip: no job while the last one is live, one again when it has ended', async (world) => {
    const request = { ...(await dueTick(world)), unlessLive: true }
    expect(await world.schedules.fire(request)).toBe('fired')
    const worker = await world.worker()
    const run = await worker.claimOne()
    const second = {
      ...request,
      expectedRunMs: request.nextRunMs!,
      nextRunMs: request.nextRunMs! + MINUTE,
      jobs: [tickJob(world, 2)],
    }
    expect(await world.schedules.fire(second)).toBe('skipped')
    expect((await world.schedules.get('nightly'))?.nextRunMs).toBe(second.nextRunMs)
    expect(await world.statusOf(second.jobs[0]!.id)).toEqual(['gone'])
    await world.apply(completed(run))
    const third = {
      ...second,
      expectedRunMs: second.nextRunMs,
      nextRunMs: second.nextRunMs + MINUTE,
      jobs: [tickJob(world, 3)],
    }
    expect(await world.schedules.fire(third)).toBe('fired')
  })

  test('T2 overlap allow: a tick fires although the last job is live', async (world) => {
    const request = await dueTick(world)
    await world.schedules.fire(request)
    const second = { ...request, expectedRunMs: request.nextRunMs!, nextRunMs: null, jobs: [tickJob(world, 2)] }
    expect(await world.schedules.fire(second)).toBe('fired')
    expect(await world.schedules.get('nightly')).toMatchObject({ nextRunMs: null })
  })

  test('T2 a schedule is paused and resumed at the time given', async (world) => {
    await world.schedules.upsert([nightly(world)])
    expect(await world.schedules.setEnabled('nightly', false, null)).toBe(true)
    await world.clock.advance(2 * MINUTE)
    expect((await world.schedules.due(10)).schedules).toEqual([])
    const nextRunMs = world.clock.nowMs() + 5
    expect(await world.schedules.setEnabled('nightly', true, nextRunMs)).toBe(true)
    expect(await world.schedules.get('nightly')).toMatchObject({ enabled: true, nextRunMs })
    expect(await world.schedules.setEnabled('unknown', true, null)).toBe(false)
  })

  test('T2 a removed schedule is gone, its jobs stay, and its tick cannot fire', async (world) => {
    const request = await dueTick(world)
    await world.schedules.fire(request)
    expect(await world.schedules.remove('nightly')).toBe(true)
    expect(await world.schedules.remove('nightly')).toBe(false)
    expect(await world.schedules.list()).toEqual([])
    expect(await world.statusOf(request.jobs[0]!.id)).toEqual(['queued'])
    expect(await world.schedules.fire({ ...request, expectedRunMs: request.nextRunMs! })).toBe('stale')
  })

  test('T2 the version of a schedule rises with every change', async (world) => {
    const versions: number[] = []
    const look = async () => versions.push((await world.schedules.get('nightly'))!.version)
    const request = await dueTick(world)
    await look()
    await world.schedules.fire(request)
    await look()
    await world.schedules.setEnabled('nightly', false, null)
    await look()
    await world.schedules.upsert([nightly(world, { payload: '9' })])
    await look()
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
  })
}

function nightly(world: World, change: Partial<ScheduleSettings> = {}): ScheduleSettings {
  return {
    name: 'nightly',
    recurrence: everyRecurrence(MINUTE, 0),
    job: 'report',
    queue: QUEUE,
    payload: '{}',
    priority: null,
    maxAttempts: null,
    timeoutMs: 1_000,
    tags: ['report'],
    meta: '{"m":1}',
    group: 'reports',
    limitKey: 'db',
    misfire: 'fire-once',
    overlap: 'allow',
    enabled: true,
    firstRunMs: world.clock.nowMs() + MINUTE,
    ...change,
  }
}

function tickJob(world: World, tickMs: number): NewJob {
  return world.job({ name: 'report', schedule: { name: 'nightly', tickMs } })
}

/** The schedule is due; the request that fires it with one job. */
async function dueTick(world: World): Promise<FireRequest> {
  await world.schedules.upsert([nightly(world)])
  await world.clock.advance(MINUTE)
  const expectedRunMs = (await world.schedules.due(1)).schedules[0]!.nextRunMs!
  return {
    schedule: 'nightly',
    expectedRunMs,
    nextRunMs: expectedRunMs + MINUTE,
    jobs: [tickJob(world, expectedRunMs)],
    unlessLive: false,
  }
}
