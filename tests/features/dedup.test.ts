// Deduplication: keys, modes, windows, replace and debounce.
import { describe, expect, test } from 'vitest'
import { defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { VirtualClock, gate, setup, startProcess } from './support.ts'

const echo = defineJob({ name: 'echo', run: ({ input }: RunContext<unknown>) => input as string })

describe('memory', () => {
  test('D9 a second job with the key of a live one is the first one, and says so', async () => {
    const { clock, mill } = await setup([echo])
    const first = await mill.enqueue(echo, 'one', { unique: 'k' })
    const second = await mill.enqueue(echo, 'two', { unique: 'k' })
    const other = await mill.enqueue(echo, 'three', { unique: 'k2' })
    expect([first.duplicate, second.duplicate, other.duplicate]).toEqual([false, true, false])
    expect(second.id).toBe(first.id)
    await mill.work()
    expect(await clock.during(second.result())).toBe('one')
    expect((await mill.enqueue(echo, 'later', { unique: 'k' })).duplicate).toBe(false)
  })

  test('D9 of a hundred enqueues at once from two processes one is new', async () => {
    const clock = new VirtualClock()
    const backend = memory({ clock })
    const [a, b] = [await startProcess(clock, backend, [echo]), await startProcess(clock, backend, [echo])]
    const handles = await Promise.all(
      Array.from({ length: 100 }, (_, index) => (index % 2 ? a : b).mill.enqueue(echo, index, { unique: 'once' })),
    )
    expect(handles.filter(({ duplicate }) => !duplicate).length).toBe(1)
    expect(new Set(handles.map(({ id }) => id)).size).toBe(1)
  })

  test('D9 by content the order of the fields does not matter, a value and the kind do', async () => {
    const sync = defineJob({ name: 'sync', unique: true, run: ({ input }: RunContext<unknown>) => input })
    const twin = defineJob({ name: 'twin', unique: 'content', run: ({ input }: RunContext<unknown>) => input })
    const { mill } = await setup([sync, twin])
    const first = await mill.enqueue(sync, { a: 1, b: { c: [1, 2], d: null } })
    expect((await mill.enqueue(sync, { b: { d: null, c: [1, 2] }, a: 1 })).id).toBe(first.id)
    expect((await mill.enqueue(sync, { a: 2, b: { c: [1, 2], d: null } })).duplicate).toBe(false)
    expect((await mill.enqueue(twin, { a: 1, b: { c: [1, 2], d: null } })).duplicate).toBe(false)
    expect((await mill.enqueue(sync, { a: 1, b: { c: [1, 2], d: null } }, { unique: false })).duplicate).toBe(false)
  })

  test('D9 until-started frees the key at the start, until-finished at the end, also of a failure or a cancellation', async () => {
    for (const mode of ['until-started', 'until-finished'] as const) {
      const [started, end] = [gate(), gate()]
      const held = defineJob({
        name: 'held',
        attempts: 1,
        async run() {
          started.open()
          await end.opened
          throw new Error('ends badly')
        },
      })
      const { clock, mill } = await setup([held])
      const unique = { key: 'k', mode }
      await mill.work()
      const first = await mill.enqueue(held, undefined, { unique })
      await clock.during(started.opened)
      const during = await mill.enqueue(held, undefined, { unique })
      expect(during.duplicate).toBe(mode === 'until-finished')
      end.open()
      await clock.advance(1_000)
      expect(await first.status()).toBe('failed')
      const third = await mill.enqueue(held, undefined, { unique, delay: '1h' })
      expect(third.duplicate).toBe(false)
      await third.cancel()
      expect((await mill.enqueue(held, undefined, { unique, delay: '1h' })).duplicate).toBe(false)
    }
  })

  test('D9 a retry keeps an until-finished key', async () => {
    const failing = defineJob({
      name: 'failing',
      attempts: 2,
      run: () => {
        throw new Error('again')
      },
    })
    const { clock, mill } = await setup([failing])
    await mill.work()
    const first = await mill.enqueue(failing, undefined, { unique: 'k' })
    await clock.advance(100)
    expect(await first.status()).toBe('scheduled')
    expect((await mill.enqueue(failing, undefined, { unique: 'k' })).id).toBe(first.id)
  })

  test('D9 for a time the key outlives the job and ends with the window', async () => {
    const { clock, mill } = await setup([echo])
    await mill.work()
    const unique = { key: 'k', window: '10m' } as const
    const first = await mill.enqueue(echo, 1, { unique })
    await clock.during(first.result())
    await clock.advance(9 * 60_000)
    expect((await mill.enqueue(echo, 2, { unique })).id).toBe(first.id)
    await clock.advance(61_000)
    expect((await mill.enqueue(echo, 3, { unique })).duplicate).toBe(false)
    const usual = await mill.enqueue(echo, 1, { unique: { key: 'hour', mode: 'for-a-time' } })
    await clock.advance(59 * 60_000)
    expect((await mill.enqueue(echo, 1, { unique: { key: 'hour', mode: 'for-a-time' } })).id).toBe(usual.id)
    await clock.advance(61_000)
    expect((await mill.enqueue(echo, 1, { unique: { key: 'hour', mode: 'for-a-time' } })).duplicate).toBe(false)
  })

  test('D9 replace swaps the content of a waiting job and keeps its time', async () => {
    const { clock, mill } = await setup([echo])
    await mill.work()
    const startMs = clock.nowMs()
    const unique = { key: 'k', onDuplicate: 'replace' } as const
    const first = await mill.enqueue(echo, 'old', { unique, delay: '10s' })
    await clock.advance(5_000)
    const second = await mill.enqueue(echo, 'new', { unique, priority: 5 })
    expect(second).toMatchObject({ id: first.id, duplicate: true, outcome: 'replaced' })
    expect(await clock.during(first.result())).toBe('new')
    expect(clock.nowMs() - startMs).toBeLessThan(10_100)
    expect(await mill.jobs.get(first)).toMatchObject({ priority: 5 })
  })

  test('D9 debounce pushes the start back until the calls stop', async () => {
    const { clock, mill } = await setup([echo])
    await mill.work()
    const unique = { key: 'k', onDuplicate: 'debounce' } as const
    const first = await mill.enqueue(echo, 0, { unique, delay: '5s' })
    for (let call = 1; call <= 5; call++) {
      await clock.advance(3_000)
      expect((await mill.enqueue(echo, call, { unique, delay: '5s' })).id).toBe(first.id)
    }
    const lastMs = clock.nowMs()
    expect(await clock.during(first.result())).toBe(5)
    expect((await mill.jobs.get(first))!.startedAt!.getTime() - lastMs).toBeGreaterThanOrEqual(5_000)
  })

  test('D9 a running job is not replaced: the second call learns that it is a duplicate', async () => {
    const [started, end] = [gate(), gate()]
    const held = defineJob({
      name: 'held',
      async run({ input }: RunContext<string>) {
        started.open()
        await end.opened
        return input
      },
    })
    const { clock, mill } = await setup([held])
    await mill.work()
    const unique = { key: 'k', onDuplicate: 'replace' } as const
    const first = await mill.enqueue(held, 'running', { unique })
    await clock.during(started.opened)
    expect(await mill.enqueue(held, 'late', { unique })).toMatchObject({ id: first.id, outcome: 'duplicate' })
    end.open()
    expect(await clock.during(first.result())).toBe('running')
  })

  test('D9 duplicates inside one bulk call are one job', async () => {
    const { mill } = await setup([echo])
    const handles = await mill.enqueueMany([1, 2, 3].map((input) => [echo, input, { unique: 'k' }] as const))
    expect(handles.map(({ duplicate }) => duplicate)).toEqual([false, true, true])
    expect((await mill.jobs.list()).items.length).toBe(1)
  })
})
