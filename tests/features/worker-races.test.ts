// Corners of the worker that only bad timing reaches.
import { describe, expect, test } from 'vitest'
import { defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'

describe('memory', () => {
  test('D2 a run that ends after any number of turns is settled at once, not by the next poll', async () => {
    const turning = defineJob({
      name: 'turning',
      async run({ input }: RunContext<number>) {
        for (let turn = 0; turn < input; turn++) await Promise.resolve()
      },
    })
    const { clock, mill } = await setup([turning])
    const late: number[] = []
    await mill.work()
    for (let turns = 0; turns < 60; turns++) {
      // An idle worker polls slowly: only then would a settlement that is forgotten wait.
      await clock.advance(3_000)
      const startMs = clock.nowMs()
      let endMs = Infinity
      const stop = mill.on('completed', () => (endMs = clock.nowMs()))
      await mill.enqueue(turning, turns)
      await clock.advance(2_000)
      stop()
      if (endMs - startMs > 5) late.push(turns)
    }
    expect(late).toEqual([])
  })

  test('D2 a stop while rate tokens are being taken gives the jobs back without an attempt', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const slowTake = gate()
    let taking = 0
    const limited = defineJob({ name: 'limited', queue: 'limited', run: () => 1 })
    const idle = defineJob({ name: 'idle', queue: 'idle', run: () => 1 })
    const queues = { limited: { rate: { limit: 100, per: '1s' } } } as const
    const stopping = await startProcess(clock, backend, [limited], {
      queues,
      around: async (what, call) => {
        if (what === 'limits.take') {
          taking += 1
          await slowTake.opened
        }
        return call()
      },
    })
    const other = await startProcess(clock, backend, [limited, idle], { queues })
    await other.mill.work({ queues: ['idle'] })
    const worker = await stopping.mill.work()
    const handle = await stopping.mill.enqueue(limited)
    await clock.until(() => taking > 0)
    const stopped = worker.stop()
    await clock.advance(3_000)
    slowTake.open()
    await clock.during(stopped)
    await clock.advance(60_000)
    expect(await other.mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0, crashCount: 0 })
  })

  test('D2 stop() during work() leaves no worker behind', async () => {
    const job = defineJob({ name: 'job', run: () => 1 })
    const { clock, mill, backend } = await setup([job])
    const working = mill.work().catch((error: unknown) => error)
    await clock.during(mill.stop())
    await clock.during(working)
    await clock.advance(1_000)
    const alive = (await backend.workers.list()).filter(({ state }) => state === 'alive')
    expect(alive).toEqual([])
  })

  test('D2 a new life that was declared dead before its first beat is followed by another', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const mine = defineJob({ name: 'mine', queue: 'mine', run: () => 'ran' })
    const other = defineJob({ name: 'other', queue: 'other', run: () => 1 })
    let mute = false
    const flaky = await startProcess(clock, backend, [mine], {
      maintenance: false,
      around: async (what, call) => {
        if (mute && what === 'workers.beat') throw Object.assign(new Error('lost'), { code: 'ECONNRESET' })
        return call()
      },
    })
    const judge = await startProcess(clock, backend, [other])
    await judge.mill.work()
    await flaky.mill.work()
    mute = true
    await clock.advance(40_000)
    mute = false
    await clock.advance(5_000)
    const handle = await flaky.mill.enqueue(mine)
    expect(await clock.during(handle.result(), 20_000)).toBe('ran')
  })

  test('D2 after the loop was blocked the poll alone finds new jobs again, whatever was due first', async () => {
    const job = defineJob({ name: 'job', run: () => 'ran' })
    const { clock, mill } = await setup([job], { deaf: true })
    await mill.work()
    const waits: number[] = []
    for (let round = 0; round < 20; round++) {
      await clock.advance(12_000 + round * 130)
      clock.jump(9_000)
      await clock.advance(20)
      const enqueuedMs = clock.nowMs()
      const handle = await mill.enqueue(job)
      await clock.during(handle.result(), 60_000)
      waits.push((await mill.jobs.get(handle))!.startedAt!.getTime() - enqueuedMs)
    }
    expect(Math.max(...waits)).toBeLessThanOrEqual(1_300)
  })

  test('D2 a worker survives a store that fails every third call, and every job runs to its end once', async () => {
    let calls = 0
    const runs = new Map<string, number>()
    const job = defineJob({
      name: 'job',
      run: ({ job: { id } }) => {
        runs.set(id, (runs.get(id) ?? 0) + 1)
      },
    })
    const { clock, mill } = await setup([job], {
      around: async (what, call) => {
        if (what.startsWith('jobs.') && what !== 'jobs.insert' && ++calls % 3 === 0)
          throw Object.assign(new Error('busy'), { code: 'ECONNRESET' })
        return call()
      },
    })
    const handles = await mill.enqueueMany(Array.from({ length: 200 }, () => [job] as const))
    await mill.work({ concurrency: 5 })
    for (const handle of handles) await clock.during(handle.result(), 600_000)
    expect([...runs.values()].every((count) => count === 1)).toBe(true)
  })

  test('D2 two stops at once, and a stop before anything ran, both end', async () => {
    const job = defineJob({ name: 'job', run: () => 1 })
    const { clock, mill } = await setup([job])
    const worker = await mill.work()
    await clock.during(Promise.all([worker.stop(), worker.stop({ deadline: 0 }), mill.stop()]))
    await clock.during(mill.stop())
    await expect(mill.work()).rejects.toMatchObject({ code: 'STOPPED' })
  })

  test('D2 of two workers of one process one stops, the other and the maintenance go on', async () => {
    const job = defineJob({ name: 'job', run: () => 'ran' })
    const { clock, mill } = await setup([job])
    const [one, two] = [await mill.work(), await mill.work()]
    await clock.during(one.stop())
    const delayed = await mill.enqueue(job, undefined, { delay: '5s' })
    expect(await clock.during(delayed.result(), 6_000)).toBe('ran')
    expect(two.ids.length).toBe(1)
  })

  test('D2 a work() that could not start leaves nothing running and may be called again', async () => {
    const job = defineJob({ name: 'job', run: () => 'ran' })
    let broken = true
    const { clock, mill, calls } = await setup([job], {
      around: async (what, call) => {
        if (broken && what === 'workers.register') throw Object.assign(new Error('down'), { code: 'ECONNREFUSED' })
        return call()
      },
    })
    await expect(clock.during(mill.work())).rejects.toThrow('down')
    await clock.advance(1_000)
    const total = () => [...calls.values()].reduce((sum, count) => sum + count, 0)
    const before = total()
    await clock.advance(60_000)
    expect(total() - before).toBe(0)
    broken = false
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(job, undefined), 1_000)).toBe('ran')
  })

  test('D2 a claim that never answers delays the worker by the store timeout and loses nothing', async () => {
    const job = defineJob({ name: 'job', run: ({ attempt }) => attempt })
    let hangs = 1
    const { clock, mill } = await setup([job], {
      storeTimeout: '3s',
      around: async (what, call) => {
        const value = await call()
        return what === 'jobs.claim' && hangs-- > 0 ? new Promise<never>(() => undefined) : value
      },
    })
    const handles = await mill.enqueueMany(Array.from({ length: 5 }, () => [job] as const))
    await mill.work()
    for (const handle of handles) expect(await clock.during(handle.result(), 6_000)).toBe(1)
  })
})
