// How fast producers get jobs in while nobody works: one by one with 100 calls in flight, or in bulk. Somebody has worked before.
import { payloadsOf } from '../backlog.ts'
import { startClocks } from '../clocks.ts'
import { nowMs } from '../crew.ts'
import { CAP_MS } from '../scenario.ts'
import type { Measurement, Scenario, Stage } from '../scenario.ts'
import { OURS_ON_SERVERS } from '../system.ts'
import { checkDispatched, warmUpProducers } from '../warm-up.ts'

const IN_FLIGHT = 100
const BULK = 1000
/** So many that the fastest are busy for more than half a second; who is slow is stopped by time. */
const JOBS = { memory: 200_000, redis: 100_000, postgres: 100_000 }
/** Graphile Worker once: what is tuned is its worker. */
const USUAL = [...OURS_ON_SERVERS, 'graphile-worker-tuned', 'pg-boss', 'bullmq', 'bee-queue']

export const enqueueSingle: Scenario = {
  name: `enqueue-single-${IN_FLIGHT}`,
  says: `one job per call, ${IN_FLIGHT} calls in flight`,
  aim: 'enqueue',
  jobs: JOBS,
  seconds: { memory: 1, redis: 4, postgres: 7 },
  usual: USUAL,
  run: (stage, jobs) =>
    measureEnqueue(stage, jobs, IN_FLIGHT, 1, ({ system, payload }, first) => system.enqueue(payload(first))),
}

export const enqueueBulk: Scenario = {
  name: `enqueue-bulk-${BULK}`,
  says: `${BULK} jobs per call, one call in flight`,
  aim: 'enqueue',
  jobs: JOBS,
  seconds: { memory: 1, redis: 4, postgres: 5 },
  usual: USUAL,
  run: (stage, jobs) =>
    measureEnqueue(stage, jobs, 1, BULK, (stage, first, count) =>
      stage.system.enqueueMany(payloadsOf(stage, first, count)),
    ),
}

export const enqueueLarge: Scenario = {
  ...enqueueSingle,
  name: `${enqueueSingle.name}-8k`,
  says: `${enqueueSingle.says}, 8 KiB of payload`,
  jobs: { memory: 50_000, redis: 20_000, postgres: 10_000 },
  usual: [],
  bodyBytes: 8192,
}

async function measureEnqueue(
  stage: Stage,
  jobs: number,
  callsInFlight: number,
  jobsPerCall: number,
  call: (stage: Stage, first: number, count: number) => Promise<void>,
): Promise<Measurement> {
  const produceAll = async (most: number, isTimeOver: () => boolean): Promise<number> => {
    let next = 0
    let done = 0
    const produce = async (): Promise<void> => {
      while (next < most && !isTimeOver()) {
        const first = next
        const count = Math.min(jobsPerCall, most - first)
        next += count
        await call(stage, first, count)
        done += count
      }
    }
    await Promise.all(Array.from({ length: callsInFlight }, produce))
    return done
  }
  await warmUpProducers(stage, jobs, (most, withinMs) => {
    const untilMs = nowMs() + withinMs
    return produceAll(most, () => nowMs() >= untilMs)
  })
  const clocks = await startClocks({ stage, isWorkHere: true })
  const done = await produceAll(jobs, () => clocks.elapsedMs() >= CAP_MS)
  clocks.stop()
  const values = await clocks.values(done)
  await checkDispatched(stage, done)
  return { values, ...(done < jobs && { cappedAtJobs: done }) }
}
