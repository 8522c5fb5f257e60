import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { type Duration, formatDuration, parseDuration } from './duration.ts'
import { LIMITS } from './limits.ts'

const refused = (value: unknown, bounds?: { minMs?: number; maxMs?: number }) =>
  expect(() => parseDuration(value as Duration, 'delay', bounds))

describe('parseDuration', () => {
  test.each<[Duration, number]>([
    [0, 0],
    [250, 250],
    ['250ms', 250],
    ['30s', 30_000],
    ['5m', 300_000],
    ['2h', 7_200_000],
    ['1.5h', 5_400_000],
    ['1.1s', 1_100],
    ['7d', 604_800_000],
    ['2w', 1_209_600_000],
  ])('reads %j as %d ms', (value, ms) => {
    expect(parseDuration(value, 'delay')).toBe(ms)
  })

  test.each([
    Number.NaN,
    Infinity,
    -1,
    0.5,
    1e300,
    '',
    '5',
    'm',
    '5 m',
    ' 5m',
    '5M',
    '-5m',
    '+5m',
    '1e3s',
    '0x10s',
    '.5s',
    '1.s',
    '1.5ms',
    '0.0001s',
    '5m5s',
    '99999999999w',
    `${'9'.repeat(10_000)}s`,
    null,
    undefined,
    {},
    [5],
    true,
    5n,
  ])('refuses %s', (value) => {
    refused(value).toThrow(expect.objectContaining({ code: 'INVALID_DURATION' }))
  })

  test('the message names the option, the value and what is accepted', () => {
    refused('5 minutes').toThrow(/^delay is "5 minutes", .*'250ms', '30s'.* from 0ms to 1830d$/)
  })

  test('bounds are inclusive', () => {
    expect(parseDuration('1s', 'every', { minMs: 1_000, maxMs: 1_000 })).toBe(1_000)
    refused(999, { minMs: 1_000 }).toThrow(/from 1s/)
    refused(LIMITS.delayMaxMs + 1).toThrow(/to 1830d/)
  })

  test('every whole number of milliseconds survives being written as ms, s and m text', () => {
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 10_000_000_000 }), (ms) => {
        expect(parseDuration(`${ms}ms`, 'x')).toBe(ms)
        expect(parseDuration(`${(ms / 1_000).toFixed(3) as `${number}`}s`, 'x')).toBe(ms)
      }),
    )
  })
})

test.each([
  [0, '0ms'],
  [250, '250ms'],
  [1_000, '1s'],
  [1_500, '1.5s'],
  [59_999, '59.999s'],
  [60_000, '1m'],
  [61_500, '1m 1s'],
  [5_400_000, '1h 30m'],
  [3_601_000, '1h'],
  [86_400_000, '1d'],
  [187_200_000, '2d 4h'],
  [-1_500, '-1.5s'],
  [0.1234, '0.123ms'],
  [Number.NaN, 'NaNms'],
])('formatDuration shows %d as %s', (ms, text) => {
  expect(formatDuration(ms)).toBe(text)
})
