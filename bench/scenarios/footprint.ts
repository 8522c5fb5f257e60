// What a waiting job costs: bytes on disk of the tables, indexes and logs of the system, or heap of this
// process where jobs live in memory, garbage collected before and after.
import { fill } from '../backlog.ts'
import type { Scenario, Stage } from '../scenario.ts'

export const footprint: Scenario = {
  name: 'footprint',
  says: 'bytes per waiting job of about 200 bytes of payload, on disk or in memory',
  aim: 'enqueue',
  jobs: { memory: 100_000, other: 100_000 },
  async run(stage, jobs) {
    // The first jobs also load code and grow pools; that is not the price of a job.
    await fill(stage, 1000)
    const before = await usedBytes(stage)
    await fill(stage, jobs)
    return { values: { bytes_per_job: ((await usedBytes(stage)) - before) / jobs } }
  },
}

async function usedBytes({ database }: Stage): Promise<number> {
  return database ? database.sizeBytes() : heapUsed()
}

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc')
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}
