import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { cronRecurrence, everyRecurrence, lastTicksBetween, nextTickMs, ticksBetween } from './cron.ts'

const at = (text: string) => Date.parse(text)
const iso = (ticks: readonly number[]) => ticks.map((tick) => new Date(tick).toISOString().replace('.000', ''))
const ticksOf = (expression: string, zone: string, from: string, to: string) =>
  iso(ticksBetween(cronRecurrence(expression, zone), at(from), at(to), 100))

describe('T2 cron', () => {
  test('T2 five fields fire on the minute, six fields on the second', () => {
    expect(ticksOf('*/20 * * * *', 'UTC', '2026-01-01T00:00:00Z', '2026-01-01T01:00:00Z')).toEqual([
      '2026-01-01T00:20:00Z',
      '2026-01-01T00:40:00Z',
      '2026-01-01T01:00:00Z',
    ])
    expect(ticksOf('*/30 * * * * *', 'UTC', '2026-01-01T00:00:00.500Z', '2026-01-01T00:01:00Z')).toEqual([
      '2026-01-01T00:00:30Z',
      '2026-01-01T00:01:00Z',
    ])
  })

  test('T2 the time zone is UTC unless named', () => {
    expect(cronRecurrence(' 0 9 * * 1 ')).toEqual({ kind: 'cron', expression: '0 9 * * 1', timeZone: 'UTC' })
    expect(ticksOf('0 9 * * *', 'Asia/Kolkata', '2026-01-01T00:00:00Z', '2026-01-02T00:00:00Z')).toEqual([
      '2026-01-01T03:30:00Z',
    ])
  })

  test('T2 Feb 29 fires in leap years only', () => {
    expect(ticksOf('0 0 29 2 *', 'UTC', '2026-01-01T00:00:00Z', '2036-12-31T00:00:00Z')).toEqual([
      '2028-02-29T00:00:00Z',
      '2032-02-29T00:00:00Z',
      '2036-02-29T00:00:00Z',
    ])
  })

  test('T2 DST gap: a fixed time that does not exist runs right after the gap, on the same day', () => {
    // Berlin 2026-03-29 02:00 -> 03:00 (+2), New York 2026-03-08 02:00 -> 03:00 (-4),
    // Lord Howe 2026-10-04 02:00 -> 02:30 (+11).
    expect(ticksOf('30 2 * * *', 'Europe/Berlin', '2026-03-28T12:00:00Z', '2026-03-30T12:00:00Z')).toEqual([
      '2026-03-29T01:00:00Z',
      '2026-03-30T00:30:00Z',
    ])
    expect(ticksOf('30 2 * * *', 'America/New_York', '2026-03-07T12:00:00Z', '2026-03-09T12:00:00Z')).toEqual([
      '2026-03-08T07:00:00Z',
      '2026-03-09T06:30:00Z',
    ])
    expect(ticksOf('15 2 * * *', 'Australia/Lord_Howe', '2026-10-03T00:00:00Z', '2026-10-05T00:00:00Z')).toEqual([
      '2026-10-03T15:30:00Z',
      '2026-10-04T15:15:00Z',
    ])
  })

  test('T2 DST overlap: a fixed time that happens twice runs once', () => {
    expect(ticksOf('30 2 * * *', 'Europe/Berlin', '2026-10-24T12:00:00Z', '2026-10-26T12:00:00Z')).toEqual([
      '2026-10-25T00:30:00Z',
      '2026-10-26T01:30:00Z',
    ])
    expect(ticksOf('30 1 * * *', 'America/New_York', '2026-10-31T12:00:00Z', '2026-11-02T12:00:00Z')).toEqual([
      '2026-11-01T05:30:00Z',
      '2026-11-02T06:30:00Z',
    ])
    expect(ticksOf('45 1 * * *', 'Australia/Lord_Howe', '2026-04-04T00:00:00Z', '2026-04-06T00:00:00Z')).toEqual([
      '2026-04-04T14:45:00Z',
      '2026-04-05T15:15:00Z',
    ])
  })

  test('T2 DST: an every-ten-minutes job keeps running through both kinds of change', () => {
    for (const [from, to] of [
      ['2026-03-29T00:00:00Z', '2026-03-29T03:00:00Z'],
      ['2026-10-25T00:00:00Z', '2026-10-25T03:00:00Z'],
    ] as const) {
      expect(ticksOf('*/10 * * * *', 'Europe/Berlin', from, to)).toHaveLength(18)
    }
  })

  test('T2 expressions that never fire are refused', () => {
    for (const expression of ['0 0 30 2 *', '0 0 0 31 2,4,6 *', '0 0 31W 2 *']) {
      expect(() => cronRecurrence(expression)).toThrow(/never fires/)
    }
    expect(nextTickMs(cronRecurrence('0 0 29 2 +MON'), at('2026-01-01T00:00:00Z'))).toBe(at('2044-02-29T00:00:00Z'))
  })

  test.each([
    '1--100000000 * * * *',
    '1-100000000 * * * *',
    '*/0 * * * *',
    '*/100000000 * * * *',
    '0-59/1e9 * * * *',
    '',
    '* * * *',
    '* * * * * * *',
    '@daily',
    '2030-01-01T00:00:00',
    '60 * * * *',
    '* 24 * * *',
    '* * 32 * *',
    '* * * 13 *',
    ',,,, * * * *',
    '1-5-9 * * * *',
    'x * * * *',
    `${'1,'.repeat(5_000)}1 * * * *`,
    '* '.repeat(5_000),
    '*\n* * * *',
    '* * * * *\0',
    undefined,
    null,
    5,
    {},
  ])('hostile or wrong expression %j fails fast', (expression) => {
    const before = process.cpuUsage().user
    expect(() => cronRecurrence(expression as never)).toThrow(expect.objectContaining({ code: 'INVALID_CRON' }))
    // Microseconds of work, so that a busy machine does not count.
    expect(process.cpuUsage().user - before).toBeLessThan(250_000)
  })

  test.each(['Mars/Olympus', '', '+02:00', 'Europe/Berlin\0', 'x'.repeat(10_000), 5, null])(
    'time zone %j is refused',
    (zone) => {
      expect(() => cronRecurrence('* * * * *', zone as never)).toThrow(
        expect.objectContaining({ code: 'INVALID_TIME_ZONE' }),
      )
    },
  )
})

describe('T2 intervals', () => {
  const every = everyRecurrence('10m', 1_000)

  test('T2 tick on the grid of the anchor, and not before it', () => {
    expect(nextTickMs(every, 0)).toBe(1_000)
    expect(nextTickMs(every, 1_000)).toBe(601_000)
    expect(nextTickMs(every, 600_999)).toBe(601_000)
    expect(ticksBetween(every, 0, 1_300_000, 10)).toEqual([1_000, 601_000, 1_201_000])
  })

  test('T2 at least a second apart', () => {
    expect(() => everyRecurrence(999, 0)).toThrow(/every is 999/)
    expect(() => everyRecurrence('2000d', 0)).toThrow(/every/)
  })

  test('a century of seconds is counted without walking it', () => {
    const second = everyRecurrence('1s', 0)
    expect(lastTicksBetween(second, 0, 3_155_760_000_000, 2)).toEqual({
      ticks: [3_155_759_999_000, 3_155_760_000_000],
      count: 3_155_760_000,
    })
  })
})

const anyRecurrence = fc.oneof(
  fc
    .record({
      expression: fc.constantFrom(
        '* * * * *',
        '*/7 * * * *',
        '30 2 * * *',
        '15 1,2,3 * * *',
        '0 0 29 2 *',
        '5-50/15 */2 * * MON-FRI',
        '*/20 * * * * *',
        '0 30 1 L * *',
        '0 12 * * 5#2',
      ),
      zone: fc.constantFrom('UTC', 'Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'),
    })
    .map(({ expression, zone }) => cronRecurrence(expression, zone)),
  fc
    .record({ every: fc.integer({ min: 1_000, max: 10_000_000 }), anchorMs: fc.integer({ min: 0, max: 2e12 }) })
    .map(({ every, anchorMs }) => everyRecurrence(every, anchorMs)),
)

// Half of the moments lie near a change of DST in one of the zones.
const anyMoment = fc.oneof(
  fc.integer({ min: at('2020-01-01T00:00:00Z'), max: at('2035-01-01T00:00:00Z') }),
  fc
    .tuple(
      fc.constantFrom(
        '2026-03-29T00:00:00Z',
        '2026-10-25T00:00:00Z',
        '2026-03-08T06:00:00Z',
        '2026-11-01T05:00:00Z',
        '2026-04-04T14:00:00Z',
        '2026-10-03T14:00:00Z',
      ),
      fc.integer({ min: -7_200_000, max: 7_200_000 }),
    )
    .map(([text, offsetMs]) => at(text) + offsetMs),
)

test('T2 ticks are strictly increasing and strictly after the moment asked for', () => {
  fc.assert(
    fc.property(anyRecurrence, anyMoment, (recurrence, fromMs) => {
      let previous = fromMs
      for (let step = 0; step < 12; step++) {
        const tick = nextTickMs(recurrence, previous)
        expect(tick).not.toBeNull()
        expect(tick!).toBeGreaterThan(previous)
        // Asking from just before a tick finds the same tick: no moment in between is special.
        expect(nextTickMs(recurrence, tick! - 1)).toBe(tick)
        previous = tick!
      }
    }),
    { numRuns: 60 },
  )
})

test('T2 the last ticks, found backwards, are those found forwards', () => {
  const minutely = ['* * * * *', '*/2 * * * *', '*/20 * * * * *'].flatMap((expression) =>
    ['Europe/Berlin', 'America/New_York', 'Australia/Lord_Howe'].map((zone) => cronRecurrence(expression, zone)),
  )
  fc.assert(
    fc.property(fc.constantFrom(...minutely), anyMoment, (recurrence, untilMs) => {
      const afterMs = untilMs - 40 * 3_600_000
      const { ticks, count } = lastTicksBetween(recurrence, afterMs, untilMs, 20)
      expect(count).toBe(1_000)
      const span = untilMs - ticks[0]! + 1
      expect(ticks).toEqual(ticksBetween(recurrence, untilMs - span, untilMs, 1_000))
      expect(ticks).toHaveLength(20)
    }),
    { numRuns: 20 },
  )
})
