// Middleware around enqueue and run, typed events, and processes that take over from each other.
import { describe, expect, test } from 'vitest'
import { cancel, createMillrace, defineJob, fixed, memory, release } from '../../src/index.ts'
import type { EnqueueMiddleware, Events, RunContext, RunMiddleware } from '../../src/index.ts'
import { Tally, VirtualClock, gate, setup, startProcess } from './support.ts'

const echo = defineJob({ name: 'echo', attempts: 1, run: ({ input }: RunContext<string>) => input })

describe('memory', () => {
  test('J2 enqueue middleware sees, changes and refuses, the first one outermost', async () => {
    const order: string[] = []
    const outer: EnqueueMiddleware = async (call, next) => {
      order.push(`outer ${String(call.input)}`)
      const reply = await next({ ...call, options: { ...call.options, tags: ['traced'] } })
      order.push(`outer ${reply.outcome}`)
      return reply
    }
    const inner: EnqueueMiddleware = async (call, next) => {
      order.push(`inner ${call.options.tags?.join() ?? ''}`)
      if (call.input === 'forbidden') throw new Error('not this one')
      return next()
    }
    const { mill, calls } = await setup([echo], { use: { enqueue: [outer, inner] } })
    const handle = await mill.enqueue(echo, 'a')
    expect(order).toEqual(['outer a', 'inner traced', 'outer inserted'])
    expect(await mill.jobs.get(handle)).toMatchObject({ tags: ['traced'] })
    await expect(
      mill.enqueueMany([
        [echo, 'b'],
        [echo, 'forbidden'],
      ]),
    ).rejects.toThrow('not this one')
    expect((await mill.jobs.list()).items.length).toBe(1)
    await mill.enqueueMany([
      [echo, 'c'],
      [echo, 'd'],
    ])
    expect(calls.get('jobs.insert')).toBe(2)
    expect((await mill.jobs.list({ tag: 'traced' })).items.length).toBe(3)
  })

  test('D2 run middleware wraps every run, sees its error and may change its result', async () => {
    const order: string[] = []
    const outer: RunMiddleware = async ({ job }, next) => {
      order.push(`before ${job.name}`)
      try {
        return `<${String(await next())}>`
      } catch (error) {
        order.push(`caught ${(error as Error).message}`)
        throw error
      }
    }
    const failing = defineJob({
      name: 'failing',
      attempts: 1,
      run: () => {
        throw new Error('at once')
      },
    })
    const { clock, mill } = await setup([echo, failing], { use: { run: [outer] } })
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(echo, 'a'))).toBe('<a>')
    await expect(clock.during(mill.enqueueAndWait(failing, undefined))).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(order).toEqual(['before echo', 'before failing', 'caught at once'])
  })

  test('D2 run middleware that is no async function sees the error of a handler that throws at once', async () => {
    const caught: string[] = []
    const plain: RunMiddleware = (_, next) =>
      next().catch((error: unknown) => {
        caught.push((error as Error).message)
        return 'mended'
      })
    const failing = defineJob({
      name: 'failing',
      attempts: 1,
      run: (): string => {
        throw new Error('at once')
      },
    })
    const { clock, mill } = await setup([failing], { use: { run: [plain] } })
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(failing, undefined))).toBe('mended')
    expect(caught).toEqual(['at once'])
  })

  test('D2 run middleware that calls next twice does not run the handler twice', async () => {
    let runs = 0
    const job = defineJob({ name: 'job', attempts: 1, run: () => ++runs })
    const twice: RunMiddleware = async (_, next) => {
      await next()
      return next()
    }
    const { clock, mill } = await setup([job], { use: { run: [twice] } })
    await mill.work()
    await clock.during(mill.enqueueAndWait(job, undefined).catch(() => undefined))
    expect(runs).toBe(1)
  })

  test('D2 every event of a life of a job is told, typed, and a listener that throws disturbs nobody', async () => {
    const told: string[] = []
    let released = false
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 2, delay: '1s' }),
      run({ input, attempt }: RunContext<string>) {
        if (input === 'retry' && attempt === 1) throw new Error('once')
        if (input === 'fail') throw Object.assign(new Error('never'), { status: 400 })
        if (input === 'cancel') return cancel()
        if (input !== 'release' || released) return input
        released = true
        return release()
      },
    })
    const { clock, mill } = await setup([job])
    const names = ['enqueued', 'started', 'completed', 'retried', 'failed', 'cancelled', 'released'] as const
    for (const name of names) {
      mill.on(name, (event: Events[typeof name]) => {
        told.push(name)
        expect(event.queue).toBe('default')
        throw new Error('a bad listener')
      })
    }
    const silent: string[] = []
    const stop = mill.on('completed', () => silent.push('x'))
    stop()
    await mill.work()
    for (const input of ['ok', 'retry', 'fail', 'cancel', 'release']) {
      await clock.during(mill.enqueueAndWait(job, input).catch(() => undefined))
    }
    const count = (name: string) => told.filter((one) => one === name).length
    expect(names.map((name) => [name, count(name)])).toEqual([
      ['enqueued', 5],
      ['started', 7],
      ['completed', 3],
      ['retried', 1],
      ['failed', 1],
      ['cancelled', 1],
      ['released', 1],
    ])
    expect(silent).toEqual([])
  })

  test('D2 completed is told only after the store has it', async () => {
    const { clock, mill, backend } = await setup([echo])
    const statuses: Promise<string | undefined>[] = []
    mill.on('completed', ({ id }) => statuses.push(backend.query.get([id]).then(([job]) => job?.status)))
    await mill.work()
    await clock.during(mill.enqueueAndWait(echo, 'a'))
    await clock.advance(10)
    expect(await Promise.all(statuses)).toEqual(['completed'])
  })

  test('T2 maintenance of a crashed leader is taken over, and two of them do nothing twice', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const ticks = new Tally()
    const tick = defineJob({ name: 'tick', run: () => void ticks.add('tick') })
    const [first, second] = [await startProcess(clock, backend, [tick]), await startProcess(clock, backend, [tick])]
    await first.mill.work()
    await second.mill.work()
    await first.mill.schedules.upsert('tick', { job: tick, every: '5s' })
    const delayed = await first.mill.enqueue(tick, undefined, { delay: '20s' })
    await clock.advance(7_000)
    expect(ticks.of('tick')).toBe(2)
    first.crash()
    await clock.during(second.mill.result(delayed), 40_000)
    await clock.advance(60_000)
    const jobs = (await second.mill.jobs.list({ schedule: 'tick' }, { limit: 200 })).items
    const moments = jobs.map(({ schedule }) => schedule!.tick.getTime())
    expect(new Set(moments).size).toBe(moments.length)
    expect(moments.length).toBeGreaterThanOrEqual(13)
  })

  test('D1 a leader that is frozen and wakes does nothing twice', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const runs = new Tally()
    const job = defineJob({ name: 'job', run: ({ input }: RunContext<number>) => void runs.add(input) })
    const [first, second] = [await startProcess(clock, backend, [job]), await startProcess(clock, backend, [job])]
    await first.mill.work()
    await second.mill.work()
    for (let input = 0; input < 30; input++) await second.mill.enqueue(job, input, { delay: 1_000 * input })
    await clock.advance(3_500)
    first.freeze()
    await clock.advance(20_000)
    first.thaw()
    await clock.advance(60_000)
    for (let input = 0; input < 30; input++) expect(runs.of(input)).toBe(1)
  })

  test('D2 `await using` stops the workers', async () => {
    const ended = gate()
    const job = defineJob({ name: 'job', run: () => ended.open() })
    const backend = memory()
    {
      await using mill = await createMillrace({ jobs: [job], backend })
      await using worker = await mill.work()
      await mill.enqueue(job)
      await ended.opened
      expect(worker.ids.length).toBe(1)
    }
    await expect(backend.workers.list()).rejects.toMatchObject({ code: 'STOPPED' })
  })
})
