// Queues: settings, defaults, pause and resume over several processes.
import { describe, expect, test } from 'vitest'
import { createMillrace, defineJob, fixed, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'
import type { Gate } from './support.ts'

const quick = defineJob({ name: 'quick', queue: 'work', run: () => 1 })

/** Two processes that run jobs which end when the test says so. */
async function twoProcesses() {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  const gates: Gate[] = []
  const started: string[] = []
  const slow = defineJob({
    name: 'slow',
    queue: 'work',
    async run({ job }) {
      started.push(job.id)
      const own = gate()
      gates.push(own)
      await own.opened
    },
  })
  const [one, two] = [
    await startProcess(clock, backend, [slow, quick]),
    await startProcess(clock, backend, [slow, quick]),
  ]
  const countOf = async () => (await one.mill.jobs.counts('work'))[0]!.counts
  return { clock, backend, one, two, slow, gates, started, countOf }
}

describe('memory', () => {
  test('J3 a declared queue gives its settings to jobs that say nothing', async () => {
    const failing = defineJob({
      name: 'failing',
      queue: 'declared',
      run: () => {
        throw new Error('no')
      },
    })
    const queues = { declared: { priority: 75, attempts: 5, retry: fixed({ delay: '20s' }) } } as const
    const { clock, mill } = await setup([failing], { queues })
    await mill.work()
    const delays: number[] = []
    mill.on('retried', ({ delayMs }) => delays.push(delayMs))
    const handle = await mill.enqueue(failing)
    expect(await mill.jobs.get(handle)).toMatchObject({ priority: 75, maxAttempts: 5 })
    await expect(clock.during(handle.result())).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(delays).toEqual([20_000, 20_000, 20_000, 20_000])
  })

  test('J3 the attempts of the retry policy of a queue are the attempts of its jobs', async () => {
    const job = defineJob({ name: 'job', queue: 'declared', run: () => 1 })
    const { mill } = await setup([job], { queues: { declared: { retry: fixed({ attempts: 7, delay: '1s' }) } } })
    expect(await mill.jobs.get(await mill.enqueue(job))).toMatchObject({ maxAttempts: 7 })
  })

  test('J3 a queue is created by its first job, found in the list, changed field by field', async () => {
    const { mill } = await setup([quick])
    expect(await mill.queues.get('work')).toBeNull()
    await mill.enqueue(quick)
    expect(await mill.queues.get('work')).toMatchObject({ name: 'work', priority: 100, attempts: 3, paused: false })
    await mill.queues.configure('work', { concurrency: 4, retention: { completed: '1h' } })
    const changed = await mill.queues.configure('work', { rate: { limit: 10, per: '1s' }, retention: { failed: '2h' } })
    expect(changed.limits).toMatchObject({ concurrency: 4, rate: { limit: 10, perMs: 1_000 } })
    expect(changed.retention).toEqual({ completedMs: 3_600_000, failedMs: 7_200_000, cancelledMs: null })
    expect((await mill.queues.list()).map(({ name }) => name)).toEqual(['work'])
  })

  test('J3 settings changed by an operator survive a restart that declares others', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const queues = { work: { attempts: 2 } }
    const first = await startProcess(clock, backend, [quick], { queues })
    await first.mill.work()
    await first.mill.queues.configure('work', { attempts: 9 })
    const second = await startProcess(clock, backend, [quick], { queues })
    await second.mill.work()
    expect(await second.mill.queues.get('work')).toMatchObject({ attempts: 9 })
  })

  test('J3 a pause stops starts on both processes, prefetched jobs go back, running ones finish, enqueue works', async () => {
    const { clock, one, two, slow, gates, started, countOf } = await twoProcesses()
    await one.mill.work({ concurrency: 8 })
    await two.mill.work({ concurrency: 8 })
    // Short runs first, so that both workers prefetch.
    const warm = await one.mill.enqueueMany(Array.from({ length: 100 }, () => [quick] as const))
    for (const handle of warm) await clock.during(handle.result())
    const handles = await one.mill.enqueueMany(Array.from({ length: 60 }, () => [slow] as const))
    await clock.until(() => started.length === 16)
    expect((await countOf()).running).toBeGreaterThan(16)
    const startedBefore = started.length
    await one.mill.queues.pause('work')
    await clock.advance(100)
    expect(await countOf()).toMatchObject({ running: 16, queued: 44 })
    for (const own of gates) own.open()
    await clock.advance(5_000)
    expect(started.length).toBe(startedBefore)
    expect(await countOf()).toMatchObject({ running: 0, queued: 44, completed: 116 })
    const late = await two.mill.enqueue(quick)
    await clock.advance(5_000)
    expect(await late.status()).toBe('queued')
    await two.mill.queues.resume('work')
    await clock.until(() => {
      for (const own of gates) own.open()
      return started.length === 60
    }, 10_000)
    expect(await clock.during(late.result(), 5_000)).toBe(1)
    for (const handle of handles) await clock.during(handle.result())
    expect(new Set(started).size).toBe(60)
    const attempts = await Promise.all(handles.map(({ id }) => one.mill.jobs.get(id)))
    expect(attempts.every((job) => job!.attemptCount === 1)).toBe(true)
  })

  test('J3 without any wake-up a pause still stops starts within 1 s', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const starts: number[] = []
    const short = defineJob({
      name: 'short',
      queue: 'work',
      run: () => {
        starts.push(clock.nowMs())
        return new Promise<void>((resolve) => clock.timer(40, resolve))
      },
    })
    const deaf = await startProcess(clock, backend, [short], { deaf: true })
    const other = await startProcess(clock, backend, [short])
    await other.mill.enqueueMany(Array.from({ length: 500 }, () => [short] as const))
    await deaf.mill.work({ concurrency: 4 })
    await clock.until(() => starts.length > 50)
    await other.mill.queues.pause('work')
    const pausedMs = clock.nowMs()
    await clock.advance(20_000)
    expect(Math.max(...starts) - pausedMs).toBeLessThanOrEqual(1_000)
    await other.mill.queues.resume('work')
    const resumedMs = clock.nowMs()
    await clock.until(() => starts.at(-1)! > resumedMs, 30_000)
    expect(clock.nowMs() - resumedMs).toBeLessThanOrEqual(1_500)
  })

  test('J3 a paused queue does not keep a worker from its other queues', async () => {
    const other = defineJob({ name: 'other', queue: 'other', run: ({ input }: RunContext<number>) => input })
    const { clock, mill } = await setup([quick, other])
    await mill.queues.pause('work')
    await mill.work({ concurrency: 1 })
    const waits = await mill.enqueue(quick)
    expect(await clock.during(mill.enqueueAndWait(other, 7), 2_000)).toBe(7)
    expect(await waits.status()).toBe('queued')
  })

  test('J3 finished jobs are kept as long as their queue says, others are not touched', async () => {
    const other = defineJob({ name: 'other', queue: 'other', run: () => 1 })
    const { clock, mill } = await setup([quick, other], { queues: { work: { retention: { completed: '10m' } } } })
    await mill.work()
    const [short, long] = [await mill.enqueue(quick), await mill.enqueue(other)]
    const waiting = await mill.enqueue(quick, undefined, { delay: '1d' })
    await clock.advance(9 * 60_000)
    expect(await short.status()).toBe('completed')
    await clock.advance(2 * 60_000 + 1_000)
    expect(await mill.jobs.get(short)).toBeNull()
    expect([await long.status(), await waiting.status()]).toEqual(['completed', 'scheduled'])
  })

  test('J3 stopping one Millrace leaves the shared store open for the other', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const one = await createMillrace({ jobs: [quick], backend, runtime: { clock } })
    const two = await createMillrace({ jobs: [quick], backend, runtime: { clock } })
    await two.work()
    await one.stop()
    expect(await clock.during(two.enqueueAndWait(quick, undefined), 5_000)).toBe(1)
  })
})
