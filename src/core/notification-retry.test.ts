import { expect, test } from 'vitest'
import { decideNotification } from './notification-retry.ts'

const terms = { retries: 3, delayMs: 300_000, ageMs: 86_400_000 }
const NOW = 1_000_000_000

test.each([
  ['replay', { failedAtMs: NOW - 300_000, replays: 0 }],
  ['replay', { failedAtMs: NOW - 300_000, replays: 2 }],
  ['given-up', { failedAtMs: NOW - 300_000, replays: 3 }],
  ['wait', { failedAtMs: NOW - 299_999, replays: 1 }],
  ['too-old', { failedAtMs: NOW - 300_000, replays: 0, enqueuedAtMs: NOW - 86_400_001 }],
  // Failed in the future of this clock.
  ['wait', { failedAtMs: NOW + 5_000, replays: 0 }],
] as const)('P4 a failed notification: %s', (verdict, failed) => {
  expect(decideNotification({ enqueuedAtMs: NOW - 600_000, ...failed }, NOW, terms)).toBe(verdict)
})
