import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { intervalMs, rateLimit, type RateLimit, type RateState, reserveStart, takeStart } from './rate.ts'

const START_MS = 1_772_000_000_000

const anyLimit = fc
  .record({
    limit: fc.integer({ min: 1, max: 500 }),
    per: fc.constantFrom('1s' as const, '10s' as const, '1m' as const, 7),
    burst: fc.option(fc.integer({ min: 1, max: 50 }), { nil: undefined }),
  })
  .map(({ limit, per, burst }) => rateLimit(burst === undefined ? { limit, per } : { limit, per, burst }))

/** The promise of T6, checked for every window that begins and ends with a start. */
function expectWithinRate(startsMs: readonly number[], limit: RateLimit): void {
  const rate = limit.limit / limit.perMs
  for (let from = 0; from < startsMs.length; from++) {
    for (let to = from; to < startsMs.length; to++) {
      const windowMs = startsMs[to]! - startsMs[from]!
      if (to - from + 1 > limit.burst + rate * windowMs + 1e-9) {
        expect.fail(`${to - from + 1} starts in ${windowMs} ms`)
      }
    }
  }
}

/** Jobs come to the bucket at their time plus some lateness; refused ones come back after their wait. */
function simulate(
  limit: RateLimit,
  comingMs: readonly number[],
  latenessMs: (turn: number) => number,
  from?: RateState,
) {
  let state = from
  const waiting = comingMs.map((atMs, job) => ({ job, atMs }))
  const starts: { job: number; atMs: number }[] = []
  let turns = 0
  while (waiting.length > 0 && turns < 100_000) {
    waiting.sort((a, b) => a.atMs - b.atMs)
    const next = waiting.shift()!
    const take = takeStart(state, limit, next.atMs)
    state = take.state
    turns += 1
    if (take.ok) starts.push(next)
    else waiting.push({ job: next.job, atMs: next.atMs + take.waitMs + latenessMs(turns) })
  }
  return { starts, turns, state: state!, startsMs: starts.map((start) => start.atMs) }
}

describe('rateLimit', () => {
  test('burst is one second worth of the rate unless given, and never above the limit', () => {
    expect(rateLimit({ limit: 100, per: '1m' }).burst).toBe(2)
    expect(rateLimit({ limit: 100, per: '1s' }).burst).toBe(100)
    expect(rateLimit({ limit: 10, per: '1h' }).burst).toBe(1)
    expect(rateLimit({ limit: 5, per: 100 }).burst).toBe(5)
    expect(rateLimit({ limit: 10, per: '1h', burst: 4 })).toEqual({ limit: 10, perMs: 3_600_000, burst: 4 })
  })

  test.each([
    { limit: 0, per: '1s' },
    { limit: 1.5, per: '1s' },
    { limit: 1, per: '1s', burst: 0 },
    { limit: 1, per: 0 },
    { limit: 1, per: 'x' },
    { limit: 1, per: '1s', bust: 2 },
  ])('refuses %j', (options) => {
    expect(() => rateLimit(options as never)).toThrow(/limit|burst|per|bust/)
  })

  test('the steady interval is never shorter than asked for and exact in sums', () => {
    const limit = rateLimit({ limit: 10_000, per: '1s' })
    const interval = intervalMs(limit)
    expect(interval).toBeGreaterThanOrEqual(0.1)
    expect(interval).toBeLessThan(0.101)
    expect(START_MS + interval - START_MS).toBe(interval)
  })
})

describe('T6 takeStart', () => {
  test('T6 lets the burst through at once, then one per interval', () => {
    const limit = rateLimit({ limit: 10, per: '1s', burst: 3 })
    const { startsMs } = simulate(limit, [0, 0, 0, 0, 0], () => 0)
    expect(startsMs).toEqual([0, 0, 0, 100, 200])
  })

  test('T6 refused ones are spread, not all sent back to the same instant', () => {
    const limit = rateLimit({ limit: 10, per: '1s', burst: 1 })
    let { state } = takeStart(undefined, limit, START_MS)
    const waits: number[] = []
    for (let index = 0; index < 5; index++) {
      const take = takeStart(state, limit, START_MS)
      state = take.state
      if (!take.ok) waits.push(take.waitMs)
    }
    expect(waits).toEqual([100, 200, 300, 400, 500])
  })

  test('T6 a near miss waits for the very next token instead of going to the end of a long line', () => {
    const limit = rateLimit({ limit: 1, per: '1s', burst: 1 })
    let state: RateState | undefined
    for (let index = 0; index < 1_000; index++) state = reserveStart(state, limit, START_MS).state
    state = takeStart(state, limit, START_MS + 40).state
    expect(takeStart(state, limit, START_MS + 1_005)).toMatchObject({ ok: false, waitMs: 35 })
  })

  test('T6 any arrival pattern: starts in any window t are at most burst + rate * t', () => {
    const arrivals = fc.array(fc.integer({ min: 0, max: 20_000 }), { maxLength: 150 })
    fc.assert(
      fc.property(anyLimit, arrivals, (limit, offsets) => {
        let state: RateState | undefined
        const startsMs: number[] = []
        for (const offset of offsets.sort((a, b) => a - b)) {
          const take = takeStart(state, limit, START_MS + offset)
          state = take.state
          if (take.ok) startsMs.push(START_MS + offset)
        }
        expectWithinRate(startsMs, limit)
      }),
    )
  })

  test('T6 60 s without workers and many reservations: the rate still holds, and every job starts', () => {
    const scenario = fc.record({
      limit: anyLimit,
      reserved: fc.array(fc.integer({ min: 0, max: 60_000 }), { minLength: 1, maxLength: 120 }),
      seed: fc.integer({ min: 1, max: 1_000 }),
    })
    fc.assert(
      fc.property(scenario, ({ limit, reserved, seed }) => {
        let state: RateState | undefined
        const readyMs = reserved
          .sort((a, b) => a - b)
          .map((offset) => {
            const place = reserveStart(state, limit, START_MS + offset)
            state = place.state
            return START_MS + offset + place.waitMs
          })
        const backMs = START_MS + 60_000
        const coming = readyMs.map((atMs) => Math.max(atMs, backMs))
        const result = simulate(limit, coming, (turn) => (turn * seed) % 17, state)
        expect(result.starts).toHaveLength(reserved.length)
        expectWithinRate(result.startsMs, limit)
        const lastMs = Math.max(...result.startsMs) - backMs
        expect(lastMs).toBeLessThanOrEqual(3 * reserved.length * (intervalMs(limit) + 17) + 100)
      }),
      { numRuns: 60 },
    )
  })

  test('T6 nobody starves: jobs that come late to their places all start, and few turns are wasted', () => {
    const limit = rateLimit({ limit: 10, per: '1s', burst: 1 })
    const coming = Array.from({ length: 200 }, (_, job) => START_MS + job * 100 + ((job * 37) % 20))
    const { starts, turns } = simulate(limit, coming, (turn) => turn % 3)
    expect(starts).toHaveLength(200)
    expect(turns).toBeLessThan(600)
    expect(Math.max(...starts.map((start) => start.atMs)) - START_MS).toBeLessThan(200 * 100 * 1.1)
  })
})

describe('T6 reserveStart', () => {
  test('T6 never refuses and spaces starts at the rate after half of the burst', () => {
    const limit = rateLimit({ limit: 10, per: '1s', burst: 4 })
    let state: RateState | undefined
    const waits = Array.from({ length: 5 }, () => {
      const place = reserveStart(state, limit, START_MS)
      state = place.state
      return place.waitMs
    })
    expect(waits).toEqual([0, 0, 100, 200, 300])
  })

  test('T6 with an empty bucket the first place is where the next token is', () => {
    const limit = rateLimit({ limit: 1, per: '1s', burst: 1 })
    const { state } = takeStart(undefined, limit, START_MS)
    const first = reserveStart(state, limit, START_MS)
    expect(first.waitMs).toBe(1_000)
    expect(reserveStart(first.state, limit, START_MS).waitMs).toBe(2_000)
  })

  test('T6 jobs that come exactly at their places are all let through', () => {
    fc.assert(
      fc.property(anyLimit, fc.integer({ min: 1, max: 100 }), (limit, count) => {
        // Waits are whole milliseconds. Below an interval of 2 ms the rounding is more than half a place,
        // and with a burst of 1 a job may be asked to come back twice (2.53 turns a job at 1.17 ms).
        fc.pre(intervalMs(limit) >= 2)
        let state: RateState | undefined
        const places = Array.from({ length: count }, () => {
          const place = reserveStart(state, limit, START_MS)
          state = place.state
          return START_MS + place.waitMs
        })
        const { startsMs, turns } = simulate(limit, places, () => 0, state)
        expect(startsMs).toHaveLength(count)
        expect(turns).toBeLessThanOrEqual(2 * count)
      }),
    )
  })
})
