// Producer and worker at once: jobs come in bulk, two calls in flight, while a worker takes them. The producer
// waits when it is far ahead, so that this does not become one after the other. The clock runs from the first call
// until the store has no unfinished job. A small backlog is worked off before, so that neither process is new.
import { payloadsOf } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import { untilFinished } from '../finish.ts'
import { CAP_MS } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import { OURS_ON_SERVERS } from '../system.ts'
import { warmUp } from '../warm-up.ts'

const BULK = 1000
const IN_FLIGHT = 2
const CONCURRENCY = 100
const AHEAD_MAX = 10_000

export const produceConsume: Scenario = {
  name: 'produce-consume',
  says: `produce in bulk of ${BULK} and work, concurrency ${CONCURRENCY}, at the same time`,
  aim: 'throughput',
  jobs: { memory: 200_000, redis: 50_000, postgres: 50_000 },
  seconds: { memory: 6, redis: 4, postgres: 4, slow: 10 },
  // The fastest of either place, because of the time that everybody would take.
  usual: [...OURS_ON_SERVERS, 'graphile-worker-tuned', 'bullmq:redis', 'bee-queue'],
  async run(stage, jobs) {
    const { system } = stage
    const crew = await stage.crew({ concurrency: CONCURRENCY })
    const before = await warmUp(stage, crew, jobs)
    const clocks = await startClocks({ stage, crew, isWorkHere: true })
    let next = 0
    let produced = 0
    const produce = async (): Promise<void> => {
      while (next < jobs && clocks.elapsedMs() < CAP_MS) {
        const first = next
        const count = Math.min(BULK, jobs - first)
        next += count
        await crew.handled(before + next - AHEAD_MAX, CAP_MS - clocks.elapsedMs())
        await system.enqueueMany(payloadsOf(stage, first, count))
        produced += count
      }
    }
    await Promise.all(Array.from({ length: IN_FLIGHT }, produce))
    const left = await untilFinished({ system, crew, clocks, handled: before + produced, capMs: CAP_MS })
    const done = produced - left
    const values = await clocks.values(done)
    if (done === jobs) return { values }
    // What the jobs still waiting have cost so far must not be charged to those that are done.
    return { values: { jobs_per_s: values.jobs_per_s! }, cappedAtJobs: done }
  },
}
