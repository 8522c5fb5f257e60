// What createMillrace, work, stop and on refuse, before anything is started or half stopped.
import { describe, expect, test } from 'vitest'
import { createMillrace, defineJob, memory } from '../../src/index.ts'

const job = defineJob({ name: 'job', run: () => 1 })
const INVALID = { code: 'INVALID_OPTION' }

describe('memory', () => {
  test.each<readonly [string, object]>([
    ['a backend that was not called', { backend: memory }],
    ['a backend by name', { backend: 'memory' }],
    ['both backend and postgres', { backend: memory(), postgres: 'postgres://localhost/x' }],
    ['a postgres that is no url', { postgres: 5 }],
    ['a connection that is null', { connections: { default: null } }],
    ['both backend and connections', { backend: memory(), connections: { default: memory() } }],
    ['an unknown option', { backend: memory(), bakend: 1 }],
    ['an unknown kind of middleware', { backend: memory(), use: { enque: [] } }],
    ['middleware that is no array', { backend: memory(), use: { run: () => 1 } }],
    ['a classifier that is no function', { backend: memory(), classify: 'x' }],
    ['a hook that is no function', { backend: memory(), onFailed: 'x' }],
    ['maintenance that is no boolean', { backend: memory(), maintenance: 'no' }],
    ['a logger without levels', { backend: memory(), logger: {} }],
    ['an unknown fate of unknown errors', { backend: memory(), unknownErrors: 'ignore' }],
  ])('J1 createMillrace refuses %s', async (_, options) => {
    await expect(createMillrace({ jobs: [job], ...options } as never)).rejects.toMatchObject(INVALID)
  })

  test('D2 work refuses what it cannot mean', async () => {
    await using mill = await createMillrace({ jobs: [job], backend: memory() })
    for (const options of [
      { queues: 'email' },
      { queues: [] },
      { concurrency: 0 },
      { concurency: 5 },
      { heartbeat: 500, ttl: 600 },
    ]) {
      await expect(mill.work(options as never)).rejects.toMatchObject(INVALID)
    }
    expect(() => mill.on('fail' as never, () => undefined)).toThrow(expect.objectContaining(INVALID))
    expect(() => mill.on('failed', undefined as never)).toThrow(expect.objectContaining(INVALID))
  })

  test('D2 a wrong deadline stops nothing, and the right one after it stops everything', async () => {
    const mill = await createMillrace({ jobs: [job], backend: memory() })
    const worker = await mill.work()
    await expect(mill.stop({ deadline: 'soon' as never })).rejects.toMatchObject({ code: 'INVALID_DURATION' })
    await expect(mill.stop({ dedline: 5 } as never)).rejects.toMatchObject(INVALID)
    await expect(worker.stop({ dedline: 5 } as never)).rejects.toMatchObject(INVALID)
    expect(await mill.enqueueAndWait(job, undefined)).toBe(1)
    await mill.stop()
    await expect(mill.enqueue(job, undefined)).rejects.toMatchObject({ code: 'STOPPED' })
  })
})
