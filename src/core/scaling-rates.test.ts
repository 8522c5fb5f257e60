// Rates of the queues of one pool, from what two looks saw.
import { describe, expect, test } from 'vitest'
import { observe } from './scaling-rates.ts'
import type { Sight } from './scaling-rates.ts'

/** Two queues, of which `long` has all that can be seen to run and `short` all that ends. */
function sight(atMs: number, told: Pick<Sight, 'ended'>, processed: number): Sight {
  const queue = { size: 0, waitMs: 0, paused: false }
  return {
    atMs,
    ...told,
    queues: [
      { ...queue, name: 'long', running: 4 },
      { ...queue, name: 'short', running: 0 },
    ],
    workers: [{ id: 'w', ended: processed, running: 5, concurrency: 10, state: 'active' }],
  }
}

function ratesOf(looks: readonly Sight[]) {
  let rates: Parameters<typeof observe>[0] = null
  let metrics: ReturnType<typeof observe>['metrics'] = new Map()
  for (const look of looks) ({ rates, metrics } = observe(rates, look))
  return Object.fromEntries([...metrics].map(([queue, { processingPerS }]) => [queue, Math.round(processingPerS)]))
}

const host = (counts: Readonly<Record<string, number>>): Pick<Sight, 'ended'> => ({
  ended: new Map([['web1', counts]]),
})

describe('what ended in each queue', () => {
  test('P2 is what the hosts say, also of a queue that they name for the first time', () => {
    const looks = [sight(0, host({ long: 7 }), 0), sight(10_000, host({ long: 7, short: 500 }), 500)]
    expect(ratesOf(looks)).toEqual({ long: 0, short: 50 })
  })

  test('P2 is estimated by what runs where a host does not say', () => {
    expect(ratesOf([sight(0, { ended: null }, 0), sight(10_000, { ended: null }, 500)])).toEqual({ long: 50, short: 0 })
  })

  test('P2 a host that is new, away for a look or started anew counts for nothing that it did before', () => {
    const other = { ended: new Map([['web2', { short: 9_000 }]]) }
    expect(ratesOf([sight(0, host({ short: 1 }), 0), sight(10_000, other, 0)])).toEqual({ long: 0, short: 0 })
    const back = [sight(0, host({ short: 1 }), 0), sight(5_000, other, 0), sight(10_000, host({ short: 301 }), 0)]
    expect(ratesOf(back)['short']).toBeGreaterThan(0)
    expect(ratesOf([sight(0, host({ short: 500 }), 0), sight(10_000, host({ short: 3 }), 0)])['short']).toBe(0)
  })
})
