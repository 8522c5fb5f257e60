import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cronRecurrence, everyRecurrence, nextTickMs, ticksBetween } from './cron.ts'
import { decideTicks, firstRunMs, MISFIRE_GRACE_MS, type MisfirePolicy } from './schedule.ts'

const MINUTE = 60_000
const at = (text: string) => Date.parse(text)
const hourly = everyRecurrence('1h', 0)
const hour = (count: number) => count * 60 * MINUTE

describe('T2 firstRunMs', () => {
  test('T2 an interval that never ran starts at once', () => {
    expect(firstRunMs(everyRecurrence('10m', 5_000), 5_000)).toBe(5_000)
    expect(firstRunMs(everyRecurrence('10m', 5_000), 7_000)).toBe(7_000)
    expect(firstRunMs(everyRecurrence('10m', 9_000), 7_000)).toBe(9_000)
  })

  test('T2 cron waits for its next tick', () => {
    const daily = cronRecurrence('0 9 * * *', 'Europe/Berlin')
    expect(firstRunMs(daily, at('2026-01-01T08:00:00Z'))).toBe(at('2026-01-02T08:00:00Z'))
  })
})

describe('T2 decideTicks', () => {
  test('T2 nothing fires before its time', () => {
    expect(decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs: hour(2) - 1, misfire: 'fire-once' })).toEqual({
      ticks: [],
      missed: 0,
      nextRunMs: hour(2),
    })
  })

  test.each<MisfirePolicy>(['skip', 'fire-once', { catchUp: 5 }])(
    'T2 a tick less than the grace late is on time under %j',
    (misfire) => {
      for (const lateMs of [0, 400, MISFIRE_GRACE_MS - 1]) {
        expect(decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs: hour(2) + lateMs, misfire })).toEqual({
          ticks: [hour(2)],
          missed: 0,
          nextRunMs: hour(3),
        })
      }
    },
  )

  test.each<[MisfirePolicy, number[]]>([
    ['skip', []],
    ['fire-once', [hour(5)]],
    [{ catchUp: 2 }, [hour(4), hour(5)]],
    [{ catchUp: 100 }, [hour(2), hour(3), hour(4), hour(5)]],
    [{ catchUp: 0 }, []],
  ])('T2 after a long pause, %j fires %j', (misfire, ticks) => {
    expect(decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs: hour(5.5), misfire })).toEqual({
      ticks,
      missed: 4,
      nextRunMs: hour(6),
    })
  })

  test('T2 only the newest tick is on time, and firing once is once', () => {
    const nowMs = hour(5) + 100
    expect(decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs, misfire: 'skip' }).ticks).toEqual([hour(5)])
    expect(decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs, misfire: 'fire-once' })).toEqual({
      ticks: [hour(5)],
      missed: 3,
      nextRunMs: hour(6),
    })
  })

  test('T2 a stored tick that is off the grid still fires once, then the grid goes on', () => {
    const decision = decideTicks({ recurrence: hourly, dueMs: hour(2) + 7, nowMs: hour(2) + 10, misfire: 'skip' })
    expect(decision).toEqual({ ticks: [hour(2) + 7], missed: 0, nextRunMs: hour(3) })
  })

  test('T2 a short interval after a stall does not fire a burst', () => {
    const everySecond = everyRecurrence('1s', 0)
    const fired = (misfire: MisfirePolicy) =>
      decideTicks({ recurrence: everySecond, dueMs: 1_000, nowMs: 51_500, misfire }).ticks
    expect([fired('skip'), fired('fire-once')]).toEqual([[51_000], [51_000]])
    expect(fired({ catchUp: 3 })).toEqual([48_000, 49_000, 50_000, 51_000])
    expect(fired({ catchUp: 1_000 })).toHaveLength(51)
  })

  test('T2 a year of missed seconds is decided quickly and within bounds', () => {
    const everySecond = cronRecurrence('* * * * * *', 'Europe/Berlin')
    const nowMs = at('2026-06-01T00:00:00Z')
    const input = { recurrence: everySecond, dueMs: at('2025-06-01T00:00:00Z'), nowMs }
    const decision = decideTicks({ ...input, misfire: { catchUp: 3 } })
    expect(decision.ticks).toHaveLength(3 + 1)
    expect(decision.ticks.at(-1)).toBe(nowMs)
    expect(decision.missed).toBe(1_000)
    expect(decision.nextRunMs).toBe(nowMs + 1_000)
  })

  test('T2 a clock that jumps back repeats no tick', () => {
    const first = decideTicks({ recurrence: hourly, dueMs: hour(2), nowMs: hour(2) + 5, misfire: 'fire-once' })
    const back = decideTicks({ recurrence: hourly, dueMs: first.nextRunMs!, nowMs: hour(1), misfire: 'fire-once' })
    expect(back).toEqual({ ticks: [], missed: 0, nextRunMs: hour(3) })
  })
})

const anyRecurrence = fc.oneof(
  fc.integer({ min: 1_000, max: 7_200_000 }).map((every) => everyRecurrence(every, at('2026-03-01T00:00:00Z'))),
  fc.constantFrom(
    cronRecurrence('*/5 * * * *', 'Europe/Berlin'),
    cronRecurrence('30 2 * * *', 'Europe/Berlin'),
    cronRecurrence('*/10 * * * * *', 'America/New_York'),
  ),
)
const anyMisfire: fc.Arbitrary<MisfirePolicy> = fc.oneof(
  fc.constantFrom('skip' as const, 'fire-once' as const),
  fc.integer({ min: 0, max: 50 }).map((catchUp) => ({ catchUp })),
)

test('T2 over any series of passes with jumping clocks, ticks only move forward and none fires twice', () => {
  const passes = fc.array(fc.integer({ min: -600_000, max: 7_200_000 }), { minLength: 1, maxLength: 20 })
  fc.assert(
    fc.property(anyRecurrence, anyMisfire, passes, (recurrence, misfire, stepsMs) => {
      let nowMs = at('2026-03-28T22:00:00Z')
      let dueMs = firstRunMs(recurrence, nowMs)
      let newest = -Infinity
      for (const stepMs of stepsMs) {
        nowMs += stepMs
        const { ticks, nextRunMs } = decideTicks({ recurrence, dueMs, nowMs, misfire })
        for (const tick of ticks) {
          expect(tick).toBeGreaterThan(newest)
          expect(tick).toBeLessThanOrEqual(nowMs)
          newest = tick
        }
        expect(nextRunMs!).toBeGreaterThan(nowMs)
        expect(nextRunMs!).toBeGreaterThan(newest)
        dueMs = nextRunMs!
      }
    }),
    { numRuns: 40 },
  )
})

test('T2 every tick of the time between is fired or counted as missed', () => {
  const spanMs = fc.integer({ min: 0, max: 4 * 3_600_000 })
  fc.assert(
    fc.property(anyRecurrence, spanMs, fc.integer({ min: 0, max: 300_000 }), (recurrence, span, graceMs) => {
      const dueMs = nextTickMs(recurrence, at('2026-03-29T00:00:00Z'))!
      const nowMs = dueMs + span
      fc.pre(span / ((recurrence.kind === 'every' && recurrence.everyMs) || 10_000) < 900)
      const all = [dueMs, ...ticksBetween(recurrence, dueMs, nowMs, 1_000)]
      const caughtUp = decideTicks({ recurrence, dueMs, nowMs, misfire: { catchUp: 1_000 }, graceMs })
      expect(caughtUp.ticks).toEqual(all)
      const skipped = decideTicks({ recurrence, dueMs, nowMs, misfire: 'skip', graceMs })
      expect(skipped.ticks.length + skipped.missed).toBe(all.length)
      for (const tick of skipped.ticks) expect(nowMs - tick).toBeLessThan(graceMs)
    }),
    { numRuns: 40 },
  )
})
