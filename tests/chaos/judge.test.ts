// A cell is as promised only while everything holds: each planted violation alone makes it fail, with its reason.
import { expect, test } from 'vitest'
import { booksOf } from '../../chaos/books.ts'
import { judge } from '../../chaos/judge.ts'
import type { Evidence } from '../../chaos/judge.ts'
import type { Scenario } from '../../chaos/scenario.ts'

const scenario: Scenario = {
  name: 'one',
  says: 'a fault',
  backends: ['redis'],
  peers: 'usual',
  strike: () => Promise.reject(new Error('not played here')),
}
const BATCH = ['batch-asked x 90 2', 'batch-acked x 95']
const LEDGER = [...BATCH, 'asked a 100', 'acked a 101', 'asked b 600', 'acked b 601']
const RUNS = ['start a 7 110', 'end a 7 120', 'start b 8 610', 'end b 8 620']
const GOOD: Evidence = {
  scenario,
  system: 'millrace',
  backend: 'redis',
  isOurs: true,
  books: booksOf(LEDGER, RUNS),
  recorded: [
    { id: 'a', status: 'completed', attempts: 1, rows: 1, successes: 1, result: '7 110' },
    { id: 'b', status: 'completed', attempts: 1, rows: 1, successes: 1, result: '8 610' },
  ],
  census: { waiting: 0, running: 0, failed: 0, completed: 2 },
  side: {
    batches: [
      {
        name: 'x',
        counted: { total: 2, completed: 2 },
        recounted: { total: 2, completed: 2 },
        isSealed: true,
        isFinished: true,
        callbacks: 1,
      },
    ],
    ticksMs: [200, 700],
    tickEveryMs: 500,
  },
  struck: { atMs: 500, backMs: 550, robbed: [] },
  workers: [7, 8],
  alive: [8],
  ttlMs: 5_000,
  ratePerS: 2,
  isShort: false,
  load: { fromMs: 0, toMs: 1_000 },
  refused: 0,
  quits: [],
  seconds: 1,
}

test('a cell in which everything held is as promised', () => {
  expect(judge(GOOD)).toMatchObject({ ok: true, note: '', enqueued: 2, completed: 2, recoverySeconds: 0.06 })
})

test.each<readonly [string, Partial<Evidence>]>([
  ['1 lost', { books: booksOf(LEDGER, RUNS.slice(0, 3)) }],
  ['1 lost', { recorded: GOOD.recorded!.slice(0, 1) }],
  [
    '1 stuck',
    {
      books: booksOf(LEDGER, RUNS.slice(0, 3)),
      recorded: [GOOD.recorded![0]!, { ...GOOD.recorded![1]!, status: 'running' }],
    },
  ],
  // A job that has failed as it should is not in the place of one that is gone.
  [
    '1 lost',
    {
      isOurs: false,
      recorded: undefined,
      books: booksOf([...LEDGER, 'asked c 100', 'acked c 101'], [...RUNS.slice(0, 3), 'start c 7 100']),
      census: { waiting: 0, running: 0, failed: 1, completed: 1 },
      struck: { ...GOOD.struck, failed: ['c'] },
    },
  ],
  ['1 unexpected', { books: booksOf(LEDGER.slice(0, 4), RUNS) }],
  [
    '1 stale results applied',
    { recorded: GOOD.recorded!.map((one) => ({ ...one, rows: 2, successes: one.id === 'a' ? 2 : 1 })) },
  ],
  ['1 run twice by live workers', { books: booksOf(LEDGER, [...RUNS, 'start a 8 700', 'end a 8 701']) }],
  // Its worker fell silent in the middle of it, and was still trusted when the next run began.
  [
    '1 run twice by live workers; 1 overlaps',
    {
      books: booksOf(LEDGER, [...RUNS.slice(0, 3), 'start b 7 3350', 'end b 7 3360', 'end b 8 9000 610']),
      struck: { ...GOOD.struck, robbed: [{ pid: 8, fromMs: 615, toMs: 615 }] },
    },
  ],
  [
    '1 begun by a worker that was cut off for longer than its ttl',
    {
      books: booksOf([...LEDGER, 'asked c 650', 'acked c 651'], [...RUNS, 'start c 8 5700', 'end c 8 5701']),
      struck: { ...GOOD.struck, robbed: [{ pid: 8, fromMs: 650, toMs: 9_000 }] },
    },
  ],
  ['recovery took more than 1 s', { books: booksOf(LEDGER, [...RUNS.slice(0, 2), 'start b 8 1900', 'end b 8 1901']) }],
  // The other does the work of both.
  ['1 of 2 workers took nothing for 10 s after the fault', { alive: [7, 8], load: { fromMs: 0, toMs: 11_000 } }],
  ['1 batches miscounted', { side: { ...GOOD.side!, batches: [{ ...GOOD.side!.batches[0]!, callbacks: 2 }] } }],
  ['1 batches gone', { books: booksOf([...LEDGER, 'batch-asked y 700 2', 'batch-acked y 701'], RUNS) }],
  [
    '1 batches not finished',
    { side: { ...GOOD.side!, batches: [{ ...GOOD.side!.batches[0]!, isFinished: false, callbacks: 0 }] } },
  ],
  ['1 ticks wrong', { side: { ...GOOD.side!, ticksMs: [200] } }],
  ['no batch was counted', { side: { ...GOOD.side!, batches: [] } }],
  ['a process ended by itself: Error: oh', { quits: [{ pid: 7, words: 'Error: oh' }] }],
  // The store has forgotten something: that is no reason to end.
  [
    'a process ended by itself: Error: oh',
    { quits: [{ pid: 7, words: 'Error: oh' }], struck: { ...GOOD.struck, forgot: { fromMs: 0, toMs: 1_000 } } },
  ],
  ['less than 150 % of the rate before', { scenario: { ...scenario, promise: { ratioMin: 1.5 } } }],
  [
    'less than 90 % of the rate before',
    { scenario: { ...scenario, promise: { ratioMin: 0.9 } }, load: { fromMs: 500, toMs: 1_000 } },
  ],
  ['the fault interrupted nothing', { scenario: { ...scenario, interrupts: true } }],
  [
    'the fault interrupted nothing',
    { scenario: { ...scenario, interrupts: true }, isOurs: false, recorded: undefined },
  ],
  // What a scenario alone can see, of ours and of peers.
  [
    'it began too early',
    { struck: { ...GOOD.struck, findings: () => ({ figures: { early: 1 }, broken: ['it began too early'] }) } },
  ],
  ['the pill is not dead-lettered', { struck: { ...GOOD.struck, failed: ['b'] } }],
  ['2 refusals do not say why', { struck: { ...GOOD.struck, flaws: ['2 refusals do not say why'] } }],
  [
    '1 lost although the store had them',
    {
      books: booksOf(LEDGER, RUNS.slice(0, 3)),
      recorded: GOOD.recorded!.slice(0, 1),
      scenario: { ...scenario, mayLose: { redis: 'it forgets' } },
      struck: { ...GOOD.struck, backMs: 605, kept: new Set(['a', 'b']) },
    },
  ],
  // It was asked for when the store was back.
  [
    '1 lost although the store had them or was back',
    {
      books: booksOf(LEDGER, RUNS.slice(0, 3)),
      recorded: GOOD.recorded!.slice(0, 1),
      scenario: { ...scenario, mayLose: { redis: 'it forgets' } },
    },
  ],
  [
    '1 run twice by live workers',
    {
      books: booksOf(LEDGER, [...RUNS, 'start b 7 630', 'end b 7 640']),
      struck: { ...GOOD.struck, forgot: { fromMs: 0, toMs: 5_000 } },
    },
  ],
  [
    'less than 90 % of the rate before',
    {
      scenario: { ...scenario, promise: { ratioMin: { redis: 0.9 } } },
      books: booksOf(LEDGER, [...RUNS, 'start a 7 130', 'end a 7 131', 'start a 7 140', 'end a 7 141']),
    },
  ],
])('%s is a broken promise', (note, planted) => {
  const cell = judge({ ...GOOD, ...planted })
  expect(cell.ok).toBe(false)
  expect(cell.note).toContain(note)
})

test('an interrupted run that nobody repeats has no recovery, whatever new jobs do', () => {
  const books = booksOf(
    [...LEDGER, 'asked c 700', 'acked c 701'],
    [...RUNS.slice(0, 3), 'start c 7 710', 'end c 7 711'],
  )
  const struck = { atMs: 615, backMs: 620, robbed: [{ pid: 8, fromMs: 615, toMs: 615 }] }
  const cell = judge({ ...GOOD, isOurs: false, recorded: undefined, books, struck })
  expect(cell).toMatchObject({ ok: false, recoverySeconds: null })
})

test('who took the pill is expected to die', () => {
  const struck = { ...GOOD.struck, failed: ['c'], robbed: [{ pid: 9, fromMs: 700, toMs: 700 }] }
  const books = booksOf([...LEDGER, 'asked c 100', 'acked c 101'], [...RUNS, 'start c 9 690'])
  const recorded = [...GOOD.recorded!, { id: 'c', status: 'failed', attempts: 1, rows: 1, successes: 0, result: null }]
  expect(judge({ ...GOOD, books, struck, recorded, quits: [{ pid: 9, words: 'aborted' }] })).toMatchObject({
    ok: true,
    quits: 0,
  })
})

/** The store was back when the second job had just been asked for; it forgot that, and a third one ran. */
const FORGETFUL = {
  books: booksOf([...LEDGER, 'asked c 700', 'acked c 701'], [...RUNS.slice(0, 3), 'start c 7 710', 'end c 7 711']),
  recorded: [GOOD.recorded![0]!, { id: 'c', status: 'completed', attempts: 1, rows: 1, successes: 1, result: '7 710' }],
  struck: { ...GOOD.struck, backMs: 605 },
}

test('a cell says how many jobs were due and not asked for', () => {
  expect(judge({ ...GOOD, books: booksOf([...LEDGER, 'withheld 12 300'], RUNS) })).toMatchObject({ withheld: 12 })
  expect(judge(GOOD)).not.toHaveProperty('withheld')
})

test('what the contract gives up is told and not held against the cell', () => {
  const cell = judge({
    ...GOOD,
    ...FORGETFUL,
    recorded: [],
    scenario: { ...scenario, mayLose: { redis: 'it forgets' } },
  })
  expect(cell).toMatchObject({ ok: true, lost: 0, givenUp: 1, note: 'contract: it forgets' })
})

test('what the contract gives up excuses nothing else: each lost job is the one or the other', () => {
  // The store had `a`, which nobody ran; `b` it had not.
  const books = booksOf([...LEDGER, 'asked c 700', 'acked c 701'], ['start c 7 710', 'end c 7 711'])
  const planted = {
    books,
    scenario: { ...scenario, mayLose: { redis: 'it forgets' } },
    struck: { ...FORGETFUL.struck, kept: new Set(['a']) },
  }
  expect(judge({ ...GOOD, ...planted, recorded: FORGETFUL.recorded.slice(1) })).toMatchObject({
    ok: false,
    lost: 1,
    givenUp: 1,
    stuck: 0,
    note: '1 lost although the store had them or was back; contract: it forgets',
  })
  // A peer says only how many it still has: not those that its store has forgotten.
  const census = { waiting: 0, running: 1, failed: 0, completed: 1 }
  expect(judge({ ...GOOD, ...planted, isOurs: false, recorded: undefined, census })).toMatchObject({
    ok: false,
    lost: 0,
    givenUp: 1,
    stuck: 1,
    note: '1 stuck; contract: it forgets',
  })
})

test('a loss that the store never had is the contract, and a ratio that another backend promises is nothing to this one', () => {
  const cell = judge({
    ...GOOD,
    ...FORGETFUL,
    scenario: { ...scenario, mayLose: { redis: 'it forgets' }, promise: { ratioMin: { hybrid: 0.9 } } },
    struck: { ...FORGETFUL.struck, kept: new Set(['a']) },
  })
  expect(cell).toMatchObject({ ok: true, lost: 0, givenUp: 1, note: 'contract: it forgets' })
})

test('what was promised is in the cell, by default too', () => {
  const promisedIn = (planted: Partial<Evidence>) => judge({ ...GOOD, ...planted }).promised
  const none = { recoveryMaxS: null, ratioMin: null, steady: null }
  expect(promisedIn({})).toEqual({ ...none, recoveryMaxS: 1 })
  expect(promisedIn({ scenario: { ...scenario, interrupts: true } })).toEqual({ ...none, recoveryMaxS: 10 })
  expect(promisedIn({ scenario: { ...scenario, interrupts: true }, ttlMs: undefined })).toEqual({
    ...none,
    recoveryMaxS: 15,
  })
  expect(promisedIn({ ratePerS: 0 })).toEqual(none)
  const steady = { share: 0.95, withinS: 5 }
  const promise = { recoveryMaxS: { redis: 3 }, ratioMin: { hybrid: 0.9 }, steady }
  expect(promisedIn({ scenario: { ...scenario, promise } })).toEqual({
    recoveryMaxS: 3,
    ratioMin: null,
    steady: { ...steady, perSecond: 2 },
  })
  expect(promisedIn({ isOurs: false })).toBeNull()
  const rate = { scenario: { ...scenario, promise: { ratioMin: 0.9 } } }
  expect([promisedIn(rate)?.ratioMin, promisedIn({ ...rate, isShort: true })?.ratioMin]).toEqual([0.9, 0.6])
})

test('where nothing stops there is nothing to recover from, and the rate holds', () => {
  const going = { ...GOOD, scenario: { ...scenario, goesOn: true as const } }
  expect(judge(going)).toMatchObject({
    ok: true,
    recoverySeconds: null,
    promised: { recoveryMaxS: null, ratioMin: 0.9 },
  })
  expect(judge({ ...going, load: { fromMs: 0, toMs: 2_000 } }).note).toContain('less than 90 % of the rate before')
})

test('what is said of ours alone is not held against a peer', () => {
  const struck = { ...GOOD.struck, flaws: ['2 refusals do not say why'] }
  const quits = [{ pid: 7, words: 'Error: oh' }]
  expect(judge({ ...GOOD, isOurs: false, struck, quits })).toMatchObject({
    ok: true,
    note: 'a process ended by itself: Error: oh',
  })
})
