// Priorities: words, exact order, and the share of the lower lanes.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed } from '../../src/index.ts'
import type { EnqueueOptions, RunContext } from '../../src/index.ts'
import { setup } from './support.ts'

async function ordered(
  queues: { readonly ranked?: { readonly lowerLaneShare?: number; readonly lanes?: [number, number] } } = {},
) {
  const order: string[] = []
  const ranked = defineJob({
    name: 'ranked',
    queue: 'ranked',
    run: ({ input }: RunContext<string>) => {
      order.push(input)
    },
  })
  const { clock, mill } = await setup([ranked], { queues })
  const add = async (input: string, priority: NonNullable<EnqueueOptions['priority']>, count = 1): Promise<void> => {
    await mill.enqueueMany(Array.from({ length: count }, () => [ranked, input, { priority }] as const))
  }
  const runAll = async (total: number): Promise<readonly string[]> => {
    await mill.work({ concurrency: 1 })
    await clock.until(() => order.length >= total)
    return order
  }
  return { clock, mill, ranked, add, runAll, order }
}

describe('memory', () => {
  test('J4 the words stand for 10, 50, 100 and 200', async () => {
    const { mill, ranked } = await ordered()
    const priorities = []
    for (const priority of ['critical', 'high', 'normal', 'low'] as const) {
      priorities.push((await mill.jobs.get(await mill.enqueue(ranked, '', { priority })))!.priority)
    }
    expect(priorities).toEqual([10, 50, 100, 200])
  })

  test('J4 lower numbers go first, equal ones in the order they came', async () => {
    const { add, runAll } = await ordered()
    for (const [input, priority] of [
      ['c', 51],
      ['a1', 3],
      ['d', 52],
      ['b', 7],
      ['a2', 3],
      ['a3', 3],
    ] as const) {
      await add(input, priority)
    }
    expect(await runAll(6)).toEqual(['a1', 'a2', 'a3', 'b', 'c', 'd'])
  })

  test('J4 a waiting lower lane gets 1 of every 16 starts', async () => {
    const { add, runAll } = await ordered()
    await add('high', 10, 200)
    await add('low', 300, 10)
    const order = await runAll(210)
    const first = order.slice(0, 160)
    expect(first.filter((input) => input === 'low').length).toBeGreaterThanOrEqual(9)
    for (let from = 0; from + 16 <= 160; from++) expect(order.slice(from, from + 16)).toContain('low')
  })

  test('J4 both lower lanes keep their share while the high lane never runs dry', async () => {
    const { add, runAll } = await ordered()
    await add('high', 10, 320)
    await add('normal', 100, 15)
    await add('low', 300, 15)
    const order = await runAll(350)
    for (let from = 0; from + 16 <= 200; from++) {
      expect(order.slice(from, from + 16)).toContain('low')
      expect(order.slice(from, from + 16)).toContain('normal')
    }
  })

  test('J4 a share of 0 is strict priority', async () => {
    const { add, runAll } = await ordered({ ranked: { lowerLaneShare: 0 } })
    await add('low', 300, 5)
    await add('high', 10, 100)
    expect((await runAll(105)).slice(100)).toEqual(['low', 'low', 'low', 'low', 'low'])
  })

  test('J4 the thresholds of the lanes are settings of the queue', async () => {
    const { add, runAll } = await ordered({ ranked: { lanes: [5, 20] } })
    await add('high', 5, 64)
    await add('now-low', 21, 4)
    const order = await runAll(68)
    expect(order.slice(0, 32)).toContain('now-low')
  })

  test('J4 a retried job keeps its priority and goes before younger ones of lower urgency', async () => {
    const order: string[] = []
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 2, delay: 0 }),
      run: ({ input, attempt }: RunContext<string>) => {
        order.push(input)
        if (input === 'urgent' && attempt === 1) throw new Error('again')
      },
    })
    const { clock, mill } = await setup([job])
    const urgent = await mill.enqueue(job, 'urgent', { priority: 60 })
    await mill.enqueueMany(Array.from({ length: 20 }, () => [job, 'later', { priority: 61 }] as const))
    await mill.work({ concurrency: 1 })
    await clock.until(() => order.length >= 22)
    expect(await mill.jobs.get(urgent)).toMatchObject({ priority: 60, attemptCount: 2 })
    // At most what was already claimed may come between.
    expect(order.lastIndexOf('urgent')).toBeLessThanOrEqual(3)
  })
})
