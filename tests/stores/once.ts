// Work that is done once whoever asks, and the trail that every run leaves.
import { expect, test } from 'vitest'
import { cancel, defineJob, fixed, release } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { gate } from '../features/support.ts'
import { until } from '../postgres/faults/until.ts'
import type { OpenPlace } from './place.ts'

export function once(place: OpenPlace): void {
  test('D10 of runs in two processes at once one does the work, the others wait for it and share its result', async () => {
    await using at = await place()
    const [inside, end] = [gate(), gate()]
    let charges = 0
    let asked = 0
    const charge = defineJob({
      name: 'charge',
      async run({ idempotent }: RunContext<number>) {
        asked += 1
        return await idempotent('order-42', async () => {
          charges += 1
          inside.open()
          await end.opened
          return { receipt: charges, none: null }
        })
      },
    })
    const [one, two] = [await at.process([charge]), await at.process([charge])]
    await one.work({ concurrency: 3 })
    await two.work({ concurrency: 3 })
    const handles = await one.enqueueMany(Array.from({ length: 6 }, (_, n) => [charge, n] as const))
    await inside.opened
    await until(() => asked === 6, 'all runs to ask')
    end.open()
    for (const handle of handles) expect(await handle.result()).toEqual({ receipt: 1, none: null })
    expect(charges).toBe(1)
  })

  test('D10 a re-run gets the stored result; the wait for a holder is bounded', async () => {
    await using at = await place()
    const [inside, end] = [gate(), gate()]
    let done = 0
    const rerun = defineJob({
      name: 'rerun',
      retry: fixed({ attempts: 3, delay: 0, jitter: 0 }),
      async run({ idempotent, attempt }) {
        const value = await idempotent('key', () => ++done)
        if (attempt < 3) throw new Error('after the work')
        return value
      },
    })
    const holding = defineJob({
      name: 'holding',
      attempts: 1,
      run: ({ idempotent }: RunContext<string>) =>
        idempotent(
          'key',
          async () => {
            inside.open()
            await end.opened
            return 'held'
          },
          { wait: 100 },
        ),
    })
    const [one, two] = [await at.process([rerun, holding]), await at.process([rerun, holding])]
    await one.work()
    expect(await two.enqueueAndWait(rerun, undefined)).toBe(1)
    expect(done).toBe(1)
    const holder = await one.enqueue(holding, 'first')
    await inside.opened
    await two.work()
    await expect(two.enqueueAndWait(holding, 'second')).rejects.toMatchObject({
      code: 'JOB_FAILED',
      cause: { code: 'IDEMPOTENCY_BUSY' },
    })
    end.open()
    expect(await holder.result()).toBe('held')
  })

  test('D12 every run leaves one row with its word, worker, times and error; a running one shows as attempting', async () => {
    await using at = await place()
    const [started, end] = [gate(), gate()]
    let runs = 0
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 4, delay: 0, jitter: 0 }),
      async run() {
        runs += 1
        if (runs === 1) throw new Error('first')
        if (runs === 2) return release('not yet')
        started.open()
        await end.opened
        return cancel('enough')
      },
    })
    const [mill, reader] = [await at.process([job]), await at.process([job])]
    const worker = await mill.work()
    const handle = await mill.enqueue(job)
    await started.opened
    const before = await reader.jobs.attempts(handle)
    expect(before.map(({ status }) => status)).toEqual(['retry', 'released', 'attempting'])
    expect(before.at(-1)).toMatchObject({ attempt: 2, finishedAt: null, worker: worker.ids[0] })
    end.open()
    await handle.result().catch(() => undefined)
    const rows = await reader.jobs.attempts(handle)
    expect(rows).toMatchObject([
      { attempt: 1, status: 'retry', error: { message: 'first' } },
      { status: 'released', error: null, note: 'not yet' },
      { attempt: 2, status: 'cancelled', note: 'enough' },
    ])
    for (const { worker: by, startedAt, finishedAt, durationMs } of rows) {
      expect(by).toBe(worker.ids[0])
      expect(finishedAt!.getTime() - startedAt!.getTime()).toBe(durationMs)
      expect(durationMs).toBeGreaterThanOrEqual(0)
    }
  })
}
