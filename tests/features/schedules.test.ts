// Delayed jobs in their time-ordered place, and recurring jobs.
import { describe, expect, test } from 'vitest'
import { defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'

const tick = defineJob({ name: 'tick', queue: 'ticks', run: ({ input }: RunContext<unknown>) => input })

async function ticking(misfire?: 'skip' | 'fire-once' | { readonly catchUp: number }) {
  const { clock, mill } = await setup([tick])
  const worker = await mill.work()
  await mill.schedules.upsert('s', {
    job: tick,
    input: 1,
    cron: '*/10 * * * *',
    ...(misfire !== undefined && { misfire }),
  })
  const moments = async () => {
    const { items } = await mill.jobs.list({ schedule: 's' }, { limit: 200 })
    return items.map(({ schedule }) => schedule!.tick.toISOString().slice(11, 16)).toSorted()
  }
  return { clock, mill, worker, moments }
}

describe('memory', () => {
  test('T1 ten thousand future jobs do not add a call to a claim, nor delay it', async () => {
    const costs: number[] = []
    for (const future of [0, 10_000]) {
      const { clock, mill, calls } = await setup([tick])
      if (future > 0) {
        await mill.enqueueMany(Array.from({ length: future }, (_, n) => [tick, n, { delay: 3_600_000 + n }] as const))
      }
      await mill.work({ concurrency: 10 })
      await clock.advance(1_000)
      const before = calls.get('jobs.claim') ?? 0
      const startMs = clock.nowMs()
      const handles = await mill.enqueueMany(Array.from({ length: 500 }, (_, n) => [tick, n] as const))
      for (const handle of handles) await clock.during(handle.result())
      expect(clock.nowMs() - startMs).toBeLessThanOrEqual(50)
      costs.push((calls.get('jobs.claim') ?? 0) - before)
    }
    expect(costs[1]).toBeLessThanOrEqual(costs[0]! + 2)
  })

  test('T1 many jobs that come due together are promoted in bounded batches, in order, and all run', async () => {
    const order: number[] = []
    const ordered = defineJob({ name: 'ordered', run: ({ input }: RunContext<number>) => void order.push(input) })
    const { clock, mill, calls } = await setup([ordered])
    const startMs = clock.nowMs()
    const lines = Array.from({ length: 3_500 }, (_, n) => [ordered, n, { runAt: startMs + 60_000 + (n % 5) }] as const)
    await mill.enqueueMany(lines)
    await mill.work({ concurrency: 50 })
    await clock.advance(59_000)
    const before = calls.get('jobs.promote') ?? 0
    await clock.until(() => order.length === 3_500, 10_000)
    expect((calls.get('jobs.promote') ?? 0) - before).toBeGreaterThanOrEqual(4)
    expect(clock.nowMs() - startMs).toBeLessThan(62_000)
    expect(new Set(order).size).toBe(3_500)
  })

  test('T2 cron fires at its ticks in its time zone, with payload, priority and attempts', async () => {
    const { clock, mill } = await setup([tick])
    await mill.work()
    const schedule = await mill.schedules.upsert('daily', {
      job: tick,
      input: { n: 1 },
      cron: '30 9 * * *',
      timeZone: 'America/New_York',
      priority: 'high',
      attempts: 7,
    })
    expect(schedule.nextRunAt).toEqual(new Date('2030-01-01T14:30:00Z'))
    expect(await mill.schedules.preview('daily', 2)).toEqual([
      new Date('2030-01-01T14:30:00Z'),
      new Date('2030-01-02T14:30:00Z'),
    ])
    await clock.advance(Date.parse('2030-01-01T14:30:01Z') - clock.nowMs())
    const { items } = await mill.jobs.list({ schedule: 'daily' })
    expect(items).toMatchObject([
      { payload: { n: 1 }, priority: 50, maxAttempts: 7, status: 'completed', queue: 'ticks' },
    ])
    expect(await mill.schedules.get('daily')).toMatchObject({ lastRunAt: schedule.nextRunAt, lastJob: items[0]!.id })
  })

  test('T2 cron with seconds, and an interval whose first run is at once', async () => {
    const { clock, mill } = await setup([tick])
    await mill.work()
    await mill.schedules.upsert('often', { job: tick, cron: '*/15 * * * * *' })
    await mill.schedules.upsert('interval', { job: tick, every: '10m' })
    await clock.advance(1_000)
    const count = async (schedule: string) => (await mill.jobs.list({ schedule }, { limit: 200 })).items.length
    expect(await count('interval')).toBe(1)
    await clock.advance(60_000)
    expect(await count('often')).toBe(4)
    await clock.advance(600_000)
    expect(await count('interval')).toBe(2)
    // The same interval again, as after a deployment, keeps its rhythm.
    await mill.schedules.upsert('interval', { job: tick, every: '10m' })
    await clock.advance(1_000)
    expect(await count('interval')).toBe(2)
  })

  test('T2 with many schedulers each tick is one job', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const processes = []
    for (let index = 0; index < 4; index++) {
      // Every one of them believes to lead.
      const process = await startProcess(clock, backend, [tick], {
        around: async (what, call) => {
          const value = await call()
          return what === 'workers.lead' ? ({ held: true, holder: 'me', term: 1 } as typeof value) : value
        },
      })
      await process.mill.work()
      processes.push(process)
    }
    const { mill } = processes[0]!
    await mill.schedules.upsert('s', { job: tick, every: '2s' })
    await clock.advance(60_500)
    const { items } = await mill.jobs.list({ schedule: 's' }, { limit: 200 })
    const moments = items.map(({ schedule }) => schedule!.tick.getTime())
    expect(new Set(moments).size).toBe(moments.length)
    expect(moments.length).toBe(31)
    expect(items.every(({ attemptCount }) => attemptCount === 1)).toBe(true)
  })

  test('T2 missed ticks are skipped, fired once or caught up to a cap', async () => {
    for (const [misfire, late] of [
      ['skip', 0],
      ['fire-once', 1],
      [{ catchUp: 3 }, 3],
    ] as const) {
      const { clock, mill, worker, moments } = await ticking(misfire)
      await clock.during(worker.stop())
      await clock.advance(65 * 60_000)
      expect(await moments()).toEqual([])
      await mill.work()
      await clock.advance(2_000)
      expect((await moments()).length).toBe(late)
      await clock.advance(10 * 60_000)
      expect((await moments()).length).toBe(late + 1)
    }
  })

  test('T2 overlap skip: no tick fires while the job of an earlier one is not finished', async () => {
    for (const [overlap, expected] of [
      ['skip', 1],
      ['allow', 4],
    ] as const) {
      const end = gate()
      const slow = defineJob({ name: 'slow', timeout: '1h', run: () => end.opened })
      const { clock, mill } = await setup([slow])
      await mill.work()
      await mill.schedules.upsert('s', { job: slow, every: '1m', overlap })
      await clock.advance(3 * 60_000 + 1_000)
      expect((await mill.jobs.list({ schedule: 's' })).items.length).toBe(expected)
      end.open()
      await clock.advance(60_000)
      expect((await mill.jobs.list({ schedule: 's' })).items.length).toBe(expected + 1)
    }
  })

  test('T2 overlap skip holds while missed ticks are caught up', async () => {
    let [now, most] = [0, 0]
    const slow = defineJob({
      name: 'slow',
      async run() {
        most = Math.max(most, ++now)
        await new Promise<void>((resolve) => clock.timer(30_000, resolve))
        now -= 1
      },
    })
    const { clock, mill } = await setup([slow])
    const worker = await mill.work()
    await mill.schedules.upsert('s', { job: slow, cron: '*/10 * * * *', overlap: 'skip', misfire: { catchUp: 4 } })
    await clock.during(worker.stop())
    await clock.advance(65 * 60_000)
    await mill.work()
    await clock.advance(5 * 60_000)
    expect(most).toBe(1)
  })

  test('T2 pause stops the ticks, resume goes on with the next one, and nothing is made up for', async () => {
    const { clock, mill, moments } = await ticking()
    await clock.advance(10 * 60_000 + 1_000)
    await mill.schedules.pause('s')
    await clock.advance(35 * 60_000)
    expect(await moments()).toEqual(['12:10'])
    expect(await mill.schedules.get('s')).toMatchObject({ enabled: false })
    await mill.schedules.resume('s')
    await clock.advance(10 * 60_000)
    expect(await moments()).toEqual(['12:10', '12:50'])
  })

  test('T2 run now adds a job and leaves the rhythm; remove ends it; unknown names are typed errors', async () => {
    const { clock, mill, moments } = await ticking()
    const before = (await mill.schedules.get('s'))!.nextRunAt
    const extra = await mill.schedules.runNow('s')
    expect(await clock.during(extra.result())).toBe(1)
    expect((await mill.schedules.get('s'))!.nextRunAt).toEqual(before)
    await clock.advance(10 * 60_000 + 1_000)
    expect((await moments()).length).toBe(2)
    expect(await mill.schedules.remove('s')).toBe(true)
    expect(await mill.schedules.remove('s')).toBe(false)
    await clock.advance(30 * 60_000)
    expect((await moments()).length).toBe(2)
    await expect(mill.schedules.runNow('s')).rejects.toMatchObject({ code: 'SCHEDULE_NOT_FOUND' })
  })

  test('T2 an upsert changes what is fired, and a new rhythm replaces the old', async () => {
    const { clock, mill, moments } = await ticking()
    await mill.schedules.upsert('s', { job: tick, input: 2, cron: '5 * * * *' })
    await clock.advance(70 * 60_000)
    expect(await moments()).toEqual(['12:05', '13:05'])
    const { items } = await mill.jobs.list({ schedule: 's' })
    expect(items.every(({ payload }) => payload === 2)).toBe(true)
  })
})
