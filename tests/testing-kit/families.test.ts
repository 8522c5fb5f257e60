// Jobs that hang together: batches with callbacks, dependencies, groups, unique jobs.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { completed, createTestMillrace, deadLetters, enqueued, expectEnqueued } from '../../src/testing/index.ts'
import { JOBS, part, sendMail, whole } from './jobs.ts'

const setup = () => createTestMillrace({ jobs: JOBS })

describe('batches', () => {
  test('O7 the callbacks of a batch run in the same drain', async () => {
    const mill = await setup()
    const batch = await mill.enqueueBatch(
      'import',
      [
        [part, { size: 1 }],
        [part, { size: 2 }],
      ],
      {
        onSuccess: [sendMail, { to: 'ops', subject: 'done' }],
        onFailure: [sendMail, { to: 'ops', subject: 'broken' }],
      },
    )
    expect(await mill.drain()).toMatchObject({ completed: 3 })
    expect((await batch.progress()).completed).toBe(2)
    expectEnqueued(mill, sendMail, { subject: 'done' }, { count: 1 })
    expect(enqueued(mill, sendMail)).toHaveLength(1)
  })

  test('O7 a batch with a failure calls the other callback', async () => {
    const mill = await setup()
    const batch = await mill.batch('import', { onFailure: [sendMail, { to: 'ops', subject: 'broken' }] })
    await batch.add(part, { size: -1 })
    await batch.add(part, { size: 1 })
    await mill.drain()
    expect(enqueued(mill, sendMail)).toHaveLength(0)
    await batch.seal()
    expect(await mill.drain()).toMatchObject({ completed: 1 })
    expect(completed(mill, sendMail)).toMatchObject([{ payload: { subject: 'broken' } }])
  })
})

describe('dependencies', () => {
  test('O7 a flow runs from its leaves to its root', async () => {
    const mill = await setup()
    const flow = await mill.flow({
      job: whole,
      input: null,
      children: [
        { job: part, input: { size: 2 } },
        { job: part, input: { size: 40 } },
      ],
    })
    expect(enqueued(mill, whole)[0]?.status).toBe('blocked')
    expect(await mill.drain()).toMatchObject({ completed: 3 })
    expect(completed(mill, whole)[0]?.result).toBe(42)
    expect(flow).toBeDefined()
  })

  test('O7 the descendants of a dead letter fail with it, however many generations there are', async () => {
    const mill = await setup()
    let last = await mill.enqueue(part, { size: -1 })
    for (let generation = 0; generation < 5; generation++) last = await mill.enqueue(part, { size: 1 }, { after: last })
    expect(await mill.drain()).toMatchObject({ ran: 1, failed: 1 })
    expect(deadLetters(mill)).toHaveLength(6)
    expect(deadLetters(mill).at(-1)?.lastError?.code).toBe('PARENT_FAILED')
  })

  test('O7 the hook of a job that failed with its parent is called', async () => {
    const failed: string[] = []
    const mill = await createTestMillrace({
      jobs: JOBS,
      onFailed: ({ error }) => void failed.push(error.code ?? error.name),
    })
    const parent = await mill.enqueue(part, { size: -1 })
    await mill.enqueue(part, { size: 1 }, { after: parent })
    await mill.drain()
    expect(failed).toEqual(['RangeError', 'PARENT_FAILED'])
  })
})

describe('gates', () => {
  test('O7 groups, unique keys and concurrency limits hold in a drain', async () => {
    const seen: string[] = []
    const job = defineJob({
      name: 'grouped',
      group: () => 'one',
      run: ({ input }: RunContext<string>) => void seen.push(input),
    })
    const mill = await createTestMillrace({ jobs: [job], queues: { default: { concurrency: 1 } } })
    await mill.enqueueMany(['a', 'b', 'c'].map((input) => [job, input] as const))
    const [first, second] = await mill.enqueueMany([
      [job, 'd', { unique: 'd' }],
      [job, 'd', { unique: 'd' }],
    ])
    expect([first.duplicate, second.duplicate]).toEqual([false, true])
    expect(await mill.drain()).toMatchObject({ completed: 4 })
    expect(seen).toEqual(['a', 'b', 'c', 'd'])
  })

  test('O7 middleware sees the enqueues and the runs of a drain', async () => {
    const seen: string[] = []
    const mill = await createTestMillrace({
      jobs: JOBS,
      use: {
        enqueue: [async (call, next) => (seen.push(`enqueue ${call.job.name}`), next())],
        run: [async ({ job }, next) => (seen.push(`run ${job.name}`), next())],
      },
    })
    await mill.enqueue(sendMail, { to: 'ada' })
    await mill.drain()
    expect(seen).toEqual(['enqueue send-mail', 'run send-mail'])
  })
})
