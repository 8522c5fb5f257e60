// The virtual clock on its own, and that a seed decides everything that is left to chance.
import { describe, expect, test } from 'vitest'
import { createTestMillrace, VirtualClock } from '../../src/testing/index.ts'
import { JOBS, charge } from './jobs.ts'

describe('virtual clock', () => {
  test('O7 time stands still until it is moved', async () => {
    const clock = new VirtualClock(new Date('2031-05-06T07:08:09Z'))
    expect(clock.now().toISOString()).toBe('2031-05-06T07:08:09.000Z')
    await clock.breathe()
    expect(clock.monoMs()).toBe(0)
    await clock.advance('1h')
    expect(clock.now().toISOString()).toBe('2031-05-06T08:08:09.000Z')
    expect(clock.monoMs()).toBe(3_600_000)
  })

  test('O7 timers fire in the order they are due, and what they start goes before the next one', async () => {
    const clock = new VirtualClock()
    const seen: string[] = []
    clock.timer(20, () => seen.push('second'))
    clock.timer(20, () => seen.push('third'))
    clock.timer(10, () => {
      void Promise.resolve()
        .then(() => undefined)
        .then(() => seen.push('what the first one started'))
      clock.timer(5, () => seen.push(`its own timer at ${clock.monoMs()}`))
    })
    clock.timer(21, () => seen.push('too late'))
    clock.timer(15, () => seen.push('cancelled')).cancel()
    await clock.advance(20)
    expect(seen).toEqual(['what the first one started', 'its own timer at 15', 'second', 'third'])
  })

  test('O7 set() moves forward like advance, and back only on the wall', async () => {
    const clock = new VirtualClock(1_000)
    const seen: number[] = []
    clock.timer(500, () => seen.push(clock.nowMs()))
    await clock.set(2_000)
    expect(seen).toEqual([1_500])
    clock.timer(100, () => seen.push(clock.nowMs()))
    await clock.set(new Date(0))
    expect([clock.nowMs(), clock.monoMs()]).toEqual([0, 1_000])
    await clock.advance(100)
    expect(seen).toEqual([1_500, 100])
  })

  test('O7 a clock cannot be moved by nonsense', async () => {
    const clock = new VirtualClock()
    await expect(clock.set(new Date(Number.NaN))).rejects.toMatchObject({ code: 'INVALID_OPTION' })
    await expect(clock.advance(-1)).rejects.toMatchObject({ code: 'INVALID_DURATION' })
  })
})

describe('seed', () => {
  async function history(seed: number) {
    const mill = await createTestMillrace({ jobs: JOBS, seed })
    const handles = await mill.enqueueMany([
      [charge, { cents: 1 }],
      [charge, { cents: 2 }],
    ])
    const delays = []
    for (let run = 0; run < 4; run++) {
      delays.push((await mill.runNext())?.delayMs)
      if (run === 1) await mill.clock.advance('1m')
    }
    return { ids: handles.map(({ id }) => id), delays }
  }

  test('O7 the same seed gives the same ids and the same retry delays', async () => {
    const [first, again, other] = [await history(7), await history(7), await history(8)]
    expect(again).toEqual(first)
    expect(other.ids).not.toEqual(first.ids)
    expect(other.delays).not.toEqual(first.delays)
    expect(new Set(first.ids).size).toBe(2)
  })

  test('O7 retries wait within the bounds of their jitter', async () => {
    const delays = []
    for (let seed = 0; seed < 50; seed++) delays.push(...(await history(seed)).delays)
    const firsts = delays.filter((_, index) => index % 4 < 2)
    const seconds = delays.filter((_, index) => index % 4 >= 2)
    for (const delayMs of firsts) expect(delayMs).toSatisfy((ms: number) => ms >= 10_000 && ms <= 13_000)
    for (const delayMs of seconds) expect(delayMs).toSatisfy((ms: number) => ms >= 20_000 && ms <= 26_000)
    expect(new Set(firsts).size).toBeGreaterThan(50)
  })

  test('O7 the clock starts where it is told to', async () => {
    const mill = await createTestMillrace({ jobs: JOBS, start: new Date('2028-02-29T00:00:00Z') })
    const { id } = await mill.enqueue(charge, { cents: 1 })
    expect((await mill.jobs.get(id))?.enqueuedAt.toISOString()).toBe('2028-02-29T00:00:00.000Z')
  })
})
