// What a waiting job costs: heap of this process per job, garbage collected before and after. Systems that
// keep jobs elsewhere will ask their server instead.
import type { Scenario } from '../scenario.ts'
import { fill } from '../system.ts'

export const footprint: Scenario = {
  name: 'footprint',
  says: 'memory per waiting job of about 200 bytes of payload',
  jobs: { memory: 100_000, other: 100_000 },
  async run(system, jobs) {
    // The first jobs also load code and grow pools; that is not the price of a job.
    await fill(system, 1000)
    const before = heapUsed()
    await fill(system, jobs)
    return { bytes_per_job: (heapUsed() - before) / jobs }
  },
}

function heapUsed(): number {
  if (globalThis.gc === undefined) throw new Error('run with --expose-gc')
  globalThis.gc()
  globalThis.gc()
  return process.memoryUsage().heapUsed
}
