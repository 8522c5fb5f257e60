import { expect, test } from 'vitest'
import { pruneRules } from './pruner.ts'
import { checkRetention } from './retention-options.ts'

const DAY = 24 * 60 * 60_000

test('P5 the periods of the system are those of the specification unless it says otherwise', () => {
  expect(checkRetention()).toEqual({
    completedMs: 30 * DAY,
    failedMs: 365 * DAY,
    cancelledMs: 30 * DAY,
    archiveMs: 183 * DAY,
    logsMs: 90 * DAY,
    partitionMs: 7 * DAY,
  })
  expect(checkRetention({ completed: '1d', archive: null, partition: '1d' })).toMatchObject({
    completedMs: DAY,
    failedMs: 365 * DAY,
    archiveMs: null,
    partitionMs: DAY,
  })
})

test.each([
  [{ completed: 'x' }, 'INVALID_DURATION', 'retention.completed is "x"'],
  [{ partition: '1m' }, 'INVALID_DURATION', 'retention.partition is "1m"'],
  [{ complete: '1d' }, 'INVALID_OPTION', 'complete'],
])('P5 a wrong period is told by its name: %j', (options, code, message) => {
  // A mistake that the types would not let through.
  expect(() => checkRetention(options as never)).toThrow(
    expect.objectContaining({ code, message: expect.stringContaining(message) }),
  )
})

test('P5 a queue with a period of its own has a rule of its own', () => {
  const retention = { completedMs: 1, failedMs: null, cancelledMs: null }
  expect(pruneRules([{ name: 'mail', retention }], { completedMs: 2, failedMs: 3, cancelledMs: 4 })).toEqual([
    { status: 'completed', olderThanMs: 2 },
    { status: 'failed', olderThanMs: 3 },
    { status: 'cancelled', olderThanMs: 4 },
    { queue: 'mail', status: 'completed', olderThanMs: 1 },
  ])
})
