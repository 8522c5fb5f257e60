// At least once with leases: whoever lost a job cannot change it any more.
import { describe, expect, test } from 'vitest'
import { defineJob, memory } from '../../src/index.ts'
import { VirtualClock, aborted, gate, startProcess } from './support.ts'

/** A job that holds its first run until the test opens it, and answers at once in every later run. */
async function frozenFirst() {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  const [started, held] = [gate(), gate()]
  const runs: { attempt: number; reason: unknown }[] = []
  const job = defineJob({
    name: 'job',
    async run({ attempt, signal, log }) {
      const own = { attempt, reason: undefined as unknown }
      runs.push(own)
      if (runs.length > 1) return 'second'
      void aborted(signal).then((reason) => (own.reason = reason))
      started.open()
      await held.opened
      log.info('the first run is still here')
      return 'first'
    },
  })
  const first = await startProcess(clock, backend, [job])
  const second = await startProcess(clock, backend, [job])
  await first.mill.work()
  const handle = await first.mill.enqueue(job)
  await clock.during(started.opened)
  return { clock, backend, first, second, handle, held, runs }
}

describe('memory', () => {
  test('D1 a paused worker that wakes up cannot overwrite a newer run, and its handler learns why', async () => {
    const { clock, first, second, handle, held, runs } = await frozenFirst()
    const stale: string[] = []
    const lost: string[] = []
    first.mill.on('stale', ({ id, edge }) => stale.push(`${id} ${edge}`))
    first.mill.on('workerLost', ({ reason }) => lost.push(reason))
    first.freeze()
    await second.mill.work()
    expect(await clock.during(second.mill.result(handle), 30_000)).toBe('second')
    held.open()
    await clock.advance(10)
    first.thaw()
    await clock.advance(30_000)
    expect(await second.mill.jobs.get(handle)).toMatchObject({ status: 'completed', result: 'second', attemptCount: 2 })
    expect(stale.length).toBeGreaterThanOrEqual(1)
    expect(lost.length).toBe(1)
    expect(runs.map(({ attempt }) => attempt)).toEqual([1, 2])
    const logs = await second.mill.jobs.logs(handle)
    expect(logs.map(({ message }) => message)).not.toContain('the first run is still here')
  })

  test('D1 a handler of a worker out of touch is aborted with lease-lost before anybody else may run the job', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const started = gate()
    const events: string[] = []
    const job = defineJob({
      name: 'job',
      async run({ attempt, signal }) {
        events.push(`start ${attempt}`)
        if (attempt > 1) return
        started.open()
        const reason = await aborted(signal)
        events.push((reason as { code: string }).code)
        throw reason
      },
    })
    let cut = false
    const around = async <Value>(_: string, call: () => Promise<Value>): Promise<Value> =>
      cut ? new Promise<never>(() => undefined) : call()
    const lonely = await startProcess(clock, backend, [job], { around })
    const healthy = await startProcess(clock, backend, [job])
    await lonely.mill.work()
    const handle = await lonely.mill.enqueue(job)
    await clock.during(started.opened)
    cut = true
    await healthy.mill.work()
    await clock.during(healthy.mill.result(handle), 30_000)
    expect(events).toEqual(['start 1', 'LEASE_LOST', 'start 2'])
  })

  test('D1 a worker that was cut off and comes back works again under a new id', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const job = defineJob({ name: 'job', run: () => 'ran' })
    let cut = false
    const around = async <Value>(_: string, call: () => Promise<Value>): Promise<Value> => {
      if (cut) throw Object.assign(new Error('no route'), { code: 'ECONNREFUSED' })
      return call()
    }
    const process = await startProcess(clock, backend, [job], { around })
    const worker = await process.mill.work()
    const [idBefore] = worker.ids
    cut = true
    await clock.advance(60_000)
    cut = false
    const handle = await process.mill.enqueue(job)
    expect(await clock.during(handle.result(), 10_000)).toBe('ran')
    expect(worker.ids[0]).not.toBe(idBefore)
  })

  test('D1 the job of a dead worker starts again within 15 s', async () => {
    const { clock, first, second, handle, runs } = await frozenFirst()
    await second.mill.work()
    await clock.advance(5_000)
    first.crash()
    expect(await clock.until(() => runs.length === 2, 60_000)).toBeLessThanOrEqual(15_000)
    expect(await clock.during(second.mill.result(handle))).toBe('second')
    expect(await second.mill.jobs.get(handle)).toMatchObject({ attemptCount: 2, crashCount: 1 })
  })

  test('D1 a lost reply of a claim loses no job and burns no attempt', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    let claims = 0
    const job = defineJob({ name: 'job', run: ({ attempt }) => attempt })
    const process = await startProcess(clock, backend, [job], {
      around: async (what, call) => {
        const value = await call()
        if (what === 'jobs.claim' && ++claims % 3 === 0) throw Object.assign(new Error('reset'), { code: 'ECONNRESET' })
        return value
      },
    })
    const handles = await process.mill.enqueueMany(Array.from({ length: 60 }, () => [job] as const))
    await process.mill.work({ concurrency: 3 })
    for (const handle of handles) expect(await clock.during(handle.result(), 120_000)).toBe(1)
  })

  test('D1 a job removed under its run stays removed, whatever the run reports', async () => {
    const { clock, first, handle, held } = await frozenFirst()
    await first.mill.jobs.remove(handle)
    held.open()
    await clock.advance(10_000)
    expect(await first.mill.jobs.get(handle)).toBeNull()
  })
})
