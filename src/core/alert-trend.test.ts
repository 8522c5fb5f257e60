import { expect, test } from 'vitest'
import { followTrend } from './alert-trend.ts'
import type { Trend, TrendCounts } from './alert-trend.ts'

const COUNTS: TrendCounts = { ready: 5, running: 0, completed: 100, failed: 10, cancelled: 0, oldestReadyAtMs: 1_000 }

function follow(steps: readonly (readonly [atMs: number, counts: Partial<TrendCounts>])[]) {
  let trend: Trend | undefined
  return steps.map(([atMs, counts]) => {
    const reading = followTrend(trend, { ...COUNTS, ...counts }, atMs)
    trend = reading.trend
    return reading
  })
}

test.each([
  ['nothing moved', {}, true],
  ['one runs', { running: 1 }, false],
  ['one was completed', { completed: 101 }, false],
  ['one was taken', { ready: 4 }, false],
  ['the oldest is another one, and as many came', { oldestReadyAtMs: 2_000 }, false],
  ['nothing waits', { ready: 0, oldestReadyAtMs: null }, false],
  ['retention took away what had ended', { completed: 50 }, true],
  ['more came', { ready: 9 }, true],
])('O2 jobs wait and nothing processes them: %s', (_, counts, stalled) => {
  const [first, second] = follow([
    [0, {}],
    [15_000, counts],
  ])
  expect(first?.isStalled).toBeNull()
  expect(second?.isStalled).toBe(stalled)
})

test('O2 what ended is counted over ten minutes, whatever retention and replays take away', () => {
  const minute = 60_000
  const readings = follow([
    [0, { failed: 0, completed: 1_000 }],
    [minute, { failed: 30, completed: 1_100 }],
    // A replay and retention.
    [2 * minute, { failed: 0, completed: 0 }],
    [3 * minute, { failed: 25, completed: 50 }],
  ])
  expect(readings.at(-1)?.recent).toEqual({ completed: 150, failed: 55 })
  const later = followTrend(readings.at(-1)?.trend, { ...COUNTS, failed: 25, completed: 50 }, 11 * minute + 1)
  expect(later.recent).toEqual({ completed: 50, failed: 25 })
})

test('O2 a trend stays small, and a clock that was set back starts it anew', () => {
  let trend: Trend | undefined
  for (let second = 0; second < 7_200; second += 15) trend = followTrend(trend, COUNTS, second * 1_000).trend
  expect(trend?.samples.length).toBeLessThanOrEqual(11)
  const back = followTrend(trend, { ...COUNTS, failed: 500 }, 1_000)
  expect(back.recent).toEqual({ completed: 0, failed: 0 })
  expect(back.trend.samples).toEqual([[1_000, 100, 500]])
})
