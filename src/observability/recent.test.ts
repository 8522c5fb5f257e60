// Rates from looks at the same counts.
import { expect, test } from 'vitest'
import { JOB_STATUSES } from '../core/job.ts'
import type { JobStatus } from '../core/job.ts'
import { recentOf, sumOfRecent, withLook } from './recent.ts'
import type { Look } from './recent.ts'

function look(atMs: number, counts: Partial<Record<JobStatus, number>>, queue = 'mail'): Look {
  const whole = Object.fromEntries(JOB_STATUSES.map((status) => [status, counts[status] ?? 0]))
  return { atMs, counts: new Map([[queue, whole as Record<JobStatus, number>]]) }
}

test('O3 one look tells nothing, two tell what came between them', () => {
  const first = look(1_000, { queued: 10, completed: 100 })
  expect(recentOf([first])).toBeNull()
  const recent = recentOf([first, look(3_000, { queued: 7, running: 1, completed: 104, failed: 1 })])
  expect(recent?.get('mail')).toEqual({ seconds: 2, arrived: 3, completed: 4, failed: 1, cancelled: 0 })
  expect(sumOfRecent(recent)).toEqual({ seconds: 2, arrived: 3, completed: 4, failed: 1, cancelled: 0 })
})

test('O3 what retention takes away is no negative work', () => {
  const looks = [look(0, { completed: 1_000 }), look(1_000, { completed: 1_050 }), look(2_000, { completed: 80 })]
  expect(recentOf([...looks, look(3_000, { completed: 130 })])?.get('mail')).toMatchObject({
    completed: 100,
    arrived: 100,
  })
})

test('O3 looks are kept for the window and one before it, and never more than a bound', () => {
  let looks: readonly Look[] = []
  for (let second = 0; second <= 100; second++) looks = withLook(looks, look(second * 1_000, {}), 10_000)
  expect([looks[0]?.atMs, looks.at(-1)?.atMs]).toEqual([90_000, 100_000])
  for (let tick = 0; tick < 1_000; tick++) looks = withLook(looks, look(100_000 + tick, {}), 10_000)
  expect(looks.length).toBeLessThanOrEqual(128)
})

test('O3 a queue that is new or gone is no error', () => {
  const recent = recentOf([look(0, {}, 'old'), look(1_000, { queued: 3 }, 'new')])
  expect(recent?.get('new')).toMatchObject({ arrived: 3 })
  expect(recent?.has('old')).toBe(false)
})
