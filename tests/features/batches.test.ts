// Batches and dependencies.
import { describe, expect, test } from 'vitest'
import { cancel, defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { gate, setup } from './support.ts'

/** Jobs that end as their input says, and a record of the callbacks that ran. */
async function shop() {
  const callbacks: string[] = []
  const work = defineJob({
    name: 'work',
    attempts: 1,
    run({ input }: RunContext<string>) {
      if (input === 'fail') throw new Error('as asked')
      if (input === 'cancel') return cancel()
      return input
    },
  })
  const tell = defineJob({
    name: 'tell',
    queue: 'tell',
    run: ({ input }: RunContext<string>) => void callbacks.push(input),
  })
  const { clock, mill } = await setup([work, tell])
  const options = {
    onComplete: [tell, 'complete'],
    onSuccess: [tell, 'success'],
    onFailure: [tell, 'failure'],
  } as const
  return { clock, mill, work, tell, callbacks, options }
}

describe('memory', () => {
  test('T3 an open batch takes jobs until it is sealed; its numbers are right all along', async () => {
    const { clock, mill, work, callbacks, options } = await shop()
    const batch = await mill.batch('orders', options)
    expect(await batch.progress()).toMatchObject({ total: 0, percent: 0, successRate: 0 })
    await batch.add(work, 'a')
    await batch.addMany([
      [work, 'b'],
      [work, 'fail'],
      [work, 'cancel'],
    ])
    await mill.work()
    await clock.advance(1_000)
    const progress = { total: 4, pending: 0, completed: 2, failed: 1, cancelled: 1, percent: 50 }
    expect(await batch.progress()).toMatchObject(progress)
    expect((await batch.progress()).successRate).toBeCloseTo(2 / 3)
    expect(callbacks).toEqual([])
    await batch.seal()
    const info = await clock.during(batch.wait())
    expect(info).toMatchObject({ name: 'orders', sealed: true, cancelled: false, progress })
    await clock.advance(1_000)
    expect(callbacks.toSorted()).toEqual(['complete', 'failure'])
    await expect(batch.add(work, 'late')).rejects.toMatchObject({ code: 'BATCH_CLOSED' })
  })

  test('T3 callbacks are enqueued exactly once: success when all completed, also of an empty batch', async () => {
    const { clock, mill, work, callbacks, options } = await shop()
    await mill.work()
    const full = await mill.enqueueBatch(
      'full',
      Array.from({ length: 50 }, () => [work, 'a'] as const),
      options,
    )
    await clock.during(full.wait())
    await clock.advance(5_000)
    expect(callbacks.toSorted()).toEqual(['complete', 'success'])
    const empty = await mill.enqueueBatch('empty', [], options)
    await clock.during(empty.wait())
    await clock.advance(5_000)
    expect(callbacks.length).toBe(4)
    await full.seal()
    await clock.advance(5_000)
    expect(callbacks.length).toBe(4)
  })

  test('T3 a replayed failure does not call back again, and the counters equal a recount', async () => {
    const { clock, mill, work, callbacks, options } = await shop()
    await mill.work()
    const batch = await mill.enqueueBatch(
      'one',
      [
        [work, 'fail'],
        [work, 'a'],
      ],
      options,
    )
    await clock.during(batch.wait())
    await clock.advance(1_000)
    const before = callbacks.length
    const [letter] = (await mill.deadLetters.list()).items
    await mill.deadLetters.replay(letter!.id)
    await clock.advance(5_000)
    expect(callbacks.length).toBe(before)
    const jobs = (await mill.jobs.list({ batch: batch.id })).items
    const count = (status: string) => jobs.filter((job) => job.status === status).length
    expect(await batch.progress()).toMatchObject({
      total: 2,
      completed: count('completed'),
      failed: count('failed'),
      pending: 0,
    })
  })

  test('T3 jobs added from inside keep a sealed batch open until they end', async () => {
    const end = gate()
    const child = defineJob({ name: 'child', run: () => end.opened })
    const spawning = defineJob({
      name: 'spawning',
      async run(context) {
        for (let n = 0; n < 3; n++) await context.enqueue(child, undefined, { batch: 'same' })
      },
    })
    const done: string[] = []
    const tell = defineJob({ name: 'tell', run: () => void done.push('told') })
    const { clock, mill } = await setup([spawning, child, tell])
    await mill.work()
    const batch = await mill.enqueueBatch('tree', [[spawning]], { onComplete: [tell, undefined] })
    await clock.advance(5_000)
    expect(await batch.progress()).toMatchObject({ total: 4, completed: 1, pending: 3 })
    expect(done).toEqual([])
    end.open()
    expect((await clock.during(batch.wait())).progress).toMatchObject({ total: 4, completed: 4, percent: 100 })
    await clock.advance(1_000)
    expect(done).toEqual(['told'])
  })

  test('T3 cancelling a batch reaches waiting and running jobs and finishes it', async () => {
    const started = gate()
    const endless = defineJob({
      name: 'endless',
      run: ({ signal }) =>
        new Promise<never>((_, reject) => {
          started.open()
          signal.addEventListener('abort', () => reject(signal.reason as Error))
        }),
    })
    const { clock, mill } = await setup([endless])
    await mill.work({ concurrency: 2 })
    const batch = await mill.enqueueBatch(
      'big',
      Array.from({ length: 500 }, () => [endless] as const),
    )
    await clock.during(started.opened)
    expect(await batch.cancel()).toBe(500)
    const info = await clock.during(batch.wait(), 30_000)
    expect(info).toMatchObject({ cancelled: true, progress: { total: 500, cancelled: 500, pending: 0 } })
    expect(await mill.batches.get(batch.id)).toMatchObject({ cancelled: true })
  })

  test('T4 a child runs after all its parents and reads their results in the order named', async () => {
    const order: string[] = []
    const parent = defineJob({
      name: 'parent',
      async run({ input }: RunContext<number>) {
        await new Promise<void>((resolve) => clock.timer(1_000 - input, resolve))
        order.push(`parent ${input}`)
        return { n: input }
      },
    })
    const child = defineJob({
      name: 'child',
      async run(context) {
        order.push('child')
        return (await context.parents()).map(({ status, result }) => [status, result])
      },
    })
    const { clock, mill } = await setup([parent, child])
    await mill.work()
    const parents = [await mill.enqueue(parent, 1), await mill.enqueue(parent, 2), await mill.enqueue(parent, 3)]
    const handle = await mill.enqueue(child, undefined, { after: parents })
    expect(await clock.during(handle.result())).toEqual([1, 2, 3].map((n) => ['completed', { n }]))
    expect(order.at(-1)).toBe('child')
    const late = await mill.enqueue(child, undefined, { after: parents[0]! })
    expect(await clock.during(late.result(), 1_000)).toEqual([['completed', { n: 1 }]])
  })

  test('T4 when a parent fails or is cancelled the child fails, is cancelled or goes on, as it says', async () => {
    for (const ended of ['fail', 'cancel'] as const) {
      for (const [policy, status] of [
        ['fail', 'failed'],
        ['cancel', 'cancelled'],
        ['continue', 'completed'],
      ] as const) {
        const { clock, mill, work } = await shop()
        await mill.work()
        const parent = await mill.enqueue(work, ended, { delay: '1s' })
        const child = await mill.enqueue(work, 'child', { after: parent, onParentFailure: policy })
        const grandchild = await mill.enqueue(work, 'grandchild', { after: child })
        await clock.advance(10_000)
        expect(await child.status()).toBe(status)
        expect(await grandchild.status()).toBe(status === 'completed' ? 'completed' : 'failed')
        if (policy === 'fail')
          expect(await mill.deadLetters.get(child)).toMatchObject({ lastError: { code: 'PARENT_FAILED' } })
      }
    }
  })

  test('T4 a flow is written in one round trip and runs from the leaves to the root', async () => {
    const order: string[] = []
    const node = defineJob({
      name: 'node',
      async run(context: RunContext<string>) {
        order.push(context.input)
        return [context.input, ...(await context.parents()).map(({ result }) => result)]
      },
    })
    const { clock, mill, calls } = await setup([node])
    await mill.work()
    const shared = { job: node, input: 'shared' } as const
    const flow = await mill.flow({
      job: node,
      input: 'root',
      children: [
        { job: node, input: 'left', children: [shared] },
        { job: node, input: 'right', children: [shared] },
      ],
    })
    expect(calls.get('jobs.insert')).toBe(1)
    expect(flow.handles.length).toBe(4)
    expect(await clock.during(flow.root.result())).toEqual(['root', ['left', ['shared']], ['right', ['shared']]])
    expect(order[0]).toBe('shared')
    expect(order.at(-1)).toBe('root')
  })

  test('T4 a removed parent counts as one that did not complete', async () => {
    const { clock, mill, work } = await shop()
    await mill.work()
    const parent = await mill.enqueue(work, 'a', { delay: '1h' })
    const child = await mill.enqueue(work, 'child', { after: parent, onParentFailure: 'cancel' })
    await mill.jobs.remove(parent)
    await clock.advance(5_000)
    expect(await child.status()).toBe('cancelled')
  })
})
