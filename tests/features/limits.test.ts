// Ordering by group, rate limits and concurrency limits, over all workers together.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import type { DeclaredQueue } from '../../src/client/queue-options.ts'
import { VirtualClock, setup, startProcess } from './support.ts'

/** The largest number of starts in any window, minus what burst + rate * window allows. */
function excess(
  starts: readonly number[],
  { limit, perMs, burst }: { limit: number; perMs: number; burst: number },
): number {
  let worst = -Infinity
  for (let from = 0; from < starts.length; from++) {
    for (let to = from; to < starts.length; to++) {
      const allowed = burst + ((starts[to]! - starts[from]!) * limit) / perMs
      worst = Math.max(worst, to - from + 1 - allowed)
    }
  }
  return worst
}

/** Two processes over one store; jobs that take a while, with a record of starts and of how many run at once. */
async function cluster(queue: DeclaredQueue, runMs = 0) {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  const starts: { readonly key: string; readonly atMs: number }[] = []
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  const count = (key: string, by: number): void => {
    now.set(key, (now.get(key) ?? 0) + by)
    most.set(key, Math.max(most.get(key) ?? 0, now.get(key)!))
  }
  const job = defineJob({
    name: 'job',
    queue: 'limited',
    limitKey: (input: { readonly key: string }) => input.key,
    async run({ input }: RunContext<{ readonly key: string }>) {
      starts.push({ key: input.key, atMs: clock.nowMs() })
      for (const key of ['', input.key]) count(key, 1)
      if (runMs > 0) await new Promise<void>((resolve) => clock.timer(runMs, resolve))
      for (const key of ['', input.key]) count(key, -1)
    },
  })
  const queues = { limited: queue }
  const one = await startProcess(clock, backend, [job], { queues })
  const two = await startProcess(clock, backend, [job], { queues })
  const add = (key: string, n: number) => one.mill.enqueueMany(Array.from({ length: n }, () => [job, { key }] as const))
  const of = (key: string) => starts.filter((start) => start.key === key).map(({ atMs }) => atMs)
  const work = async (concurrency = 20) => {
    await one.mill.work({ concurrency })
    await two.mill.work({ concurrency })
  }
  return { clock, one, two, job, add, of, work, starts, most }
}

describe('memory', () => {
  test('T5 jobs of one group run one at a time in order, other groups beside them', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const order: string[] = []
    let [now, most, all, mostOfAll] = [0, 0, 0, 0]
    const job = defineJob({
      name: 'job',
      group: (input: { readonly group: string }) => input.group,
      retry: fixed({ attempts: 3, delay: '5s' }),
      async run({ input, attempt }: RunContext<{ readonly group: string; readonly n: number }>) {
        mostOfAll = Math.max(mostOfAll, ++all)
        if (input.group === 'a') most = Math.max(most, ++now)
        await new Promise<void>((resolve) => clock.timer(100 - (input.n % 7) * 10, resolve))
        all -= 1
        if (input.group === 'a') {
          now -= 1
          order.push(`${input.n}.${attempt}`)
          if (input.n === 3 && attempt === 1) throw new Error('once')
        }
      },
    })
    const [one, two] = [await startProcess(clock, backend, [job]), await startProcess(clock, backend, [job])]
    const lines = [...Array(8).keys()].flatMap((n) => ['a', 'b', 'c'].map((group) => [job, { group, n }] as const))
    const handles = await one.mill.enqueueMany(lines)
    await one.mill.work()
    await two.mill.work()
    for (const handle of handles) await clock.during(handle.result())
    expect(most).toBe(1)
    expect(mostOfAll).toBe(3)
    expect(order).toEqual(['0.1', '1.1', '2.1', '3.1', '3.2', '4.1', '5.1', '6.1', '7.1'])
  })

  test('T5 a group goes on after a failure, a cancellation and a removal of its head', async () => {
    const ran: number[] = []
    const job = defineJob({
      name: 'job',
      attempts: 1,
      run({ input }: RunContext<number>) {
        ran.push(input)
        if (input === 0) throw new Error('dead letter')
      },
    })
    const { clock, mill } = await setup([job])
    const handles = await mill.enqueueMany([0, 1, 2, 3].map((n) => [job, n, { group: 'g' }] as const))
    await handles[1]!.cancel()
    await mill.jobs.remove(handles[2]!)
    await mill.work()
    await clock.during(handles[3]!.result(), 10_000)
    expect(ran).toEqual([0, 3])
  })

  test('T6 after 60 s without workers starts keep to burst + rate * t in every window', async () => {
    const rate = { limit: 10, per: '1s', burst: 5 } as const
    const { clock, add, of, work } = await cluster({ rate })
    await add('k', 150)
    await clock.advance(60_000)
    await work()
    await clock.until(() => of('k').length === 150, 120_000)
    expect(excess(of('k'), { limit: 10, perMs: 1_000, burst: 5 })).toBeLessThanOrEqual(0.001)
    const [first, last] = [of('k')[0]!, of('k').at(-1)!]
    expect(last - first).toBeLessThan(20_000)
  })

  test('T6 deferred jobs count no attempt', async () => {
    const { clock, one, add, of, work } = await cluster({ rate: { limit: 5, per: '1s', burst: 1 } })
    const handles = await add('k', 40)
    await clock.advance(60_000)
    await work()
    await clock.until(() => of('k').length === 40, 60_000)
    await clock.advance(100)
    for (const handle of handles)
      expect(await one.mill.jobs.get(handle)).toMatchObject({ attemptCount: 1, status: 'completed' })
  })

  test('T6 the rate per key holds for each key and a limited key never blocks others', async () => {
    const { clock, add, of, work } = await cluster({ perKey: { rate: { limit: 2, per: '1s', burst: 2 } } })
    await add('slow', 200)
    await clock.advance(60_000)
    await work(5)
    await clock.advance(1_000)
    const before = clock.nowMs()
    await add('other', 2)
    await clock.until(() => of('other').length === 2, 5_000)
    // Half of the burst is given out in advance, the second one follows at the rate.
    expect(of('other')[0]! - before).toBeLessThanOrEqual(20)
    expect(of('other')[1]! - before).toBeLessThanOrEqual(520)
    await clock.advance(20_000)
    expect(excess(of('slow'), { limit: 2, perMs: 1_000, burst: 2 })).toBeLessThanOrEqual(0.001)
    expect(of('slow').length).toBeGreaterThan(30)
  })

  test('T6 jobs that wait for a slot after they took a token do not add up to more than the limit', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const starts: number[] = []
    const limited = defineJob({ name: 'limited', queue: 'limited', run: () => void starts.push(clock.nowMs()) })
    const filler = defineJob({
      name: 'filler',
      queue: 'filler',
      run: ({ input }: RunContext<number>) => new Promise<void>((resolve) => clock.timer(input, resolve)),
    })
    const queues = { limited: { rate: { limit: 10, per: '1s', burst: 10 } } } as const
    const { mill } = await startProcess(clock, backend, [limited, filler], { queues })
    await mill.work({ concurrency: 40 })
    // All of them are ready, and nothing but the bucket holds them back.
    await mill.queues.pause('limited')
    await mill.enqueueMany(Array.from({ length: 200 }, () => [limited] as const))
    await clock.advance(60_000)
    // Short runs first, so that the worker prefetches; then all slots are taken for a while.
    const warm = await mill.enqueueMany(Array.from({ length: 400 }, () => [filler, 1] as const))
    for (const handle of warm) await clock.during(handle.result())
    await mill.enqueueMany(Array.from({ length: 40 }, () => [filler, 900] as const))
    await clock.advance(10)
    await mill.queues.resume('limited')
    await clock.until(() => starts.length === 200, 120_000)
    expect(excess(starts, { limit: 10, perMs: 1_000, burst: 10 })).toBeLessThanOrEqual(0.001)
  })

  test('T6 concurrency of a queue holds over two processes and is used to the full', async () => {
    const { clock, add, most, starts, work } = await cluster({ concurrency: 3 }, 200)
    await add('k', 60)
    await work()
    const startMs = clock.nowMs()
    await clock.until(() => starts.length === 60, 60_000)
    expect(most.get('')).toBe(3)
    expect(clock.nowMs() - startMs).toBeLessThan(6_000)
  })

  test('T6 concurrency per key holds over two processes and keys do not block each other', async () => {
    const { clock, add, most, of, starts, work } = await cluster({ perKey: { concurrency: 1 } }, 100)
    await add('a', 30)
    await add('b', 30)
    await work(4)
    await clock.advance(1_000)
    expect(of('b').length).toBeGreaterThanOrEqual(8)
    const before = clock.nowMs()
    await add('c', 1)
    await clock.until(() => of('c').length === 1, 5_000)
    expect(clock.nowMs() - before).toBeLessThanOrEqual(300)
    await clock.until(() => starts.length === 61, 60_000)
    expect([most.get('a'), most.get('b'), most.get('c')]).toEqual([1, 1, 1])
  })

  test('T6 a crashed process gives its slots back', async () => {
    const { clock, one, two, add, starts } = await cluster({ concurrency: 2 }, 50_000)
    await add('k', 6)
    await one.mill.work()
    await clock.until(() => starts.length === 2)
    await two.mill.work()
    one.crash()
    await clock.until(() => starts.length === 8, 400_000)
  })

  test('T6 a limit that is widened lets waiting jobs go on', async () => {
    const { clock, one, add, most, starts, work } = await cluster({ concurrency: 1 }, 1_000)
    await add('k', 30)
    await work()
    await clock.advance(3_000)
    expect(starts.length).toBeLessThanOrEqual(4)
    await one.mill.queues.configure('limited', { concurrency: 10 })
    await clock.until(() => starts.length === 30, 8_000)
    expect(most.get('')).toBeLessThanOrEqual(10)
  })
})
