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
const LEDGER = ['asked a 100', 'acked a 101', 'asked b 600', 'acked b 601']
const RUNS = ['start a 7 110', 'end a 7 120', 'start b 8 610', 'end b 8 620']
const GOOD: Evidence = {
  scenario,
  system: 'millrace',
  backend: 'redis',
  isOurs: true,
  books: booksOf(LEDGER, RUNS),
  recorded: ['a', 'b'].map((id) => ({ id, status: 'completed', rows: 1, successes: 1 })),
  census: { waiting: 0, running: 0, failed: 0, completed: 2 },
  side: {
    batches: [
      {
        name: 'x',
        counted: { total: 2, completed: 2 },
        recounted: { total: 2, completed: 2 },
        isFinished: true,
        callbacks: 1,
      },
    ],
    ticksMs: [1_000, 2_000],
    tickEveryMs: 1_000,
  },
  struck: { atMs: 500, backMs: 550, robbed: [] },
  workers: [7, 8],
  ttlMs: 5_000,
  ratePerS: 2,
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
    { books: booksOf(LEDGER, RUNS.slice(0, 3)), census: { waiting: 0, running: 1, failed: 0, completed: 1 } },
  ],
  ['1 unexpected', { books: booksOf(LEDGER.slice(0, 2), RUNS) }],
  [
    '1 stale results applied',
    { recorded: GOOD.recorded!.map((one) => ({ ...one, rows: 2, successes: one.id === 'a' ? 2 : 1 })) },
  ],
  ['1 run twice by live workers', { books: booksOf(LEDGER, [...RUNS, 'start a 8 700', 'end a 8 701']) }],
  ['recovery took more than 1 s', { books: booksOf(LEDGER, [...RUNS.slice(0, 2), 'start b 8 1900', 'end b 8 1901']) }],
  ['1 batches miscounted', { side: { ...GOOD.side!, batches: [{ ...GOOD.side!.batches[0]!, callbacks: 2 }] } }],
  ['1 ticks wrong', { side: { ...GOOD.side!, ticksMs: [1_000, 3_000] } }],
  ['a process ended by itself: Error: oh', { quits: [{ pid: 7, words: 'Error: oh' }] }],
  ['less than 150 % of the rate before', { scenario: { ...scenario, promise: { ratioMin: 1.5 } } }],
  ['the fault interrupted nothing', { scenario: { ...scenario, promise: { rerunMin: 1 } } }],
  ['the pill is not dead-lettered', { struck: { ...GOOD.struck, failed: ['b'] } }],
])('%s is a broken promise', (note, planted) => {
  const cell = judge({ ...GOOD, ...planted })
  expect(cell.ok).toBe(false)
  expect(cell.note).toContain(note)
})

test('what the contract gives up is told and not held against the cell', () => {
  const mayLose = { redis: 'it forgets' }
  const cell = judge({
    ...GOOD,
    books: booksOf(LEDGER, RUNS.slice(0, 3)),
    recorded: [],
    scenario: { ...scenario, mayLose },
  })
  expect(cell).toMatchObject({ ok: true, lost: 1, note: 'contract: it forgets' })
})
