// Kinds of jobs: what is kept for them across runs, where they live, and that they run without a queue.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import type { OpenPlace } from './place.ts'

const double = defineJob({
  name: 'double',
  queue: 'here',
  run: async ({ input }: RunContext<number>) => ({ doubled: input * 2 }),
})
const picky = defineJob({
  name: 'picky',
  queue: 'there',
  connection: 'eu',
  attempts: 1,
  run({ input }: RunContext<string>) {
    if (input === 'fail') throw new Error('broken in eu')
    return input
  },
})

export function kinds(place: OpenPlace): void {
  test('J10 metadata of a kind is shared by all processes, and no increment is lost', async () => {
    await using at = await place()
    const counting = defineJob({
      name: 'counting',
      run: async ({ metadata, input }: RunContext<number>) => {
        await metadata.set('last', { input })
        return await metadata.increment('runs')
      },
    })
    const [one, two] = [await at.process([counting, double]), await at.process([counting, double])]
    await one.work({ concurrency: 5 })
    await two.work({ concurrency: 5 })
    const handles = await one.enqueueMany(Array.from({ length: 60 }, (_, input) => [counting, input] as const))
    const sums = await Promise.all(handles.map((handle) => handle.result()))
    expect(sums.toSorted((a, b) => a - b)).toEqual(Array.from({ length: 60 }, (_, index) => index + 1))
    expect(await two.metadata(counting).get('runs')).toBe(60)
    expect(await two.metadata(counting).get('last')).toMatchObject({ input: expect.any(Number) as number })
    expect(await two.metadata(double).get('runs')).toBeNull()
    expect(await one.metadata(counting).remove('runs')).toBe(true)
    expect(await two.metadata(counting).increment('runs', 5)).toBe(5)
  })

  test('J13 two stores on one server are two named connections, and each kind lives on its own', async () => {
    await using at = await place()
    const connections = {
      default: at.backend(),
      eu: at.backend('millrace_eu'),
    }
    const mill = await at.process([double, picky], { connections })
    const worker = await mill.work()
    expect(worker.ids.length).toBe(2)
    const [here, there] = [await mill.enqueue(double, 4), await mill.enqueue(picky, 'a')]
    expect([here.connection, there.connection]).toEqual(['default', 'eu'])
    expect([await here.result(), await there.result()]).toEqual([{ doubled: 8 }, 'a'])
    for (const { connection, id } of [here, there]) {
      expect((await mill.jobs.list({ connection })).items.map((job) => job.id)).toEqual([id])
    }
    const mixed = mill.enqueueMany([
      [double, 1],
      [picky, 'b'],
    ])
    await expect(mixed).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
    const failed = await mill.enqueue(picky, 'fail')
    await expect(failed.result()).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(await mill.deadLetters.get(failed.id)).toMatchObject({ connection: 'eu' })
    expect((await mill.deadLetters.list({ connection: 'eu' })).items.map(({ id }) => id)).toEqual([failed.id])
  })

  test('J14 a job runs directly with typed input, without a store, and through the queue with the same result', async () => {
    const direct: { doubled: number } = await double.run(21)
    expect(direct).toEqual({ doubled: 42 })
    await using at = await place()
    const mill = await at.process([double])
    await mill.work()
    expect(await mill.enqueueAndWait(double, 21)).toEqual(direct)
    expect((await mill.jobs.list()).items).toHaveLength(1)
  })
}
