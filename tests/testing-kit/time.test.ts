// Schedules, delays and retention over long spans of virtual time.
import { afterEach, describe, expect, test, vi } from 'vitest'
import { completed, createTestMillrace, enqueued } from '../../src/testing/index.ts'
import { JOBS, charge, sendMail, tick } from './jobs.ts'

const setup = (start?: string) =>
  createTestMillrace({ jobs: JOBS, ...(start !== undefined && { start: new Date(start) }) })

describe('schedules', () => {
  test('O7 each tick becomes a job at its own time, and none is made up twice', async () => {
    const mill = await setup('2030-01-01T00:00:00Z')
    await mill.schedules.upsert('hourly', { job: tick, cron: '0 * * * *' })
    await mill.clock.advance('3h')
    expect(enqueued(mill, tick).map(({ schedule }) => schedule?.tick.toISOString())).toEqual([
      '2030-01-01T01:00:00.000Z',
      '2030-01-01T02:00:00.000Z',
      '2030-01-01T03:00:00.000Z',
    ])
    expect(enqueued(mill, tick).map(({ enqueuedAt }) => enqueuedAt.getUTCHours())).toEqual([1, 2, 3])
    await mill.drain()
    expect(completed(mill, tick)).toHaveLength(3)
  })

  test('O7 a schedule in Berlin keeps its local time over the change to summer time', async () => {
    const mill = await setup('2030-03-29T12:00:00Z')
    await mill.schedules.upsert('daily', { job: tick, cron: '30 8 * * *', timeZone: 'Europe/Berlin' })
    await mill.clock.advance('3d')
    expect(enqueued(mill, tick).map(({ enqueuedAt }) => enqueuedAt.toISOString())).toEqual([
      '2030-03-30T07:30:00.000Z',
      '2030-03-31T06:30:00.000Z',
      '2030-04-01T06:30:00.000Z',
    ])
  })

  test('O7 a tick in the hour that is skipped or doubled fires once that day', async () => {
    const mill = await setup('2030-03-30T12:00:00Z')
    await mill.schedules.upsert('nightly', { job: tick, cron: '30 2 * * *', timeZone: 'Europe/Berlin' })
    await mill.clock.advance('1d')
    expect(enqueued(mill, tick)).toHaveLength(1)
    await mill.clock.set(new Date('2030-10-26T12:00:00Z'))
    const before = enqueued(mill, tick).length
    await mill.clock.advance('1d')
    expect(enqueued(mill, tick).length - before).toBe(1)
  })

  test('O7 ticks fire on the way to a delayed job', async () => {
    const mill = await setup()
    await mill.schedules.upsert('every', { job: tick, every: '10m' })
    await mill.enqueue(sendMail, { to: 'ada' }, { delay: '1h' })
    await mill.drain({ withScheduled: true })
    expect(completed(mill, sendMail)).toHaveLength(1)
    expect(completed(mill, tick)).toHaveLength(7)
  })
})

describe('a month', () => {
  test('O7 thirty days with schedules, delays and retries take less than a second', async () => {
    const mill = await setup()
    await mill.schedules.upsert('hourly', { job: tick, every: '1h' })
    await mill.schedules.upsert('daily', { job: tick, cron: '0 6 * * *', timeZone: 'America/New_York' })
    for (let day = 1; day < 30; day++) await mill.enqueue(sendMail, { to: `day ${day}` }, { delay: `${day}d` })
    const startedMs = cpuMs()
    await mill.enqueue(charge, { cents: 1 })
    await mill.clock.advance('30d')
    const { completed: runs, retried } = await mill.drain()
    expect(cpuMs() - startedMs).toBeLessThan(2_000)
    // An interval fires at once, then on its grid.
    expect(runs).toBe(1 + 30 * 24 + 30 + 29)
    expect(retried).toBe(1)
  })

  test('O7 an idle month costs nothing', async () => {
    const mill = await setup()
    const startedMs = cpuMs()
    await mill.clock.advance('30d')
    expect(cpuMs() - startedMs).toBeLessThan(1_000)
  })

  test('O7 retention removes what is old enough', async () => {
    const mill = await createTestMillrace({ jobs: JOBS, queues: { mail: { retention: { completed: '1d' } } } })
    await mill.enqueue(sendMail, { to: 'ada' })
    await mill.drain()
    await mill.clock.advance('23h')
    expect(enqueued(mill)).toHaveLength(1)
    await mill.clock.advance('2h')
    expect(enqueued(mill)).toHaveLength(0)
  })

  test('O7 a consumer that does not settle loses its job when its visibility ends', async () => {
    const mill = await setup()
    await mill.enqueue(charge, { cents: 1 })
    await using consumer = mill.consumer({ queues: ['payments'], visibility: '30s' })
    await consumer.claim()
    expect(enqueued(mill, charge)[0]?.status).toBe('running')
    await mill.clock.advance('31s')
    expect(enqueued(mill, charge)[0]).toMatchObject({ status: 'queued', attemptCount: 1 })
  })
})

describe('a runner that fakes Date', () => {
  afterEach(() => vi.useRealTimers())

  test('O7 the two clocks do not disturb each other', async () => {
    vi.useFakeTimers({ toFake: ['Date'], now: 0 })
    const mill = await setup()
    await mill.enqueue(sendMail, { to: 'ada' }, { delay: '1h' })
    expect(await mill.drain({ withScheduled: true })).toMatchObject({ completed: 1 })
    expect([Date.now(), mill.clock.now().getUTCFullYear()]).toEqual([0, 2030])
  })
})

/** Work, not waiting: a busy machine makes it no longer. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage()
  return (user + system) / 1_000
}
