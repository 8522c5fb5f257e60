// The checks of what only some scenarios or systems have, each fed with a violation that was planted.
import { describe, expect, test } from 'vitest'
import { booksOf } from '../../chaos/books.ts'
import { startedAgain } from '../../chaos/checks/delivery.ts'
import { drainFlaws, robbedByDrain } from '../../chaos/checks/drain.ts'
import { timeliness } from '../../chaos/checks/due.ts'
import { bounded } from '../../chaos/checks/memory.ts'
import { reconnected } from '../../chaos/checks/reconnect.ts'
import { hasCaughtUp, wholeBatch, wrongBatches, wrongTicks } from '../../chaos/checks/side.ts'
import { robbedByDeadline, slotsFreed } from '../../chaos/checks/slots.ts'
import { needless, unclear } from '../../chaos/refusals.ts'
import { LEDGER, RECORDED, RUNS, books } from './planted-books.ts'

describe('refusals', () => {
  const told = ['old: no reason', 'no room: disk full', 'it broke']

  test('one that does not say why is found, with its words; earlier ones are not counted', () => {
    expect(unclear(told, 1, /disk full/)).toEqual(['1 refusals do not say why, as: it broke'])
    expect(unclear(told.slice(0, 2), 1, /disk full/)).toEqual([])
  })

  test('one that was not needed is found', () => {
    expect(needless(told, 2)).toEqual(['1 jobs were refused although PostgreSQL was well, as: it broke'])
    expect(needless(told, 3)).toEqual([])
  })
})

describe('beside the load', () => {
  const count = { total: 10, completed: 10 }
  const right = { name: 'x', counted: count, recounted: count, isSealed: true, isFinished: true, callbacks: 1 }

  const asked = booksOf(['batch-asked x 1 10', 'batch-acked x 2', 'batch-asked open 3 10'], []).batches
  const open = { ...right, name: 'open', isSealed: false, isFinished: false, callbacks: 0 }

  test('a batch is wrong when its counters differ from its jobs or its callback did not come once', () => {
    const miscounted = (batch: object) => wrongBatches([{ ...right, ...batch }], asked).miscounted
    expect(wrongBatches([right, open], asked)).toEqual({ gone: [], unfinished: [], miscounted: [] })
    expect(miscounted({ recounted: { total: 10, completed: 9 } })).toEqual(['x'])
    expect(miscounted({ recounted: { total: 11, completed: 10 } })).toEqual(['x'])
    expect(miscounted({ callbacks: 0 })).toEqual(['x'])
    expect(miscounted({ callbacks: 2 })).toEqual(['x'])
  })

  test('a batch that was acknowledged is there, once, with every job that was asked for', () => {
    expect(wrongBatches([open], asked).gone).toEqual(['x'])
    const seven = { total: 7, completed: 7 }
    const less = { counted: seven, recounted: seven }
    expect(wrongBatches([{ ...right, ...less }], asked).miscounted).toEqual(['x'])
    expect(wrongBatches([right, right], asked).miscounted).toEqual(['x', 'x'])
    expect(wrongBatches([right, { ...right, name: 'y' }], asked).miscounted).toEqual(['y'])
    // Nobody was told that it is there: as long as it is open it may be a part, and not when it is sealed.
    expect(wrongBatches([right, { ...open, ...less }], asked).miscounted).toEqual([])
    expect(wrongBatches([right, { ...right, ...less, name: 'open' }], asked).miscounted).toEqual(['open'])
  })

  test('a batch that is sealed finishes, also when one of its jobs is stuck', () => {
    const stuck = { counted: { total: 10, completed: 9 }, recounted: { total: 10, completed: 9 }, callbacks: 0 }
    expect(wrongBatches([{ ...right, ...stuck, isFinished: false }], asked).unfinished).toEqual(['x'])
    expect(wrongBatches([{ ...open, name: 'x' }], asked).unfinished).toEqual(['x'])
    expect(wrongBatches([right, { ...open, isSealed: true }], asked).unfinished).toEqual(['open'])
  })

  test('a batch that a scenario is about is finished, with every job and one callback', () => {
    const side = (batch: object) => ({ batches: [{ ...right, ...batch }], ticksMs: [], tickEveryMs: 1 })
    const broken = ['the batch of 10 did not end as a whole']
    expect(wholeBatch(side({}), 'x', 10)).toEqual({ figures: { members: 10 }, broken: [] })
    expect(wholeBatch(side({}), 'y', 10)).toMatchObject({ broken })
    expect(wholeBatch(undefined, 'x', 10)).toMatchObject({ broken })
    expect(wholeBatch(side({ isFinished: false }), 'x', 10)).toMatchObject({ broken })
    expect(wholeBatch(side({ callbacks: 2 }), 'x', 10)).toMatchObject({ broken })
    expect(wholeBatch(side({ counted: { total: 10, completed: 9 } }), 'x', 10)).toMatchObject({ broken })
    expect(wholeBatch(side({ recounted: { total: 10, completed: 9 } }), 'x', 10)).toMatchObject({ broken })
  })

  test('a tick that fired twice or not at all is wrong', () => {
    const load = { fromMs: 1_200, toMs: 3_900 }
    expect(wrongTicks([3_000, 1_000, 2_000], 1_000, load)).toBe(0)
    expect(wrongTicks([1_000, 2_000, 2_000, 3_000], 1_000, load)).toBe(1)
    expect(wrongTicks([1_000, 4_000], 1_000, load)).toBe(2)
    // One too many does not make up for one that is missing.
    expect(wrongTicks([1_000, 1_500, 3_000], 1_000, load)).toBe(2)
  })

  test('a schedule that never fires, begins late or stops for good is wrong', () => {
    const load = { fromMs: 1_200, toMs: 9_900 }
    expect(wrongTicks([], 1_000, load)).toBe(8)
    expect(wrongTicks([1_000, 2_000, 3_000], 1_000, load)).toBe(6)
    expect(wrongTicks([7_000, 8_000, 9_000], 1_000, load)).toBe(5)
    const facts = { batches: [], tickEveryMs: 1_000 }
    expect(hasCaughtUp({ ...facts, ticksMs: [8_000, 9_000] }, 9_900)).toBe(true)
    expect(hasCaughtUp({ ...facts, ticksMs: [8_000] }, 9_900)).toBe(false)
    expect(hasCaughtUp({ ...facts, ticksMs: [] }, 9_900)).toBe(false)
  })
})

describe('later', () => {
  const ledger = ['asked a 1', 'due a 1000', 'acked a 2']

  test('a job that begins before its time or long after it is told', () => {
    const at = (startMs: number) => timeliness(books([`start a 7 ${startMs}`], ledger), 500)
    expect(at(1_200)).toEqual({ figures: { early: 0, late: 0, latestSeconds: 0.2 }, broken: [] })
    expect(at(990).broken).toEqual(['1 began before their time'])
    expect(at(1_501).broken).toEqual(['1 began more than 0.5 s after their time'])
  })

  test('without such jobs nothing was shown', () => {
    expect(timeliness(books(), 500).broken).toEqual(['no job was for later'])
  })
})

describe('handlers past their deadline', () => {
  const facts = { overrunning: ['a'], waiting: ['b'], deadlineMs: 1_000 }
  const runs = ['start a 7 0', 'start b 7 2100', 'end b 7 3600 2100', 'start a 7 3700', 'end a 7 4000 0']

  test('a slot counts as free when somebody else begins in it', () => {
    const { figures, broken } = slotsFreed(books(runs), facts)
    expect({ figures, broken }).toEqual({ figures: { slotsFreeSeconds: 2.1, lateResults: 1 }, broken: [] })
    const late = ['start a 7 0', 'end a 7 4000 0', 'start b 7 4001']
    expect(slotsFreed(books(late), facts).broken).toEqual(['not every slot was free 3 s later', 'no result came late'])
    expect(slotsFreed(books(late.slice(0, 2)), facts).broken).toContain('not every slot was free 3 s later')
  })

  test('only who passed it may run again', () => {
    const robbed = robbedByDeadline(books(runs), facts)
    expect(robbed).toEqual([{ pid: 7, fromMs: 1_000, toMs: 1_000, heldUntilMs: 900, ids: new Set(['a']) }])
    expect(startedAgain(books(runs), robbed)).toEqual({ allowed: ['a'], forbidden: [] })
  })
})

describe('a worker that gets SIGTERM', () => {
  const drain = { pid: 7, termMs: 1_000, exitMs: 4_200, exitCode: 0, deadlineMs: 3_000, outlasting: ['a'] }
  const runs = ['start a 7 900', 'start b 7 1100', 'end b 7 1200', 'start a 8 4300', 'end a 8 4310']
  const flaws = (given: readonly string[], other: object = {}, attempts = 1) =>
    drainFlaws(books(given), { ...drain, ...other }, [{ ...RECORDED[0]!, attempts }])

  test('ends in time, and what it gave back starts soon elsewhere with all of its attempts', () => {
    expect(flaws(runs)).toEqual([])
    expect(flaws(runs, { exitMs: 6_001 })).toEqual(['it had not ended 5 s after SIGTERM'])
    expect(flaws(runs, { exitMs: Infinity })).toEqual(['it had not ended 5 s after SIGTERM'])
    expect(flaws(runs, { exitCode: 1 })).toEqual(['it ended with code 1'])
    expect(flaws(runs, { exitCode: null })).toEqual(['it ended with a signal'])
    expect(flaws([...runs, 'start c 7 2001'])).toEqual(['it began 1 jobs after SIGTERM'])
    const late = ['1 jobs that it gave back did not start within 2 s of its end']
    expect(flaws([...runs.slice(0, 3), 'start a 8 6201'])).toEqual(late)
    expect(flaws(runs.slice(0, 3))).toEqual(late)
    expect(flaws(runs, {}, 2)).toEqual(['1 jobs that it gave back have lost an attempt'])
  })

  test('gives nothing else back, and nothing before its deadline', () => {
    const robbed = [robbedByDrain(drain)]
    expect(startedAgain(books(runs), robbed)).toEqual({ allowed: ['a'], forbidden: [] })
    expect(startedAgain(books([...runs.slice(0, 3), 'start a 8 3999']), robbed).forbidden).toEqual(['a'])
    expect(startedAgain(books([...runs, 'start b 8 4300']), robbed).forbidden).toEqual(['b'])
  })
})

describe('crowds', () => {
  const MIB = 2 ** 20

  test('a worker that grows with the backlog, and a window that is not kept, are told', () => {
    const calm = { rssBefore: [90 * MIB, 90 * MIB], rssAfter: [100 * MIB, 130 * MIB] }
    expect(bounded(calm)).toEqual({ figures: { rssGrowthMiB: 40 }, broken: [] })
    expect(bounded({ ...calm, rssAfter: [100 * MIB, 390 * MIB] }).broken).toEqual(['a worker grew by 300 MiB'])
    expect(bounded({ ...calm, tokens: { seen: [5, 10], max: 10 } }).broken).toEqual([])
    expect(bounded({ ...calm, tokens: { seen: [5, 11], max: 10 } }).broken).toEqual([
      '11 tokens in Redis, 10 are allowed',
    ])
    expect(bounded({ ...calm, tokens: { seen: [0], max: 10 } }).broken).toEqual(['no token was seen in Redis'])
  })

  test('too many new connections, and a job that waits afterwards, are told', () => {
    const facts = { before: 8, after: 10, made: 20, calmMs: 3 }
    expect(reconnected(books(), facts)).toEqual({
      figures: { connections: 10, churn: 2, longestWaitSeconds: 0.008 },
      broken: [],
    })
    expect(reconnected(books(), { ...facts, made: 31 }).broken).toEqual([
      'more than 3 times as many connections were made',
    ])
    const many = { ...facts, before: 80, after: 100 }
    expect(reconnected(books(), { ...many, made: 200 }).broken).toEqual([])
    expect(reconnected(books(), { ...many, made: 201 }).broken).toEqual([
      'more than 2 times as many connections were made',
    ])
    expect(reconnected(books(), { ...facts, made: 0 }).broken).toEqual(['no connection was lost'])
    expect(reconnected(books(), { ...facts, calmMs: 4 }).broken).toEqual(['nobody enqueued anything afterwards'])
    const slow = books([...RUNS.slice(0, 2), 'start b 8 1004'])
    expect(reconnected(slow, facts).broken).toEqual(['a job waited for more than 1 s'])
    const behind = books([...RUNS, 'start c 8 9000'], [...LEDGER, 'acked c 6', 'asked c 5 g'])
    expect(reconnected(behind, facts).broken).toEqual([])
  })
})
