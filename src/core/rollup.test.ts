// History as values: keys in order of time, parts that are folded once, notes that fit.
import { describe, expect, test } from 'vitest'
import { ERROR_CLASSES } from './classify.ts'
import { JOB_BOUNDS_SECONDS } from './buckets.ts'
import { JOB_COUNTS } from './job-series.ts'
import type { JobSeries } from './job-series.ts'
import { LIMITS } from './limits.ts'
import {
  decodeRollup,
  encodeRollup,
  foldParts,
  HOUR_MS,
  hourKey,
  minuteKey,
  msOfKey,
  partKey,
  partOf,
} from './rollup.ts'

const AT_MS = Date.UTC(2030, 0, 31, 12, 5)
const series = (completed: number, kind = 'send'): JobSeries => ({
  queue: 'mail',
  kind,
  counts: { completed },
  failed: {},
  times: {},
})
const part = (id: string, completed: number) => ({ key: partKey(minuteKey(AT_MS), id), series: [series(completed)] })

describe('rollups', () => {
  test('O1 keys are moments, and in their order', () => {
    expect([minuteKey(AT_MS), hourKey(AT_MS)]).toEqual(['2030-01-31T12:05Z', '2030-01-31T12Z'])
    expect(msOfKey(minuteKey(AT_MS + 59_999))).toBe(AT_MS)
    expect(msOfKey(hourKey(AT_MS))).toBe(Date.UTC(2030, 0, 31, 12))
    expect(minuteKey(AT_MS) < partKey(minuteKey(AT_MS), 'a')).toBe(true)
    expect(partKey(minuteKey(AT_MS), 'a') < minuteKey(AT_MS + 60_000)).toBe(true)
    expect(hourKey(AT_MS) < hourKey(AT_MS + HOUR_MS)).toBe(true)
    expect(partOf(partKey(minuteKey(AT_MS), 'a.1'))).toEqual({ minute: minuteKey(AT_MS), id: 'a.1' })
    expect([partOf('nothing'), partOf('nothing~a')]).toEqual([null, null])
  })

  test('O1 a part counts once, however often it is folded and whoever folded it', () => {
    const first = foldParts(null, [part('a.1', 2), part('b.1', 3)])
    expect(first).toMatchObject({ parts: ['a.1', 'b.1'], series: [{ counts: { completed: 5 } }] })
    expect(foldParts(first, [part('a.1', 2), part('b.1', 3)])).toBeNull()
    const later = foldParts(first, [part('b.1', 3), part('c.1', 4)])
    expect(later).toMatchObject({ parts: ['a.1', 'b.1', 'c.1'], series: [{ counts: { completed: 9 } }] })
    const kept = decodeRollup(encodeRollup(later!))
    expect(kept).toEqual(later)
  })

  test('O1 a note fits whatever is in it, and no job is lost in it', () => {
    const full: JobSeries[] = Array.from({ length: 500 }, (_, index) => ({
      queue: 'q'.repeat(100),
      kind: `${'k'.repeat(90)}${index}`,
      counts: Object.fromEntries(JOB_COUNTS.map((name) => [name, 123_456_789])),
      failed: Object.fromEntries(ERROR_CLASSES.map((name) => [name, 123_456_789])),
      times: {
        wait: { counts: Array(JOB_BOUNDS_SECONDS.length + 1).fill(123_456), sumSeconds: 1_234.567_89 },
        run: { counts: Array(JOB_BOUNDS_SECONDS.length + 1).fill(123_456), sumSeconds: 1_234.567_89 },
      },
    }))
    const parts = Array.from({ length: 500 }, (_, index) => `0123456789ab.${index}`)
    const text = encodeRollup({ parts, series: full })
    expect(text.length).toBeLessThan(LIMITS.noteBytesMax)
    const back = decodeRollup(text)
    expect(back?.series.length).toBeGreaterThan(5)
    expect(back?.series.reduce((sum, one) => sum + (one.counts.completed ?? 0), 0)).toBe(500 * 123_456_789)
  })

  test('O1 what somebody else wrote is read as far as it goes', () => {
    expect(decodeRollup('no json')).toBeNull()
    expect(decodeRollup('{}')).toEqual({ parts: [], series: [] })
    const odd = {
      parts: [1, 'a'],
      series: [7, { queue: 'q', kind: 'k', counts: { completed: 'x', later: 3 }, times: { run: 5 } }],
    }
    expect(decodeRollup(JSON.stringify(odd))).toEqual({
      parts: ['a'],
      series: [{ queue: 'q', kind: 'k', counts: {}, failed: {}, times: {} }],
    })
  })
})
