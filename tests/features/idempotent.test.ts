// `idempotent(key, fn)`: the work behind a key is done once, whoever asks and however they end.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed, memory, snooze } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'

describe('memory', () => {
  test('D10 a re-run gets the stored result and the work is not done again', async () => {
    let charged = 0
    const charge = defineJob({
      name: 'charge',
      retry: fixed({ attempts: 3, delay: '1s' }),
      async run({ idempotent, attempt }) {
        const receipt = await idempotent('order-42', async () => ({ receipt: ++charged, none: null }))
        if (attempt < 3) throw new Error('after the charge')
        return receipt
      },
    })
    const { clock, mill } = await setup([charge])
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(charge, undefined))).toEqual({ receipt: 1, none: null })
    expect(charged).toBe(1)
  })

  test('D10 another job with the same key shares the result, another kind does not', async () => {
    let runs = 0
    const make = (name: 'one' | 'two') =>
      defineJob({ name, run: async ({ idempotent }) => idempotent('key', () => ++runs) })
    const [one, two] = [make('one'), make('two')]
    const { clock, mill } = await setup([one, two])
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(one, undefined))).toBe(1)
    expect(await clock.during(mill.enqueueAndWait(one, undefined))).toBe(1)
    expect(await clock.during(mill.enqueueAndWait(two, undefined))).toBe(2)
  })

  test('D10 a concurrent holder is waited for, and its result is shared', async () => {
    let runs = 0
    const end = gate()
    const job = defineJob({
      name: 'job',
      run: async ({ idempotent }) =>
        idempotent('key', async () => {
          runs += 1
          await end.opened
          return 'shared'
        }),
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    const handles = await mill.enqueueMany([[job], [job], [job]])
    await clock.advance(10_000)
    end.open()
    for (const handle of handles) expect(await clock.during(handle.result(), 2_000)).toBe('shared')
    expect(runs).toBe(1)
  })

  test('D10 the wait for a holder is bounded: IDEMPOTENCY_BUSY, which is tried again', async () => {
    const [inside, end] = [gate(), gate()]
    let busy: unknown
    const job = defineJob({
      name: 'job',
      retry: fixed({ attempts: 3, delay: '1s' }),
      async run({ idempotent }: RunContext<string>) {
        try {
          return await idempotent(
            'key',
            async () => {
              inside.open()
              await end.opened
              return 'value'
            },
            { wait: '5s' },
          )
        } catch (error) {
          busy = error
          throw error
        }
      },
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    await mill.enqueue(job, 'holder')
    await clock.during(inside.opened)
    const waiting = await mill.enqueue(job, 'waiting')
    const startMs = clock.nowMs()
    await clock.until(() => busy !== undefined)
    expect(clock.nowMs() - startMs).toBeGreaterThanOrEqual(5_000)
    expect(clock.nowMs() - startMs).toBeLessThan(5_600)
    expect(busy).toMatchObject({ code: 'IDEMPOTENCY_BUSY', retryable: true })
    end.open()
    expect(await clock.during(waiting.result())).toBe('value')
  })

  test('D10 the holder of a crashed run is taken over by the re-run of the same job at once', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    let runs = 0
    const inside = gate()
    const job = defineJob({
      name: 'job',
      run: async ({ idempotent }) =>
        idempotent('key', () => {
          runs += 1
          inside.open()
          return runs === 1 ? new Promise<never>(() => undefined) : Promise.resolve('taken over')
        }),
    })
    const [dying, heir] = [await startProcess(clock, backend, [job]), await startProcess(clock, backend, [job])]
    await dying.mill.work()
    const handle = await dying.mill.enqueue(job)
    await clock.during(inside.opened)
    dying.crash()
    await heir.mill.work()
    expect(await clock.during(heir.mill.result(handle), 25_000)).toBe('taken over')
    expect(runs).toBe(2)
  })

  test('D10 a failed holder rethrows for good by default, and runs again by option', async () => {
    for (const onFailure of ['rethrow', 'retry'] as const) {
      let runs = 0
      const job = defineJob({
        name: 'job',
        retry: fixed({ attempts: 3, delay: '1s' }),
        run: async ({ idempotent }) =>
          idempotent(
            'key',
            () => {
              if (++runs < 3) throw new Error(`failure ${runs}`)
              return 'third time'
            },
            { onFailure },
          ),
      })
      const { clock, mill } = await setup([job])
      await mill.work()
      const handle = await mill.enqueue(job)
      if (onFailure === 'retry') {
        expect(await clock.during(handle.result())).toBe('third time')
      } else {
        await expect(clock.during(handle.result())).rejects.toMatchObject({ cause: { code: 'IDEMPOTENCY_FAILED' } })
        expect(runs).toBe(1)
        expect((await mill.jobs.get(handle))!.lastError!.message).toContain('failure 1')
      }
    }
  })

  test('D10 a snooze inside is no failure: the next run starts afresh', async () => {
    let runs = 0
    const job = defineJob({
      name: 'job',
      run: async ({ idempotent }) =>
        idempotent('key', () => {
          if (++runs === 1) throw snooze('10s')
          return 'awake'
        }),
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(job, undefined))).toBe('awake')
  })

  test('D10 a result is kept as long as asked', async () => {
    let runs = 0
    const job = defineJob({
      name: 'job',
      run: async ({ idempotent }) => idempotent('key', () => ++runs, { keep: '1m' }),
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    expect(await clock.during(mill.enqueueAndWait(job, undefined))).toBe(1)
    await clock.advance(50_000)
    expect(await clock.during(mill.enqueueAndWait(job, undefined))).toBe(1)
    await clock.advance(11_000)
    expect(await clock.during(mill.enqueueAndWait(job, undefined))).toBe(2)
  })

  test('D10 a long holder that extends its run keeps the key while it works', async () => {
    let runs = 0
    const [inside, end] = [gate(), gate()]
    const job = defineJob({
      name: 'job',
      timeout: '10s',
      async run(context: RunContext<string>) {
        context.extend('5m')
        return context.idempotent(
          'key',
          async () => {
            runs += 1
            inside.open()
            await end.opened
            return 'long work'
          },
          { wait: '4m' },
        )
      },
    })
    const { clock, mill } = await setup([job])
    await mill.work()
    const holder = await mill.enqueue(job, 'holder')
    await clock.during(inside.opened)
    await clock.advance(20_000)
    const second = await mill.enqueue(job, 'second')
    await clock.advance(20_000)
    end.open()
    expect([await clock.during(holder.result()), await clock.during(second.result())]).toEqual([
      'long work',
      'long work',
    ])
    expect(runs).toBe(1)
  })
})
