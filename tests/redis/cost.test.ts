// What a job costs on Redis: bytes while it waits, commands while it runs. Both are promises of docs/redis.md, and both
// are easily lost by a harmless change.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redis } from '../../src/backends/redis/backend.ts'
import type { ClaimedJob, JobId, NewJob, WorkerId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { createIdSource } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { eventually, queueSettings } from '../conformance/world.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'

const PAYLOAD_BYTES = 200
const JOBS = 60_000
const WAITING_BYTES_MAX = 375

const newId = createIdSource(systemClock)
let server: RedisProcess
let backend: Backend

beforeAll(async () => {
  server = await startRedis()
  backend = redis({ url: server.url })
  await backend.start()
})

afterAll(async () => {
  await backend.stop()
  await server.stop()
})

function newJobs(count: number): readonly NewJob[] {
  const payload = JSON.stringify({ text: 'x'.repeat(PAYLOAD_BYTES - '{"text":""}'.length) })
  return Array.from({ length: count }, () => ({
    id: newId() as JobId, // minted here, as the client does
    queue: 'mail',
    name: 'send-welcome',
    payload,
    timeoutMs: 300_000,
  }))
}

async function info(section: string): Promise<string> {
  return String(await server.command('INFO', section))
}

/** Without the buffers of connections: the server lends each as much as its largest value, and takes it back after two seconds. */
async function usedMemory(): Promise<number> {
  const memory = await info('memory')
  const bytes = (name: string): number => Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(memory)?.[1])
  return bytes('used_memory') - bytes('mem_clients_normal')
}

/** Calls of each command inside scripts since the last reset. */
async function commandCalls(): Promise<Map<string, number>> {
  const lines = [...(await info('commandstats')).matchAll(/^cmdstat_(\w+):calls=(\d+)/gm)]
  return new Map(lines.map(([, name = '', calls]) => [name, Number(calls)]))
}

function completion({ id, lease }: ClaimedJob): Transition {
  const guard = { from: ['running'], lease } as const
  return { jobId: id, edge: 'complete', guard, to: 'completed', attempt: 'count', ranMs: 1 }
}

describe('costs', () => {
  test(`a waiting job with a payload of ${PAYLOAD_BYTES} bytes costs at most ${WAITING_BYTES_MAX} bytes`, async () => {
    await backend.jobs.insert(newJobs(10))
    const before = await usedMemory()
    for (let sent = 0; sent < JOBS; sent += 5_000) await backend.jobs.insert(newJobs(5_000))
    expect(((await usedMemory()) - before) / JOBS).toBeLessThanOrEqual(WAITING_BYTES_MAX)
  })

  test('a no-op job takes one command of its own, the rest is per call', async () => {
    const worker = newId() as WorkerId // minted here, as the worker does
    await backend.workers.register({ id: worker, host: 'h', pid: 1, queues: ['mail'], concurrency: 100 })
    await server.command('CONFIG', 'RESETSTAT')
    const rounds = 20
    let settle: readonly Transition[] = []
    for (let claimNo = 1; claimNo <= rounds; claimNo++) {
      const { jobs } = await backend.jobs.claim({ worker, claimNo, queues: ['mail'], limit: 100, settle })
      expect(jobs).toHaveLength(100)
      settle = jobs.map(completion)
    }
    const calls = await commandCalls()
    const ofJobs = calls.get('copy') ?? 0
    const others = [...calls].filter(([name]) => !['copy', 'info', 'config'].includes(name))
    expect(ofJobs).toBeLessThanOrEqual(rounds * 100)
    expect(others.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(rounds * 24)
  })

  test('an insert takes a handful of commands, whatever the number of jobs', async () => {
    await server.command('CONFIG', 'RESETSTAT')
    await backend.jobs.insert(newJobs(1_000))
    const calls = [...(await commandCalls())].filter(([name]) => !['info', 'config', 'evalsha'].includes(name))
    expect(calls.reduce((sum, [, count]) => sum + count, 0)).toBeLessThanOrEqual(12)
  })

  test('one plain job for a worker that is idle is handed over in 15 commands, and is in no lane on the way', async () => {
    const worker = newId() as WorkerId // minted here, as the worker does
    const heard: unknown[] = []
    await backend.queues.ensure([queueSettings('idle')])
    await backend.workers.register({ id: worker, host: 'h', pid: 1, queues: ['idle'], concurrency: 100 })
    await backend.handOvers!.listen(
      worker,
      (handOver) => void heard.push(handOver),
      () => undefined,
    )
    const claim = { worker, queues: ['idle'], limit: 100, stands: true }
    // The script is there with the first.
    for (const claimNo of [1, 2]) {
      expect((await backend.jobs.claim({ ...claim, claimNo })).jobs).toEqual([])
      await server.command('CONFIG', 'RESETSTAT')
      await backend.jobs.insert([{ ...newJobs(1)[0]!, queue: 'idle' }])
      await eventually(() => heard.length === claimNo, 'the job')
    }
    const calls = await commandCalls()
    for (const own of ['evalsha', 'config', 'info']) calls.delete(own)
    expect([...calls.values()].reduce((sum, count) => sum + count, 0)).toBeLessThanOrEqual(15)
    expect([...calls.keys()]).not.toContain('lpop')
  })
})
