// Lanes and the share of the lower ones.
import fc from 'fast-check'
import { expect, test } from 'vitest'
import { DEFAULT_LANES, laneOf, parsePriority, pickLane } from './priority.ts'
import type { Lane, PassedOver } from './priority.ts'

test('J4 words and numbers become one range, lower is more urgent', () => {
  expect(['critical', 'high', 'normal', 'low'].map((word) => parsePriority(word as 'low'))).toEqual([10, 50, 100, 200])
  expect([0, 50, 51, 150, 151, 32_767].map((priority) => laneOf(priority, DEFAULT_LANES))).toEqual([0, 0, 1, 1, 2, 2])
  const cyclic: { self?: unknown } = {}
  cyclic.self = cyclic
  for (const bad of [-1, 5n, Symbol('x'), cyclic, 1.5, Number.NaN, 32_768, Infinity, 'urgent', '5', null]) {
    expect(() => parsePriority(bad as number)).toThrow(expect.objectContaining({ code: 'INVALID_PRIORITY' }))
  }
  expect(() => parsePriority(Number.NaN)).toThrow('priority is NaN')
})

test('J4 a waiting lower lane gets at least 1 of every 16 starts, also when both lower lanes wait', () => {
  const starts = Array.from(
    { length: 1_600 },
    (
      (passed: PassedOver) => () =>
        pickLane([true, true, true], passed, 16)
    )([0, 0, 0]),
  )
  for (const lane of [1, 2] as const) {
    for (let from = 0; from + 16 <= starts.length; from++) expect(starts.slice(from, from + 16)).toContain(lane)
  }
  expect(starts.filter((lane) => lane === 0).length).toBeGreaterThan(1_600 * 0.85)
})

test('J4 whatever the arrivals, no lane waits longer than its share', () => {
  const arrivals = fc.array(fc.tuple(fc.boolean(), fc.boolean(), fc.boolean()), { maxLength: 300 })
  fc.assert(
    fc.property(arrivals, fc.integer({ min: 3, max: 20 }), (turns, share) => {
      const passed: PassedOver = [0, 0, 0]
      const waited = [0, 0, 0]
      for (const waiting of turns) {
        const pick = pickLane(waiting, passed, share)
        expect(pick === null).toBe(!waiting.includes(true))
        for (const lane of [0, 1, 2] as Lane[]) waited[lane] = waiting[lane] && lane !== pick ? waited[lane]! + 1 : 0
        expect(Math.max(waited[1]!, waited[2]!)).toBeLessThan(share)
      }
    }),
  )
})

test('J4 a share of 0 is strict priority', () => {
  const passed: PassedOver = [0, 0, 0]
  for (let start = 0; start < 100; start++) expect(pickLane([true, true, true], passed, 0)).toBe(0)
  expect(pickLane([false, true, true], passed, 0)).toBe(1)
})
