// Sharing: by hand where a reader wants to see it, and for any numbers.
import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { decideFleet } from './scaling-fleet.ts'
import type { FleetAsk } from './scaling-fleet.ts'
import { decidePool } from './scaling-pool.ts'
import { fill, shareOut, splitBudget } from './scaling-share.ts'
import type { HostShare, PoolAsk } from './scaling-share.ts'

const host = (id: string, has: number, more: Partial<HostShare> = {}): HostShare => ({
  id,
  has,
  min: 0,
  max: 15,
  draining: 0,
  ...more,
})
const shares = (total: number, hosts: readonly HostShare[]) => Object.fromEntries(shareOut(total, hosts))

describe('hosts', () => {
  test.each<[string, number, readonly HostShare[], Record<string, number>]>([
    ['balanced', 7, [host('a', 0), host('b', 0), host('c', 0)], { a: 3, b: 2, c: 2 }],
    ['the odd one stays where it is', 7, [host('a', 2), host('b', 2), host('c', 3)], { a: 2, b: 2, c: 3 }],
    ['one step up moves nothing', 6, [host('a', 2), host('b', 3)], { a: 3, b: 3 }],
    ['one step down takes from the fuller', 4, [host('a', 2), host('b', 3)], { a: 2, b: 2 }],
    ['a host that vanished is not there: its share goes to the rest', 6, [host('a', 3)], { a: 6 }],
    ['a new host takes half', 6, [host('a', 6), host('b', 0)], { a: 3, b: 3 }],
    ['a host at its maximum', 9, [host('a', 0, { max: 2 }), host('b', 0)], { a: 2, b: 7 }],
    ['a host that must have some', 3, [host('a', 0, { min: 3 }), host('b', 0)], { a: 3, b: 0 }],
    ['those that drain take room', 8, [host('a', 3, { max: 4, draining: 1 }), host('b', 3)], { a: 3, b: 5 }],
    ['more than there is room for', 9, [host('a', 0, { max: 2 }), host('b', 0, { max: 3 })], { a: 2, b: 3 }],
    ['less than the minima', 1, [host('a', 0, { min: 2 }), host('b', 1, { min: 2 })], { a: 0, b: 1 }],
    ['nobody', 5, [], {}],
  ])('P2 shares of hosts: %s', (_, total, hosts, expected) => {
    expect(shares(total, hosts)).toEqual(expected)
  })

  const anyHosts = fc
    .array(
      fc.record({
        min: fc.integer({ min: 0, max: 5 }),
        more: fc.integer({ min: 0, max: 20 }),
        has: fc.integer({ min: 0, max: 25 }),
        draining: fc.integer({ min: 0, max: 5 }),
      }),
      { minLength: 1, maxLength: 12 },
    )
    .map((list) => list.map(({ more, ...one }, index) => ({ ...one, id: `host-${index}`, max: one.min + more })))

  test('P2 shares sum up to the total and lie within the bounds of each host, whatever they are', () => {
    fc.assert(
      fc.property(anyHosts, fc.integer({ min: 0, max: 300 }), (hosts, total) => {
        const given = shareOut(total, hosts)
        const room = (one: HostShare) => Math.max(Math.min(one.has, one.max), one.max - one.draining)
        const all = hosts.reduce((sum, one) => sum + room(one), 0)
        const floor = hosts.reduce((sum, one) => sum + Math.min(one.min, room(one)), 0)
        expect([...given.values()].reduce((sum, one) => sum + one, 0)).toBe(Math.min(total, all))
        for (const one of hosts) {
          expect(given.get(one.id)).toBeLessThanOrEqual(room(one))
          if (total >= floor) expect(given.get(one.id)).toBeGreaterThanOrEqual(Math.min(one.min, room(one)))
        }
      }),
      { numRuns: 1_000 },
    )
  })

  test('P2 shares are stable: the same again moves nobody, and a step of one moves one', () => {
    fc.assert(
      fc.property(anyHosts, fc.integer({ min: 0, max: 300 }), (hosts, total) => {
        const calm = hosts.map((one) => ({ ...one, draining: 0 }))
        const before = shareOut(total, calm)
        const now = calm.map((one) => ({ ...one, has: before.get(one.id) ?? 0 }))
        expect(shareOut(total, now)).toEqual(before)
        const after = shareOut(total + 1, now)
        const moved = now.filter(({ id, has }) => after.get(id) !== has)
        expect(moved.length).toBeLessThanOrEqual(1)
      }),
      { numRuns: 1_000 },
    )
  })
})

describe('pools', () => {
  const ask = (pool: string, from: number, want: number, more: Partial<PoolAsk> = {}): PoolAsk => ({
    pool,
    from,
    want,
    min: 1,
    draining: 0,
    mayShrink: true,
    ...more,
  })

  test.each<[string, number, readonly PoolAsk[], Record<string, number>]>([
    ['enough for all', 20, [ask('a', 1, 3), ask('b', 5, 7)], { a: 3, b: 7 }],
    ['the smaller asker is served first', 20, [ask('a', 17, 19), ask('b', 1, 3)], { a: 17, b: 3 }],
    ['equals share equally', 20, [ask('a', 10, 15), ask('b', 10, 15)], { a: 10, b: 10 }],
    ['who has too much gives back', 20, [ask('a', 15, 15), ask('b', 5, 12)], { a: 10, b: 5 }],
    ['and it is taken when it is there', 20, [ask('a', 10, 12), ask('b', 5, 12)], { a: 10, b: 10 }],
    ['but not within its cooldown', 20, [ask('a', 15, 15, { mayShrink: false }), ask('b', 5, 12)], { a: 15, b: 5 }],
    ['a process that drains leaves no room', 20, [ask('a', 10, 10, { draining: 5 }), ask('b', 5, 8)], { a: 10, b: 5 }],
    ['a fleet that became smaller', 4, [ask('a', 8, 8, { mayShrink: false }), ask('b', 2, 2)], { a: 3, b: 1 }],
    ['fewer processes than pools', 1, [ask('a', 1, 1), ask('b', 1, 1)], { a: 1, b: 0 }],
  ])('P2 two queues compete: %s', (_, budget, asks, expected) => {
    expect(Object.fromEntries(splitBudget(asks, budget))).toEqual(expected)
  })

  test('P2 a split never gives more than there is, nor more than was asked for', () => {
    const any = fc.array(
      fc.record({
        from: fc.integer({ min: 0, max: 20 }),
        want: fc.integer({ min: 0, max: 20 }),
        min: fc.integer({ min: 0, max: 3 }),
        draining: fc.integer({ min: 0, max: 5 }),
        mayShrink: fc.boolean(),
      }),
      { maxLength: 8 },
    )
    fc.assert(
      fc.property(any, fc.integer({ min: 0, max: 60 }), (list, budget) => {
        const asks = list.map((one, index) => ({ ...one, pool: `p${index}` }))
        const given = splitBudget(asks, budget)
        expect([...given.values()].reduce((sum, one) => sum + one, 0)).toBeLessThanOrEqual(budget)
        for (const { pool, want } of asks) expect(given.get(pool)).toBeLessThanOrEqual(want)
        expect(splitBudget(asks.toReversed(), budget)).toEqual(given)
      }),
    )
  })

  test('P2 a pool is as large as the neediest of its queues, and smaller only when all allow it', () => {
    const queue = (name: string, to: number) => {
      const action = to > 5 ? ('up' as const) : to < 5 ? ('down' as const) : ('hold' as const)
      return { queue: name, action, from: 5, to, reasons: [`${name} says ${to}`] }
    }
    const bounds = { min: 1, max: 15 }
    expect(decidePool(5, [queue('a', 4), queue('b', 7)], bounds)).toMatchObject({ queue: 'b', action: 'up', to: 7 })
    expect(decidePool(5, [queue('a', 4), queue('b', 5)], bounds)).toMatchObject({ queue: 'b', action: 'hold', to: 5 })
    const down = decidePool(5, [queue('a', 4), queue('b', 4)], bounds)
    expect(down).toMatchObject({ action: 'down', to: 4, reasons: ['a: a says 4', 'b: b says 4'] })
    expect(decidePool(5, [queue('a', 7)], { min: 1, max: 6 })).toMatchObject({
      to: 6,
      reasons: ['a says 7', 'the hosts allow 6'],
    })
    expect(decidePool(0, [], bounds)).toMatchObject({ queue: null, action: 'up', to: 1 })
  })
})

describe('fleet', () => {
  const place = (id: string, has: number) => ({ id, has, min: 1, max: 15, draining: 0, isStuck: false })
  const wants = (pool: string, from: number, to: number, places: FleetAsk['places']): FleetAsk => ({
    pool,
    mayShrink: true,
    places,
    decision: { queue: pool, action: to > from ? 'up' : 'hold', from, to, reasons: ['so'] },
  })
  const hosts = (...rooms: readonly number[]) => rooms.map((room, index) => ({ id: 'xyz'[index]!, room }))

  test('P2 a pool that only one host serves goes before one that has a choice', () => {
    const [a, b] = decideFleet(
      [wants('a', 2, 15, [place('x', 1), place('y', 1)]), wants('b', 1, 12, [place('x', 1)])],
      hosts(14, 20),
    )
    expect(Object.fromEntries(b!.shares)).toEqual({ x: 12 })
    expect(Object.fromEntries(a!.shares)).toEqual({ x: 2, y: 13 })
  })

  test('P2 nothing more is given to a host whose processes crash', () => {
    const stuck = { ...place('x', 2), isStuck: true }
    const [only] = decideFleet([wants('a', 4, 8, [stuck, place('y', 2)])], hosts(20, 20))
    expect(Object.fromEntries(only!.shares)).toEqual({ x: 2, y: 6 })
  })

  test('P2 what the hosts cannot hold is not promised, and the reason says so', () => {
    const [only] = decideFleet([wants('a', 3, 9, [place('x', 3)])], hosts(5))
    expect(only!.decision).toMatchObject({ action: 'up', from: 3, to: 5 })
    expect(only!.decision.reasons).toEqual(['so', 'the hosts have room for 5 processes of all pools'])
  })

  test('P2 no host gets more than it may run, whatever is asked', () => {
    const anyAsk = fc.record({
      on: fc.subarray(['x', 'y', 'z'], { minLength: 1 }),
      from: fc.integer({ min: 1, max: 15 }),
      to: fc.integer({ min: 1, max: 30 }),
    })
    fc.assert(
      fc.property(
        fc.array(anyAsk, { maxLength: 5 }),
        fc.array(fc.integer({ min: 0, max: 20 }), { minLength: 3, maxLength: 3 }),
        (list, rooms) => {
          const asks = list.map(({ on, from, to }, index) =>
            wants(
              `p${index}`,
              from,
              to,
              on.map((id) => place(id, 2)),
            ),
          )
          const all = hosts(...rooms)
          const answers = decideFleet(asks, all)
          for (const { id, room } of all) {
            expect(answers.reduce((sum, { shares: own }) => sum + (own.get(id) ?? 0), 0)).toBeLessThanOrEqual(room)
          }
          for (const { decision, shares: own } of answers) {
            expect([...own.values()].reduce((sum, one) => sum + one, 0)).toBe(decision.to)
          }
        },
      ),
    )
  })
})

test('P2 filling is the same in any order of the glasses', () => {
  const glasses = [3, 1, 2].map((has) => ({ name: `g${has}`, has, min: 0, max: 4 }))
  expect(fill(7, glasses)).toEqual(fill(7, glasses.toReversed()))
})
