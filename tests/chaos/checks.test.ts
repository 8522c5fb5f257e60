// The checks that judge every cell of the chaos runs, each fed with a violation that was planted in the books: a check that
// finds nothing proves nothing. What only some scenarios have is in scenario-checks.test.ts.
import { describe, expect, test } from 'vitest'
import { booksOf } from '../../chaos/books.ts'
import {
  lostByRecord,
  lostForNothing,
  overlapping,
  stale,
  startedAgain,
  stillCounted,
} from '../../chaos/checks/delivery.ts'
import { stillThere, unexpected, unfinished } from '../../chaos/checks/delivery.ts'
import type { Robbed } from '../../chaos/checks/delivery.ts'
import { idle, takesAfterMs } from '../../chaos/checks/idle.ts'
import { begunInDoubt, withLeases } from '../../chaos/checks/lease.ts'
import { groupDepth, outOfOrder } from '../../chaos/checks/order.ts'
import { endsPerSecond, firstStartMs, restartsOf, steadyAfterMs } from '../../chaos/checks/pace.ts'
import { RECORD, RECORDED, RUNS, books } from './planted-books.ts'

function died(pid: number, atMs: number): Robbed {
  return { pid, fromMs: atMs, toMs: atMs }
}

describe('books', () => {
  test('an end belongs to the start of the same job in the same process', () => {
    const { runs } = books(['start a 7 10', 'start a 8 12', 'end a 7 20'])
    expect(runs).toEqual([
      { id: 'a', pid: 7, startMs: 10, endMs: 20 },
      { id: 'a', pid: 8, startMs: 12 },
    ])
  })

  test('two runs of a job in one process are told apart by their starts', () => {
    const { runs } = books(['start a 7 10', 'start a 7 15', 'end a 7 20 15', 'end a 7 30 10'])
    expect(runs).toEqual([
      { id: 'a', pid: 7, startMs: 10, endMs: 30 },
      { id: 'a', pid: 7, startMs: 15, endMs: 20 },
    ])
  })
})

test('what was due and never asked for is counted', () => {
  expect(booksOf(['withheld 12 5', 'asked a 6', 'withheld 3 7'], [])).toMatchObject({ withheld: 15 })
  expect(books().withheld).toBe(0)
})

describe('lost and unexpected', () => {
  test('a run as it should be has neither', () => {
    expect([unfinished(books()), lostByRecord(books(), RECORDED), unexpected(books(), RECORDED)]).toEqual([[], [], []])
  })

  test('an acknowledged job whose handler never ended is missed; one that was only asked for is not', () => {
    expect(unfinished(books(RUNS.slice(0, 3)))).toEqual(['b'])
  })

  test('an acknowledged job that the system does not call completed is missed', () => {
    expect(lostByRecord(books(), [RECORDED[0]!, { ...RECORDED[1]!, status: 'running' }])).toEqual(['b'])
    expect(lostByRecord(books(), [RECORDED[0]!])).toEqual(['b'])
  })

  test('what the system still has is stuck and not lost', () => {
    expect(stillThere(['a', 'b', 'c'], [{ ...RECORDED[0]!, status: 'running' }, RECORDED[1]!])).toBe(1)
    expect(stillCounted(5, { waiting: 1, running: 2, failed: 0, completed: null }, 0)).toBe(3)
    expect(stillCounted(1, { waiting: 1, running: 2, failed: 0, completed: null }, 0)).toBe(1)
  })

  test('a job that had to fail does not stand for one that is lost', () => {
    expect(stillCounted(1, { waiting: 0, running: 0, failed: 1, completed: null }, 1)).toBe(0)
    expect(stillCounted(1, { waiting: 0, running: 0, failed: 0, completed: null }, 1)).toBe(0)
  })

  test('what the store still had is lost for nothing, what it never had is not', () => {
    const all = booksOf(['asked a 100', 'acked a 101', 'asked b 600', 'acked b 601', 'asked c 900', 'acked c 901'], [])
    const lost = ['a', 'b', 'c']
    expect(lostForNothing(lost, all, { backMs: 1_000 })).toEqual([])
    expect(lostForNothing(lost, all, { backMs: 1_000, kept: new Set(['b']) })).toEqual(['b'])
    expect(lostForNothing(lost, all, { backMs: 1_000, keptBeforeMs: 200 })).toEqual(['a'])
    // It was back when it was asked.
    expect(lostForNothing(lost, all, { backMs: 800 })).toEqual(['c'])
  })

  test('a job that nobody asked for is found in the runs and in the record', () => {
    expect(unexpected(books([...RUNS, 'start x 7 30']))).toEqual(['x'])
    expect(unexpected(books(), [{ ...RECORDED[0]!, id: 'y' }])).toEqual(['y'])
  })
})

describe('duplicates', () => {
  const twice = books([...RUNS, 'start b 9 100', 'end b 9 101'])

  test('a second start is allowed when the process that had the job was robbed of it, and only then', () => {
    expect(startedAgain(twice, [died(8, 15)])).toEqual({ allowed: ['b'], forbidden: [] })
    expect(startedAgain(twice, [])).toEqual({ allowed: [], forbidden: ['b'] })
    expect(startedAgain(twice, [died(7, 15)])).toEqual({ allowed: [], forbidden: ['b'] })
    expect(startedAgain(twice, [died(8, 5)])).toEqual({ allowed: [], forbidden: ['b'] })
    expect(startedAgain(twice, [{ pid: 8, fromMs: 5, toMs: 12 }])).toEqual({ allowed: ['b'], forbidden: [] })
  })

  test('who was robbed of some jobs may not repeat the others', () => {
    expect(startedAgain(twice, [{ ...died(8, 15), ids: new Set(['b']) }])).toEqual({ allowed: ['b'], forbidden: [] })
    expect(startedAgain(twice, [{ ...died(8, 15), ids: new Set(['a']) }])).toEqual({ allowed: [], forbidden: ['b'] })
    expect(restartsOf(twice, [{ ...died(8, 15), ids: new Set(['a']) }]).interrupted).toBe(0)
  })

  test('a report may be on the way when its process dies, and not for longer than a second', () => {
    expect(startedAgain(twice, [died(8, 900)])).toEqual({ allowed: ['b'], forbidden: [] })
    expect(startedAgain(twice, [died(8, 1_100)])).toEqual({ allowed: [], forbidden: ['b'] })
  })

  test('two runs at once are an overlap unless the first was robbed', () => {
    const both = books([...RUNS, 'start b 9 15', 'end b 9 30'])
    expect(overlapping(both, [])).toEqual(['b'])
    expect(overlapping(both, [died(8, 12)])).toEqual([])
    expect(overlapping(twice, [])).toEqual([])
  })

  test('who takes over a job while the lease of a silent worker holds, runs it twice', () => {
    const early = books([...RUNS.slice(0, 3), 'start b 9 65', 'end b 9 70', 'end b 8 90 11'])
    const held = { ...died(8, 15), heldUntilMs: 66 }
    expect(startedAgain(early, [held])).toEqual({ allowed: [], forbidden: ['b'] })
    expect(overlapping(early, [held])).toEqual(['b'])
    expect(startedAgain(early, [{ ...held, heldUntilMs: 65 }])).toEqual({ allowed: ['b'], forbidden: [] })
    expect(overlapping(early, [{ ...held, heldUntilMs: 65 }])).toEqual([])
  })

  test('a lease surely holds for a ttl less a beat and a margin', () => {
    expect(withLeases([died(8, 1_000)], 5_000)).toEqual([{ ...died(8, 1_000), heldUntilMs: 3_750 }])
    expect(withLeases([died(8, 1_000)])).toEqual([{ ...died(8, 1_000), heldUntilMs: 6_500 }])
    const known = { ...died(8, 1_000), heldUntilMs: 1_200 }
    expect(withLeases([known], 5_000)).toEqual([known])
  })

  test('a worker that is cut off begins nothing when its ttl has passed', () => {
    const cutOff = [{ pid: 8, fromMs: 100, toMs: 10_000 }]
    const at = (pid: number, startMs: number) =>
      begunInDoubt(books([...RUNS, `start c ${pid} ${startMs}`]), cutOff, 5_000)
    expect(at(8, 5_101)).toEqual(['c'])
    expect([at(8, 5_100), at(7, 5_101), at(8, 10_000)]).toEqual([[], [], []])
  })

  test('a job that succeeded twice, or ran without a row in its trail, has had a stale result', () => {
    expect(stale(books(), RECORDED)).toEqual([])
    expect(stale(books(), [{ ...RECORDED[0]!, rows: 2, successes: 2 }])).toEqual(['a'])
    expect(stale(twice, RECORDED)).toEqual(['b'])
    expect(stale(twice, RECORDED, true)).toEqual([])
  })

  test('a result of a run that another had overtaken, or of no run at all, is stale', () => {
    const overtaken = books(['start a 7 10', 'start a 9 15', 'end a 7 20', 'end a 9 30'])
    const record = { id: 'a', ...RECORD, rows: 2 }
    expect(stale(overtaken, [{ ...record, result: '9 15' }])).toEqual([])
    expect(stale(overtaken, [{ ...record, result: '7 10' }])).toEqual(['a'])
    expect(stale(overtaken, [{ ...record, result: null }])).toEqual(['a'])
  })
})

describe('order', () => {
  const ledger = ['asked a 1 g', 'acked a 2', 'asked b 3 g', 'acked b 4', 'asked c 5 g', 'acked c 6']

  test('a job that starts before the one before it has ended is out of order', () => {
    const right = ['start a 7 10', 'end a 7 20', 'start b 8 20', 'end b 8 30', 'start c 7 31', 'end c 7 32']
    expect(outOfOrder(books(right, ledger), [])).toEqual([])
    const early = ['start a 7 10', 'start b 8 15', 'end a 7 20', 'end b 8 30', 'start c 7 31', 'end c 7 32']
    expect(outOfOrder(books(early, ledger), [])).toEqual(['b'])
    const swapped = ['start b 8 10', 'end b 8 15', 'start a 7 20', 'end a 7 30', 'start c 7 31', 'end c 7 32']
    expect(outOfOrder(books(swapped, ledger), [])).toEqual(['b'])
  })

  test('a group is as deep as jobs of it were there at once', () => {
    const oneByOne = ['start a 7 2', 'end a 7 3', 'start b 8 4', 'end b 8 5', 'start c 7 6', 'end c 7 7']
    expect(groupDepth(books(oneByOne, ledger))).toBe(1)
    expect(groupDepth(books([...oneByOne.slice(0, 3), 'end b 8 7', 'start c 7 8'], ledger))).toBe(2)
    expect(groupDepth(books([], ledger))).toBe(3)
    expect(groupDepth(books([], ['asked a 1 g', 'acked a 2', 'asked b 3 h', 'acked b 4', 'asked c 5 g']))).toBe(1)
    expect(groupDepth(books())).toBe(0)
  })

  test('the next of a group may begin beside a run that was robbed of its job', () => {
    const zombie = ['start a 7 10', 'start a 8 40', 'end a 8 41', 'start b 8 42', 'end a 7 50', 'end b 8 51']
    expect(outOfOrder(books(zombie, ledger), [died(7, 20)])).toEqual([])
    expect(outOfOrder(books(zombie, ledger), [died(7, 5)])).toEqual(['b'])
    expect(outOfOrder(books(zombie, ledger), [{ ...died(7, 20), heldUntilMs: 41 }])).toEqual(['b'])
    expect(outOfOrder(books(zombie, ledger), [])).toEqual(['b'])
  })
})

describe('pace', () => {
  test('rates count ends inside the span', () => {
    expect(endsPerSecond(books(), { fromMs: 0, toMs: 21 })).toBeCloseTo(1000 / 21)
    expect(endsPerSecond(books(), { fromMs: 0, toMs: 500 })).toBe(4)
  })

  test('recovery is the first start of a job that was made later, or the last restart of an interrupted run', () => {
    expect(firstStartMs(books(), 3)).toBe(8)
    expect(firstStartMs(books(), 6)).toBeNull()
    const again = books(['start a 7 10', 'start b 7 11', 'end b 7 12', 'start a 8 4000'])
    expect(restartsOf(again, [died(7, 15)])).toEqual({ interrupted: 1, lastMs: 3985, never: [] })
    expect(restartsOf(again, [died(8, 15)])).toEqual({ interrupted: 0, lastMs: null, never: [] })
  })

  test('an interrupted run that nobody repeats is told', () => {
    const dead = books(['start a 7 10', 'start b 8 11', 'end b 8 21'])
    expect(restartsOf(dead, [died(7, 15)])).toEqual({ interrupted: 1, lastMs: null, never: ['a'] })
    expect(restartsOf(dead, [died(8, 15)])).toEqual({ interrupted: 1, lastMs: null, never: [] })
  })

  test('who is cut off for a while may lose what it had and what it begins meanwhile, from the first moment on', () => {
    const away = books([
      'start a 7 10',
      'end a 7 200',
      'start b 7 300',
      'end b 7 310',
      'start a 8 4000',
      'start b 8 4100',
    ])
    expect(restartsOf(away, [{ pid: 7, fromMs: 100, toMs: 9_000 }])).toEqual({
      interrupted: 1,
      lastMs: 4_000,
      never: [],
    })
  })

  test('a rate counts as reached when it is kept to the end of the load', () => {
    const late = Array.from({ length: 100 }, (_, no) => ({ id: `j${no}`, atMs: 2_000 + no * 20 }))
    const ledger = late.flatMap(({ id, atMs }) => [`asked ${id} ${atMs}`, `acked ${id} ${atMs}`])
    const runs = late.flatMap(({ id, atMs }) => [`start ${id} 7 ${atMs}`, `end ${id} 7 ${atMs}`])
    const span = { fromMs: 0, toMs: 4_000 }
    expect(steadyAfterMs(books(runs, ledger), span, 50 * 0.95)).toBe(2_000)
    expect(steadyAfterMs(books(runs, ledger), span, 60)).toBeNull()
    expect(steadyAfterMs(books(runs.slice(0, 100), ledger), span, 50 * 0.95)).toBeNull()
  })
})

describe('workers that take nothing', () => {
  const span = { fromMs: 15, toMs: 11_000 }

  test('each is looked at by itself, from the end of the fault', () => {
    const taking = books([...RUNS, 'start c 8 25', 'start d 8 40'])
    expect(takesAfterMs(taking, [7, 8, 9], 15)).toEqual([Infinity, 10, Infinity])
    expect(takesAfterMs(taking, [7, 8], 5)).toEqual([5, 6])
  })

  test('one that took nothing for as long as there was something to take is told', () => {
    expect(idle([10, 20], span)).toEqual([])
    expect(idle([10, Infinity], span)).toEqual(['1 of 2 workers took nothing for 10 s after the fault'])
    expect(idle([10_001, Infinity], span)).toEqual(['2 of 2 workers took nothing for 10 s after the fault'])
    expect(idle([10, Infinity], { ...span, toMs: 10_014 })).toEqual([])
  })
})
