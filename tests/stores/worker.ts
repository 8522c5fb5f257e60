// The worker on a real store: drain, deadlines, and how soon an idle one starts a job.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import type { HandOver, HandOvers } from '../../src/store/hand-overs.ts'
import type { Backend, ClaimReply } from '../../src/store/ports.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import { aborted, gate } from '../features/support.ts'
import { until } from '../postgres/faults/until.ts'
import type { Address, OpenPlace } from './place.ts'

const IDLE_MS = 40
/** A hybrid brings ready jobs to Redis by itself. */
const WAITING = ['queued', 'dispatched'] as const

/** What this machine takes right now for the least that a pick-up needs. */
export interface Yardstick {
  measure(): Promise<number>
  close(): Promise<void>
}

export function working(place: OpenPlace, layYardstick: (address: Address) => Promise<Yardstick>): void {
  test('D2 a drain waits for what runs, gives back what has not started, and burns no attempt', async () => {
    await using at = await place()
    const [four, held] = [gate(), gate()]
    // However the test ends: a worker that drains waits for what runs.
    await using _ = { [Symbol.asyncDispose]: async () => held.open() }
    const runs: number[] = []
    const job = defineJob({
      name: 'job',
      async run({ input }: RunContext<number>) {
        if (input < 0) return input
        if (runs.push(input) === 4) four.open()
        if (input < 4) await held.opened
        return input
      },
    })
    const claimed = new Set<string>()
    const wrapped = wrapBackend(at.backend(), async (what, call) => {
      const value = await call()
      if (what === 'jobs.claim') for (const { id } of (value as ClaimReply).jobs) claimed.add(id) // what a claim answers
      return value
    })
    const backend = hearing(wrapped, ({ jobs }) => jobs.forEach(({ id }) => claimed.add(id)))
    const [first, second] = [await at.process([job], { backend }), await at.process([job])]
    const worker = await first.work({ concurrency: 4 })
    // A worker claims ahead when it has seen short runs.
    for (let round = 0; round < 8; round++) await first.enqueueAndWait(job, -1)
    claimed.clear()
    const handles = await first.enqueueMany(Array.from({ length: 12 }, (_, input) => [job, input] as const))
    await four.opened
    const stopping = worker.stop()
    const counts = async () => (await second.jobs.counts('default'))[0]!.counts
    await until(async () => (await counts()).running === 4, 'the unstarted jobs to be given back')
    expect(claimed.size).toBeGreaterThan(4)
    const { items } = await second.jobs.list({ status: WAITING })
    expect(items.map(({ attemptCount, crashCount }) => attemptCount + crashCount)).toEqual(Array(8).fill(0))
    held.open()
    await stopping
    expect(runs).toEqual([0, 1, 2, 3])
    await second.work()
    for (const [input, handle] of handles.entries()) expect(await handle.result()).toBe(input)
    expect(runs.toSorted((a, b) => a - b)).toEqual(handles.map((_, input) => input))
    for (const handle of handles) expect(await second.jobs.attempts(handle)).toMatchObject([{ status: 'success' }])
  })

  test('D2 at the deadline of a stop handlers are aborted and their jobs given back uncounted', async () => {
    await using at = await place()
    const started = gate()
    let reason: unknown
    const endless = defineJob({
      name: 'endless',
      async run({ signal }) {
        started.open()
        reason = await aborted(signal)
        throw reason
      },
    })
    const [mill, reader] = [await at.process([endless]), await at.process([endless])]
    await mill.work()
    const handle = await mill.enqueue(endless)
    await started.opened
    await mill.stop({ deadline: 50 })
    expect(reason).toMatchObject({ code: 'STOPPED' })
    const given = await reader.jobs.get(handle)
    expect(given).toMatchObject({ attemptCount: 0, crashCount: 0 })
    expect(WAITING).toContain(given?.status)
    expect(await reader.jobs.attempts(handle)).toMatchObject([{ status: 'released' }])
  })

  test('D4 a handler extends its own deadline; one that does not is told and tried again', async () => {
    await using at = await place()
    const slow = defineJob({
      name: 'slow',
      timeout: 300,
      attempts: 1,
      async run({ input, extend, signal }: RunContext<string>) {
        if (input === 'extends') extend('1m')
        const late = new Promise<string>((resolve) => setTimeout(resolve, 600, 'in time'))
        return Promise.race([late, aborted(signal).then((reason) => Promise.reject(reason as Error))])
      },
    })
    const mill = await at.process([slow])
    await mill.work()
    const [extending, plain] = await mill.enqueueMany([
      [slow, 'extends'],
      [slow, ''],
    ])
    await expect(plain.result()).rejects.toMatchObject({ code: 'JOB_FAILED', cause: { code: 'JOB_TIMEOUT' } })
    expect(await extending.result()).toBe('in time')
  })

  test('D4 a consumer keeps a job by extending its visibility; without that another gets it', async () => {
    await using at = await place()
    const job = defineJob({ name: 'job', queue: 'jobs', run: ({ input }: RunContext<string>) => input })
    const other = defineJob({ name: 'other', run: () => null })
    const [one, two] = [await at.process([job, other]), await at.process([job, other])]
    // Somebody's maintenance watches the time.
    await two.work({ queues: ['default'] })
    const [kept, lost] = await one.enqueueMany([
      [job, 'kept'],
      [job, 'lost'],
    ])
    const slow = one.consumer({ queues: ['jobs'], visibility: 400 })
    const claimed = await slow.claim(2)
    expect(claimed.map(({ id }) => id)).toEqual([kept.id, lost.id])
    expect(await slow.extend(claimed[0]!, '1m')).toBe('extended')
    await until(async () => (await lost.status()) !== 'running', 'the visibility to lapse')
    expect(await kept.status()).toBe('running')
    const quick = two.consumer({ queues: ['jobs'] })
    let taken = await quick.claim()
    await until(async () => (taken = taken.length > 0 ? taken : await quick.claim()).length > 0, 'the job to come back')
    expect(taken).toMatchObject([{ id: lost.id, attempt: 2 }])
    expect(await slow.ack(claimed[1]!)).toBe('stale')
    expect(await quick.ack(taken[0]!, 'by another')).toBe('done')
    expect(await slow.ack(claimed[0]!, 'by its owner')).toBe('done')
    expect([await kept.result(), await lost.result()]).toEqual(['by its owner', 'by another'])
  })

  test(
    'D3 an idle worker in another process starts a new job in milliseconds: p50 <= 5 ms, p99 <= 20 ms',
    { timeout: 60_000 },
    async () => {
      await using at = await place()
      const rounds = 100
      const startedAt = new Map<string, number>()
      const job = defineJob({ name: 'job', run: ({ job: { id } }) => void startedAt.set(id, performance.now()) })
      const [producer, consumer] = [await at.process([job]), await at.process([job])]
      let onCompleted = (): void => undefined
      consumer.on('completed', () => onCompleted())
      await consumer.work()
      const yardstick = await layYardstick(at.address)
      const waits: number[] = []
      const plain: number[] = []
      // The first rounds compile and plan what is measured.
      for (let round = -30; round < rounds; round++) {
        const completed = new Promise<void>((resolve) => (onCompleted = resolve))
        const enqueuedAt = performance.now()
        const handle = await producer.enqueue(job)
        // An event and not its result: nothing else is asked of the server meanwhile.
        await completed
        const plainMs = await yardstick.measure()
        // What is measured is a worker that had nothing to do for a while.
        await new Promise((resolve) => setTimeout(resolve, IDLE_MS))
        if (round < 0) continue
        waits.push(startedAt.get(handle.id)! - enqueuedAt)
        plain.push(plainMs)
      }
      await yardstick.close()
      const shareOf = (list: readonly number[], share: number): number =>
        list.toSorted((a, b) => a - b)[Math.ceil(rounds * share) - 1]!
      // The yardstick takes about a millisecond on a quiet machine; a busy one gets as many times more, and its stalls.
      const scale = Math.max(shareOf(plain, 0.5), 1)
      expect(shareOf(waits, 0.5)).toBeLessThanOrEqual(5 * scale)
      expect(shareOf(waits, 0.99)).toBeLessThanOrEqual(20 * scale + shareOf(plain, 0.99))
    },
  )
}

/** The same backend; what it hands over is told first. */
function hearing(backend: Backend, tell: (handOver: HandOver) => void): Backend {
  const { handOvers } = backend
  if (handOvers === undefined) return backend
  const listen: HandOvers['listen'] = (worker, onHandOver, onBack) =>
    handOvers.listen(
      worker,
      (handOver) => {
        tell(handOver)
        onHandOver(handOver)
      },
      onBack,
    )
  return { ...backend, handOvers: { listen } }
}
