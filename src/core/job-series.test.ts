// Counts per queue and kind as values: sums over processes, differences over time, and a bound.
import { describe, expect, test } from 'vitest'
import { failedRuns, isIdle, OTHER, startedRuns, subtractSeries, sumSeries } from './job-series.ts'
import type { JobSeries } from './job-series.ts'

const series = (queue: string, completed: number, more: Partial<JobSeries> = {}): JobSeries => ({
  queue,
  kind: 'send',
  counts: { completed, startedNormal: completed },
  failed: {},
  times: { run: { counts: [completed, 0, 1], sumSeconds: completed } },
  ...more,
})

describe('series of jobs', () => {
  test('O1 what several processes counted is one series per queue and kind', () => {
    const [mail, ...rest] = sumSeries([series('mail', 2), series('mail', 3, { failed: { network: 4 } })])
    expect(rest).toEqual([])
    expect(mail).toMatchObject({ counts: { completed: 5, startedNormal: 5 }, failed: { network: 4 } })
    expect(mail?.times.run).toEqual({ counts: [5, 0, 2], sumSeconds: 5 })
    expect([startedRuns(mail!), failedRuns(mail!)]).toEqual([5, 4])
  })

  test('O1 what came since the last look is the difference, and nothing when nothing came', () => {
    const before = series('mail', 2)
    const now = series('mail', 7, { failed: { timeout: 1 } })
    expect(subtractSeries(now, before)).toMatchObject({ counts: { completed: 5 }, failed: { timeout: 1 } })
    expect(isIdle(subtractSeries(now, now))).toBe(true)
  })

  test('O1 beyond the bound the least active series are one, and no run is lost in it', () => {
    const many = Array.from({ length: 50 }, (_, index) => series(`queue-${index}`, index))
    const kept = sumSeries(many, 10)
    expect(kept.length).toBe(10)
    expect(kept.filter(({ queue }) => queue === OTHER).length).toBe(1)
    expect(kept[0]?.queue).toBe('queue-49')
    const total = kept.reduce((sum, { counts }) => sum + (counts.completed ?? 0), 0)
    expect(total).toBe((49 * 50) / 2)
    expect(sumSeries([...kept, ...many], 10).length).toBe(10)
  })
})
