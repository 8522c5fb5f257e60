// The decisions of a supervisor, as tables.
import { describe, expect, test } from 'vitest'
import {
  decideHealth,
  decideRecycle,
  decideRestart,
  jobsDeadlineMs,
  leavingMax,
  ownMaxAgeMs,
  ownShare,
} from './restart.ts'

const CRASH = { livedMs: 100, wasReady: true, wasKilled: false, killsLately: 0, isLatest: true } as const

describe('restart', () => {
  test('P1 the first restart is at once, then a second, doubling up to a minute, and the fifth is a crash loop', () => {
    let shortLives = 0
    const seen = Array.from({ length: 10 }, () => {
      const restart = decideRestart(shortLives, CRASH)
      shortLives = restart.shortLives
      return [restart.delayMs, restart.isCrashLoop]
    })
    expect(seen).toEqual([
      [0, false],
      [1_000, false],
      [2_000, false],
      [4_000, false],
      [8_000, true],
      [16_000, true],
      [32_000, true],
      [60_000, true],
      [60_000, true],
      [60_000, true],
    ])
    expect(decideRestart(1_000_000, CRASH).delayMs).toBe(60_000)
  })

  test('P1 a pool may have waits of its own', () => {
    const terms = { delayMinMs: 10, delayMaxMs: 30, stableAfterMs: 50, crashLoopAfter: 3 }
    const seen = [0, 1, 2, 3, 4].map((before) => decideRestart(before, { ...CRASH, livedMs: 49 }, terms))
    expect(seen.map(({ delayMs, isCrashLoop }) => [delayMs, isCrashLoop])).toEqual([
      [0, false],
      [10, false],
      [20, true],
      [30, true],
      [30, true],
    ])
    expect(decideRestart(9, { ...CRASH, livedMs: 50 }, terms)).toEqual({
      delayMs: 0,
      shortLives: 0,
      isCrashLoop: false,
    })
  })

  test.each([
    ['a long life makes good', 4, { ...CRASH, livedMs: 10_000 }, { delayMs: 0, shortLives: 0, isCrashLoop: false }],
    ['the long life of an older one does not', 4, { ...CRASH, livedMs: 10_000, isLatest: false }, { shortLives: 4 }],
    ['a long start is no life', 1, { ...CRASH, livedMs: 90_000, wasReady: false }, { delayMs: 1_000, shortLives: 2 }],
    ['killed from outside', 3, { ...CRASH, wasKilled: true, killsLately: 30 }, { delayMs: 0, shortLives: 4 }],
    ['killed over and over', 9, { ...CRASH, wasKilled: true, killsLately: 3 }, { delayMs: 0, isCrashLoop: true }],
    ['killed far too often', 3, { ...CRASH, wasKilled: true, killsLately: 41 }, { delayMs: 4_000 }],
    ['killed before it worked', 1, { ...CRASH, wasReady: false, wasKilled: true, killsLately: 1 }, { delayMs: 1_000 }],
  ])('P1 %s', (_, before, death, expected) => {
    expect(decideRestart(before, death)).toMatchObject(expected)
  })
})

describe('recycle', () => {
  const limits = { memoryBytes: 512, maxJobs: 100, maxAgeMs: 1_000 }
  test.each([
    [{ rssBytes: 512, processed: 99, ageMs: 999 }, null],
    [{ rssBytes: 513, processed: 100, ageMs: 1_000 }, 'memory'],
    [{ rssBytes: 1, processed: 100, ageMs: 1_000 }, 'max-jobs'],
    [{ rssBytes: 1, processed: 1, ageMs: 1_000 }, 'max-age'],
  ])('P1 %o: %s', (seen, reason) => {
    expect(decideRecycle(seen, limits)).toBe(reason)
  })

  test('P1 ages are spread over a fifth, and no age stays none', () => {
    expect([0, 0.5, 1].map((value) => ownMaxAgeMs(1_000, () => value))).toEqual([1_000, 900, 800])
    expect(ownMaxAgeMs(Infinity, () => 0.5)).toBe(Infinity)
  })

  test('P1 at most three of ten leave at once, and of few at least one', () => {
    expect([1, 2, 3, 6, 7, 10, 20].map(leavingMax)).toEqual([1, 1, 1, 1, 2, 3, 6])
  })
})

describe('health', () => {
  const times = { healthCheckMs: 5_000, unresponsiveMs: 60_000, startTimeoutMs: 30_000 }
  test.each([
    [{ isReady: false, startingMs: 30_000, silentMs: 30_000 }, 'ok'],
    [{ isReady: false, startingMs: 30_001, silentMs: 0 }, 'end'],
    [{ isReady: true, startingMs: 90_000, silentMs: 15_000 }, 'ok'],
    [{ isReady: true, startingMs: 90_000, silentMs: 15_001 }, 'unhealthy'],
    [{ isReady: true, startingMs: 90_000, silentMs: 60_001 }, 'end'],
  ] as const)('P1 %o: %s', (seen, verdict) => {
    expect(decideHealth(seen, times)).toBe(verdict)
  })
})

describe('share of a plan', () => {
  const bounds = { min: 2, max: 5 }
  test.each([
    [null, null],
    [{ shares: {} }, null],
    [{ shares: { other: 3 } }, null],
    [{ shares: { me: 3 } }, 3],
    [{ shares: { me: 1 } }, 2],
    [{ shares: { me: 99 } }, 5],
    [{ shares: { me: 2.5 } }, null],
    [{ shares: JSON.parse('{"me":"3"}') as Record<string, number> }, null],
  ])('P1 %o: %s', (plan, share) => {
    expect(ownShare(plan, 'me', bounds)).toBe(share)
    expect(ownShare(plan, 'toString', bounds)).toBeNull()
  })
})

test('P1 jobs are given back before the deadline of the process', () => {
  expect([0, 1_000, 2_500, 5_000, 60_000].map(jobsDeadlineMs)).toEqual([0, 400, 1_000, 3_000, 58_000])
})
