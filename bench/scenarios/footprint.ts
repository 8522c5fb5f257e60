// What a waiting job costs: bytes on disk of the tables, indexes and logs of the system, memory of Redis, or heap of
// this process where jobs live in memory, garbage collected before and after. A hybrid pays twice: `bytes_per_job` is
// the sum, and what lies in Redis stands beside it.
import { fill } from '../backlog.ts'
import type { Scenario, Stage } from '../scenario.ts'
import { checkDispatched, warmUpProducers } from '../warm-up.ts'

export const footprint: Scenario = {
  name: 'footprint',
  says: 'bytes per waiting job of about 200 bytes of payload, on disk or in memory',
  aim: 'enqueue',
  jobs: { memory: 50_000, redis: 50_000, postgres: 50_000 },
  seconds: { memory: 3, redis: 13, postgres: 5.5 },
  // Graphile Worker once: what is tuned is its worker.
  usual: ['millrace', 'graphile-worker-tuned', 'pg-boss', 'bullmq', 'bee-queue'],
  // Of two runs of Millrace and of BullMQ on PostgreSQL the second was within 0.1 % of the first, in memory within 1 %.
  runs: 1,
  async run(stage, jobs) {
    // The first jobs also load code and grow pools; that is not the price of a job.
    await warmUpProducers(stage, jobs)
    await fill(stage, 1000)
    const before = await usedBytes(stage)
    await fill(stage, jobs)
    await checkDispatched(stage, 1000 + jobs)
    const after = await usedBytes(stage)
    const redisBytes = after.redis - before.redis
    return {
      values: {
        bytes_per_job: (after.other - before.other + redisBytes) / jobs,
        ...(stage.redis && { redis_bytes_per_job: redisBytes / jobs }),
      },
    }
  },
}

interface UsedBytes {
  readonly redis: number
  readonly other: number
}

async function usedBytes({ database, redis }: Stage): Promise<UsedBytes> {
  const isHere = database === undefined && redis === undefined
  return {
    redis: (await redis?.usedBytes()) ?? 0,
    other: isHere ? heapUsed() : ((await database?.sizeBytes()) ?? 0),
  }
}

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc')
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}
