// Queues as configured records.
import { expect } from 'vitest'
import { fixed } from '../../src/core/retry.ts'
import { dump } from './dump.ts'
import { NO_LIMITS, QUEUE, queueSettings } from './world.ts'
import type { Setup } from './world.ts'

export function queues({ test }: Setup): void {
  test('J3 a queue is created by its first job, with the defaults', async (world) => {
    expect(await world.queues.get(QUEUE)).toBeNull()
    await world.addOne()
    expect(await world.queues.get(QUEUE)).toMatchObject({ ...queueSettings(QUEUE), paused: false })
    expect((await world.queues.list()).map(({ name }) => name)).toEqual([QUEUE])
  })

  test('J3 ensure creates the missing queues and leaves the others as they are', async (world) => {
    await world.queues.ensure([queueSettings('a', { defaultPriority: 7 })])
    const [first] = await world.queues.ensure([queueSettings('a'), queueSettings('b')])
    expect(first?.defaultPriority).toBe(7)
    expect((await world.queues.list()).map(({ name }) => name).sort()).toEqual(['a', 'b'])
  })

  test('J3 ensure answers a record for every name, in the order asked', async (world) => {
    const records = await world.queues.ensure([queueSettings('b'), queueSettings('a'), queueSettings('c')])
    expect(records.map(({ name }) => name)).toEqual(['b', 'a', 'c'])
    expect(records.every(({ createdAtMs }) => createdAtMs === world.clock.nowMs())).toBe(true)
  })

  test('J3 configure creates a queue, and fields that are absent stay', async (world) => {
    const created = await world.queues.configure('a', { defaultPriority: 3 })
    expect(created).toMatchObject(queueSettings('a', { defaultPriority: 3 }))
    const change = { retry: fixed({ delay: 10 }), retention: { completedMs: 1, failedMs: 2, cancelledMs: null } }
    const changed = await world.queues.configure('a', change)
    expect(changed).toMatchObject(queueSettings('a', { defaultPriority: 3, ...change }))
    expect(await world.queues.get('a')).toEqual(changed)
  })

  test('J3 the version of a queue rises with every change and only then', async (world) => {
    const versions: number[] = []
    const look = async () => versions.push((await world.queues.get('a'))!.version)
    await world.queues.ensure([queueSettings('a')])
    await look()
    await world.queues.ensure([queueSettings('a')])
    expect((await world.queues.get('a'))?.version).toBe(versions[0])
    await world.queues.configure('a', { limits: { ...NO_LIMITS, concurrency: 2 } })
    await look()
    await world.queues.configure('a', { paused: true })
    await look()
    expect(versions).toEqual([...new Set(versions)].sort((a, b) => a - b))
    expect(versions).toHaveLength(3)
  })

  test('J3 a change that expects a version is made only if nobody changed the queue meanwhile', async (world) => {
    const created = await world.queues.configure('a', { defaultPriority: 1 }, 0)
    expect(created?.defaultPriority).toBe(1)
    expect(await world.queues.configure('a', { defaultPriority: 2 }, 0)).toBeNull()
    const changed = await world.queues.configure('a', { defaultPriority: 3 }, created!.version)
    expect(changed?.defaultPriority).toBe(3)
    const before = await dump(world.backend)
    expect(await world.queues.configure('a', { defaultPriority: 4 }, created!.version)).toBeNull()
    expect(await world.queues.configure('unknown', { defaultPriority: 4 }, 7)).toBeNull()
    expect(await dump(world.backend)).toEqual(before)
  })

  test('J3 an unknown queue is null, and asking for it creates nothing', async (world) => {
    const worker = await world.worker()
    await worker.claim(1, ['nowhere'])
    await world.limits.inspect('nowhere')
    await world.limits.take([{ queue: 'nowhere', key: null }])
    await world.query.counts('nowhere')
    expect(await world.queues.get('nowhere')).toBeNull()
    expect(await world.queues.list()).toEqual([])
  })
}
