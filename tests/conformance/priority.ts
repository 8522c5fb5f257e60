// Which job is next: urgent first, FIFO among equals, and no lane starves.
import { expect } from 'vitest'
import { LANES, laneOf } from '../../src/core/priority.ts'
import type { JobId } from '../../src/core/job.ts'
import { DEFAULTS } from '../../src/core/limits.ts'
import { completed, expired, released, retried, returned, snoozed } from './outcomes.ts'
import { QUEUE } from './world.ts'
import type { Setup, World } from './world.ts'

const [HIGH, NORMAL, LOW] = [10, 100, 200]

export function priority({ test }: Setup): void {
  test('J4 equal priorities start in the order of their insert', async (world) => {
    const ids = [...(await world.add({}, {}, {})), await world.addOne(), ...(await world.add({}, {}))]
    expect(await world.drain(await world.worker())).toEqual(ids)
  })

  test('J4 the lower number starts first: by exact number, or by lane where the backend has lanes', async (world) => {
    await world.queues.configure(QUEUE, { lowerLaneShare: 0 })
    const priorities = [150, 0, 32_767, 51, 50, 151, 100, 1, 50]
    const ids = await world.add(...priorities.map((value) => ({ priority: value })))
    const { strictPriority } = world.capabilities
    const keyOf = (id: JobId): number => {
      const value = priorities[ids.indexOf(id)]!
      return strictPriority ? value : laneOf(value, [DEFAULTS.laneHighMax, DEFAULTS.laneNormalMax])
    }
    const expected = [...ids].sort((a, b) => keyOf(a) - keyOf(b) || ids.indexOf(a) - ids.indexOf(b))
    expect(await world.drain(await world.worker())).toEqual(expected)
  })

  test('J4 one claim of many gives the same order as many claims of one', async (world) => {
    await world.queues.configure(QUEUE, { lowerLaneShare: 0 })
    const [low, normal, high] = await world.add({ priority: LOW }, {}, { priority: HIGH })
    const worker = await world.worker()
    expect((await worker.claim(3)).map(({ id }) => id)).toEqual([high, normal, low])
  })

  test('J4 a retried, released, snoozed or expired job keeps its priority and goes to the end of its equals', async (world) => {
    await world.queues.configure(QUEUE, { lowerLaneShare: 0 })
    for (const again of [retried, released, expired, (run: Parameters<typeof snoozed>[0]) => snoozed(run, 0)]) {
      const worker = await world.worker()
      const [first, second] = await world.add({ priority: HIGH }, { priority: HIGH })
      const [later] = await world.add({ priority: LOW })
      expect(await world.apply(again(await worker.claimOne()))).toEqual(['applied'])
      expect((await world.get(first!)).priority).toBe(HIGH)
      expect(await world.drain(worker)).toEqual([second, first, later])
    }
  })

  test('J4 a returned job keeps its place before its equals', async (world) => {
    const [first, second, third] = await world.add({}, {}, {})
    const worker = await world.worker()
    const runs = await worker.claim(2)
    await world.apply(...runs.toReversed().map(returned))
    expect(await world.drain(worker)).toEqual([first, second, third])
  })

  test('J4 a delayed job takes its place in the order when its time has come', async (world) => {
    const [delayed, ready] = await world.add({ delayMs: 100 }, {})
    await world.clock.advance(100)
    await world.jobs.promote(10)
    const later = await world.addOne()
    expect(await world.drain(await world.worker())).toEqual([ready, delayed, later])
  })

  for (const [index, lane] of [NORMAL, LOW].entries()) {
    test(`J4 a waiting ${LANES[index + 1]} lane gets at least 1 of every 16 starts`, async (world) => {
      const starts = await startsUnderLoad(world, DEFAULTS.lowerLaneShare, [lane], 4 * DEFAULTS.lowerLaneShare)
      expect(longestGap(starts, lane)).toBeLessThan(DEFAULTS.lowerLaneShare)
    })
  }

  test('J4 both lower lanes get their share when both wait', async (world) => {
    const share = 4
    const starts = await startsUnderLoad(world, share, [NORMAL, LOW], 40)
    expect(longestGap(starts, NORMAL)).toBeLessThan(share)
    expect(longestGap(starts, LOW)).toBeLessThan(share)
    expect(starts.filter((value) => value === HIGH).length).toBeGreaterThan(0)
  })

  test('J4 the share holds across claims of any size', async (world) => {
    const share = 5
    const starts = await startsUnderLoad(world, share, [LOW], 60, 7)
    expect(longestGap(starts, LOW)).toBeLessThan(share)
  })

  test('J4 a claim that takes a whole lane still leaves the others their share', async (world) => {
    await world.queues.configure(QUEUE, { lowerLaneShare: 4 })
    const add = (n: number, value: number) => world.add(...Array.from({ length: n }, () => ({ priority: value })))
    await add(8, HIGH)
    await add(8, LOW)
    const worker = await world.worker()
    const starts = (await worker.claim(9)).map((run) => run.priority)
    expect(longestGap(starts, LOW)).toBeLessThan(4)
    expect(starts.filter((value) => value === HIGH).length).toBeGreaterThanOrEqual(5)
    await add(8, NORMAL)
    const rest = (await worker.claim(20)).map((run) => run.priority)
    expect([...starts, ...rest].filter((value) => value === HIGH)).toHaveLength(8)
    expect(rest).toHaveLength(15)
  })

  test('J4 a job that is returned with a claim is there for that claim', async (world) => {
    const [first, second] = await world.add({}, {})
    const worker = await world.worker()
    const run = await worker.claimOne()
    const { jobs } = await worker.ask({ limit: 2, settle: [returned(run)] })
    expect(jobs.map(({ id }) => id)).toEqual([first, second])
  })

  test('J4 with share 0 a lower lane waits until the higher ones are empty', async (world) => {
    const starts = await startsUnderLoad(world, 0, [NORMAL, LOW], 80)
    expect(starts.slice(0, 40)).toEqual(Array<number>(40).fill(HIGH))
    expect(starts.slice(40)).toEqual([...Array<number>(20).fill(NORMAL), ...Array<number>(20).fill(LOW)])
  })

  test('J4 the lanes of a queue follow its thresholds', async (world) => {
    await world.queues.configure(QUEUE, { lanes: [5, 20], lowerLaneShare: 4 })
    await world.add(...Array.from({ length: 30 }, () => ({ priority: 5 })))
    await world.add(...Array.from({ length: 10 }, () => ({ priority: 6 })))
    const starts = (await (await world.worker()).claim(20)).map((run) => run.priority)
    expect(longestGap(starts, 6)).toBeLessThan(4)
  })

  test('J4 the share of one queue does not depend on the starts of another', async (world) => {
    await world.queues.configure('a', { lowerLaneShare: 0 })
    await world.queues.configure('b', { lowerLaneShare: 3 })
    for (const queue of ['a', 'b']) {
      await world.add(...Array.from({ length: 12 }, () => ({ queue, priority: HIGH })))
      await world.add({ queue, priority: LOW })
    }
    const worker = await world.worker()
    const a: number[] = []
    const b: number[] = []
    for (let round = 0; round < 6; round++) {
      a.push((await worker.claimOne('a')).priority)
      b.push((await worker.claimOne('b')).priority)
    }
    expect(a).not.toContain(LOW)
    expect(b).toContain(LOW)
  })
}

/** The priorities of the next starts, with plenty of high jobs and enough of the lower ones always waiting. */
async function startsUnderLoad(
  world: World,
  share: number,
  lower: readonly number[],
  starts: number,
  perClaim = 1,
): Promise<readonly number[]> {
  await world.queues.configure(QUEUE, { lowerLaneShare: share })
  const high = share === 0 ? starts / 2 : starts
  const each = share === 0 ? starts / 2 / lower.length : starts
  await world.add(...Array.from({ length: high }, () => ({ priority: HIGH })))
  for (const value of lower) await world.add(...Array.from({ length: each }, () => ({ priority: value })))
  const worker = await world.worker()
  const order: number[] = []
  while (order.length < starts) {
    const runs = await worker.claim(Math.min(perClaim, starts - order.length))
    expect(runs.length).toBeGreaterThan(0)
    order.push(...runs.map((run) => run.priority))
    await world.apply(...runs.map((run) => completed(run)))
  }
  return order
}

/** The longest row of starts that passed this priority over. */
function longestGap(starts: readonly number[], value: number): number {
  let longest = 0
  let current = 0
  for (const start of starts) {
    current = start === value ? 0 : current + 1
    longest = Math.max(longest, current)
  }
  return longest
}
