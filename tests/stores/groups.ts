// Recurring jobs, batches and limits, with two processes at them at once.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { Client, Job, JobListFilter, RunContext } from '../../src/index.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import { gate } from '../features/support.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace, Place } from './place.ts'

export function groups(place: OpenPlace): void {
  test('T2 two schedulers that both believe to lead fire every tick exactly once, and none is missed', async () => {
    await using at = await place()
    const ran: string[] = []
    const tick = defineJob({ name: 'tick', run: ({ job }) => void ran.push(job.id) })
    for (let no = 0; no < 2; no++) {
      const backend = wrapBackend(at.backend(), async (what, call) => {
        const value = await call()
        return what === 'workers.lead' ? ({ held: true, holder: 'me', term: 1 } as typeof value) : value
      })
      const mill = await at.process([tick], { backend })
      await mill.work()
      await mill.schedules.upsert('often', { job: tick, every: '1s' })
    }
    const reader = await at.process([tick])
    /** Each tick in milliseconds, and how many jobs it has, oldest first. */
    const jobs = async () => {
      const counts = new Map<number, number>()
      for (const { schedule } of (await reader.jobs.list({ schedule: 'often' }, { limit: 200 })).items) {
        counts.set(schedule!.tick.getTime(), (counts.get(schedule!.tick.getTime()) ?? 0) + 1)
      }
      return [...counts].sort(([one], [two]) => one - two)
    }
    await until(async () => (await jobs()).length >= 4, 'four ticks')
    const ticks = await jobs()
    expect(ticks.map(([, count]) => count)).toEqual(ticks.map(() => 1))
    const steps = ticks.slice(1).map(([atMs], index) => atMs - ticks[index]![0])
    expect(steps).toEqual(steps.map(() => 1_000))
    await until(() => ran.length >= 4, 'the jobs of the ticks')
    expect(new Set(ran).size).toBe(ran.length)
  })

  test('T3 a batch that two processes work off calls back once, and its counters equal a recount', async () => {
    await using at = await place()
    const callbacks: string[] = []
    const by = new Set<string | null>()
    const both = gate()
    const work = defineJob({
      name: 'work',
      attempts: 1,
      async run({ input, job, enqueue }: RunContext<number>) {
        if (by.add(job.worker).size === 2) both.open()
        await both.opened
        if (input === 0) await enqueue(work, 1_000, { batch: 'same' })
        if (input % 50 === 13) throw new Error('as asked')
      },
    })
    const tell = defineJob({
      name: 'tell',
      queue: 'tell',
      run: ({ input }: RunContext<string>) => void callbacks.push(input),
    })
    const [one, two] = [await at.process([work, tell]), await at.process([work, tell])]
    const batch = await one.enqueueBatch(
      'orders',
      Array.from({ length: 200 }, (_, input) => [work, input] as const),
      { onComplete: [tell, 'complete'], onSuccess: [tell, 'success'], onFailure: [tell, 'failure'] },
    )
    await one.work({ concurrency: 4 })
    await two.work({ concurrency: 4 })
    const { progress } = await batch.wait()
    expect(progress).toMatchObject({ total: 201, pending: 0, completed: 197, failed: 4, cancelled: 0 })
    await until(() => callbacks.length >= 2, 'the callbacks')
    const statuses: string[] = []
    for await (const { status } of everything(one, { batch: batch.id })) statuses.push(status)
    const recount = (status: string): number => statuses.filter((each) => each === status).length
    expect([statuses.length, recount('completed'), recount('failed')]).toEqual([201, 197, 4])
    const told = await one.jobs.list({ name: 'tell' })
    expect(told.items.map(({ payload }) => payload).toSorted()).toEqual(['complete', 'failure'])
    expect(callbacks.toSorted()).toEqual(['complete', 'failure'])
  })

  test('T6 the slots of a queue and of a key are kept by two processes together, and all of them are used', async () => {
    await using at = await place()
    const { most, run } = await crowd(at, { concurrency: 3, perKey: { concurrency: 2 } })
    await run([...Array<string>(20).fill('a'), ...Array<string>(20).fill('b')])
    expect(most.get('')).toBe(3)
    expect(most.get('a')).toBeLessThanOrEqual(2)
    expect(most.get('b')).toBeLessThanOrEqual(2)
  })

  test('T6 the rate of a queue is kept by two processes together', async () => {
    await using at = await place()
    const { starts, run } = await crowd(at, { rate: { limit: 20, per: '1s', burst: 5 } })
    await run(Array<string>(30).fill('a'))
    // A start is seen up to a stall of this machine after its token was taken; two buckets would need 0.5 s in all.
    const stallMs = 250
    for (const [from, fromMs] of starts.entries()) {
      for (const [to, toMs] of starts.entries()) {
        if (to > from) expect(to - from + 1).toBeLessThanOrEqual(5 + (20 * (toMs - fromMs + stallMs)) / 1_000)
      }
    }
    const { items } = await (await at.process([])).jobs.list({ queue: 'limited' })
    expect(new Set(items.map(({ attemptCount }) => attemptCount))).toEqual(new Set([1]))
  })
}

/** Page by page. */
async function* everything(mill: Pick<Client, 'jobs'>, filter: JobListFilter): AsyncGenerator<Job> {
  let cursor: string | undefined
  do {
    const page = await mill.jobs.list(filter, { limit: 100, ...(cursor !== undefined && { cursor }) })
    yield* page.items
    cursor = page.nextCursor
  } while (cursor !== undefined)
}

/** Jobs with a key in two processes, with a record of their starts and of how many run at once. */
async function crowd(at: Place, limits: object) {
  const starts: number[] = []
  const now = new Map<string, number>()
  const most = new Map<string, number>()
  const count = (key: string, by: number): void => {
    now.set(key, (now.get(key) ?? 0) + by)
    most.set(key, Math.max(most.get(key) ?? 0, now.get(key)!))
  }
  const job = defineJob({
    name: 'job',
    queue: 'limited',
    limitKey: (input: string) => input,
    async run({ input }: RunContext<string>) {
      starts.push(performance.now())
      for (const key of ['', input]) count(key, 1)
      await new Promise((resolve) => setTimeout(resolve, 15))
      for (const key of ['', input]) count(key, -1)
    },
  })
  const processes = [
    await at.process([job], { queues: { limited: limits } }),
    await at.process([job], { queues: { limited: limits } }),
  ]
  return {
    starts,
    most,
    run: async (keys: readonly string[]): Promise<void> => {
      const handles = await processes[0]!.enqueueMany(keys.map((key) => [job, key] as const))
      for (const mill of processes) await mill.work({ concurrency: 10 })
      for (const handle of handles) await handle.result()
    },
  }
}
