// What a claim costs must not depend on what waits. Ratios of medians on one machine in one run, with a wide
// margin: an index that is missing costs hundreds of times more, not a few.
import { describe, expect, test } from 'vitest'
import { memory } from '../src/backends/memory/backend.ts'
import type { JobId, WorkerId } from '../src/core/job.ts'

const worker = 'w' as WorkerId

async function medianClaimMs(waiting: number, scheduled: number): Promise<number> {
  const { jobs, workers } = memory()
  await workers.register({ id: worker, host: 'h', pid: 1, queues: ['q'], concurrency: 1 })
  const insert = async (count: number, prefix: string, delayMs: number): Promise<void> => {
    for (let from = 0; from < count; from += 10_000) {
      const chunk = Array.from({ length: Math.min(10_000, count - from) }, (_, index) => ({
        id: `${prefix}${from + index}` as JobId,
        queue: 'q',
        name: 'n',
        payload: '{}',
        timeoutMs: 1_000,
        priority: (from + index) % 300,
        delayMs,
      }))
      await jobs.insert(chunk)
    }
  }
  await insert(scheduled, 's', 1_000_000)
  await insert(waiting, 'r', 0)
  const times: number[] = []
  for (let claimNo = 1; claimNo <= 90; claimNo++) {
    const startedMs = performance.now()
    const reply = await jobs.claim({ worker, claimNo, queues: ['q'], limit: 10 })
    times.push(performance.now() - startedMs)
    expect(reply.jobs).toHaveLength(10)
  }
  return times.sort((one, other) => one - other)[45]!
}

describe('memory', () => {
  test('T1 a claim costs the same from a million waiting and scheduled jobs as from a thousand', async () => {
    await medianClaimMs(1_000, 0)
    const small = await medianClaimMs(1_000, 0)
    const large = await medianClaimMs(500_000, 500_000)
    expect(large / small).toBeLessThan(10)
  }, 120_000)
})
