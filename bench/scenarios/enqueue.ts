// How fast producers get jobs in while nobody works: one by one with 100 calls in flight, or in bulk.
import { startClocks } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import { payload, payloads } from '../system.ts'

const IN_FLIGHT = 100
const BULK = 1000

export const enqueueSingle: Scenario = {
  name: `enqueue-single-${IN_FLIGHT}`,
  says: `one job per call, ${IN_FLIGHT} calls in flight`,
  jobs: { memory: 200_000, other: 20_000 },
  async run(system, jobs) {
    const stop = startClocks()
    let next = 0
    const produce = async (): Promise<void> => {
      while (next < jobs) {
        const seq = next
        next += 1
        await system.enqueue(payload(seq))
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, produce))
    return stop(jobs)
  },
}

export const enqueueBulk: Scenario = {
  name: `enqueue-bulk-${BULK}`,
  says: `${BULK} jobs per call, one call in flight`,
  jobs: { memory: 200_000, other: 100_000 },
  async run(system, jobs) {
    const stop = startClocks()
    for (let first = 0; first < jobs; first += BULK) {
      await system.enqueueMany(payloads(first, Math.min(BULK, jobs - first)))
    }
    return stop(jobs)
  },
}
