// Starting and stopping a backend, and what it says about itself.
import { expect } from 'vitest'
import { isMillraceError } from '../../src/core/errors.ts'
import type { Setup } from './world.ts'

export function lifecycle({ test }: Setup): void {
  test('start may be called again and changes nothing', async (world) => {
    const id = await world.addOne()
    await world.backend.start()
    expect(await world.statusOf(id)).toEqual(['queued'])
  })

  test('stop may be called again, and calls after it fail with STOPPED', async (world) => {
    const { backend } = world
    await backend.stop()
    await backend.stop()
    const error: unknown = await backend.jobs.insert([world.job()]).then(
      () => null,
      (thrown: unknown) => thrown,
    )
    expect(isMillraceError(error, 'STOPPED')).toBe(true)
  })

  test('capabilities are plain data', async ({ capabilities }) => {
    expect(JSON.parse(JSON.stringify(capabilities))).toEqual(capabilities)
    const { strictPriority, durable, transactional, atomicAcrossQueues, payloadSearch } = capabilities
    for (const flag of [strictPriority, durable, transactional, atomicAcrossQueues, payloadSearch]) {
      expect(typeof flag).toBe('boolean')
    }
  })

  test('what a reader got never changes afterwards', async (world) => {
    const id = await world.addOne({ tags: ['a'] })
    const before = await world.get(id)
    const copy = structuredClone(before)
    const worker = await world.worker()
    await worker.claimOne()
    expect(before).toEqual(copy)
    expect((await world.get(id)).status).toBe('running')
  })
}
