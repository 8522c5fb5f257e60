// Jobs are cancelled and removed from another process than the one that runs them, and queues paused.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { aborted, gate } from '../features/support.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace, Place } from './place.ts'

/** The promise is one second; a heartbeat would take 2.5 s, so that it was not the hint is seen. */
const TOLD_MAX_MS = 2_000

/** A job that runs in one process until it is aborted, and a handle of it in another. */
async function running(at: Place) {
  const started = gate()
  const seen = { reason: undefined as unknown, atMs: 0 }
  const endless = defineJob({
    name: 'endless',
    async run({ signal }) {
      started.open()
      seen.reason = await aborted(signal)
      seen.atMs = performance.now()
      throw seen.reason
    },
  })
  const [operator, worker] = [await at.process([endless]), await at.process([endless])]
  await worker.work()
  const handle = await operator.enqueue(endless)
  await started.opened
  return { operator, handle, seen }
}

export function cancelling(place: OpenPlace): void {
  test('J9 a job that runs in another process gets its abort signal with the reason within a second', async () => {
    await using at = await place()
    const { operator, handle, seen } = await running(at)
    const askedMs = performance.now()
    expect(await operator.jobs.cancel(handle, { reason: 'not wanted', actor: 'ann' })).toBe('requested')
    await expect(handle.result()).rejects.toMatchObject({ code: 'JOB_CANCELLED' })
    expect(seen.reason).toMatchObject({ code: 'JOB_CANCELLED' })
    expect(seen.atMs - askedMs).toBeLessThan(TOLD_MAX_MS)
    expect(await operator.jobs.get(handle)).toMatchObject({ status: 'cancelled' })
  })

  test('J9 a running job that is removed is told, and gone when its run has ended', async () => {
    await using at = await place()
    const { operator, handle, seen } = await running(at)
    expect(await operator.jobs.remove(handle)).toBe('requested')
    await until(async () => (await operator.jobs.get(handle)) === null, 'the end of the removed job')
    expect(seen.reason).toMatchObject({ code: 'JOB_CANCELLED' })
    expect(await operator.jobs.remove(handle)).toBe('missing')
  })

  test('J9 a waiting job that is cancelled or removed never starts', async () => {
    await using at = await place()
    const ran: number[] = []
    const note = defineJob({ name: 'note', run: ({ input }: RunContext<number>) => void ran.push(input) })
    const [operator, worker] = [await at.process([note]), await at.process([note])]
    const inputs = [0, 1, 2, 3]
    const [ready, scheduled, removed, last] = await operator.enqueueMany(
      inputs.map((input) => [note, input, input === 1 ? { delay: 50 } : {}] as const),
    )
    expect(await operator.jobs.cancel([ready!, scheduled!])).toEqual(['cancelled', 'cancelled'])
    expect(await operator.jobs.remove(removed!)).toBe('removed')
    await worker.work()
    await last!.result()
    await operator.enqueueAndWait(note, 4, { delay: 200 })
    expect(ran).toEqual([3, 4])
    expect(await operator.jobs.get(scheduled!)).toMatchObject({ status: 'cancelled', attemptCount: 0 })
  })

  test('J3 a pause stops new starts in every process within a second; running jobs finish, resume goes on', async () => {
    await using at = await place()
    const starts: number[] = []
    const step = defineJob({
      name: 'step',
      queue: 'steps',
      async run() {
        starts.push(performance.now())
        await new Promise((resolve) => setTimeout(resolve, 5))
      },
    })
    const operator = await at.process([step])
    const total = 4_000
    await operator.enqueueMany(Array.from({ length: total }, () => [step] as const))
    for (let no = 0; no < 2; no++) await (await at.process([step])).work({ concurrency: 5 })
    await until(() => starts.length > 100, 'the first starts')
    await operator.queues.pause('steps')
    const pausedMs = performance.now()
    const running = async () => (await operator.jobs.counts('steps'))[0]!.counts
    await until(async () => (await running()).running === 0, 'the running jobs to finish')
    const stopped = starts.length
    expect(stopped).toBeLessThan(total)
    expect(starts.at(-1)! - pausedMs).toBeLessThan(1_000)
    const { items } = await operator.jobs.list({ queue: 'steps', status: 'queued' }, { limit: 200 })
    expect(items.every(({ attemptCount }) => attemptCount === 0)).toBe(true)
    const extra = await operator.enqueue(step, undefined, { priority: 'critical' })
    expect(await extra.status()).toBe('queued')
    await operator.queues.resume('steps')
    await extra.result()
    expect(starts.length).toBeGreaterThan(stopped)
  })
}
