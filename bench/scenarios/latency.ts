// From the enqueue call to the start of the handler, with producer and worker in processes of their own where
// jobs do not live in memory. Calls are made on a timetable, whether or not earlier jobs have started: a system that
// falls behind shows it.
import { setTimeout as pause } from 'node:timers/promises'
import { startClocks } from '../clocks.ts'
import { nowMs } from '../crew.ts'
import type { Measurement, Scenario, Stage } from '../scenario.ts'
import { percentile } from '../stats.ts'
import { OURS_ON_SERVERS } from '../system.ts'

const CONCURRENCY = 10
/** Longer than any of them takes for a job, so that everything waits again before the next. */
const IDLE_EVERY_MS = 12
const USUAL = [...OURS_ON_SERVERS, 'graphile-worker', 'graphile-worker-tuned', 'pg-boss', 'bullmq', 'bee-queue']
/** The last jobs may start this long after the last call. */
const LAST_START_MS = 60_000

export const latencyIdle: Scenario = {
  name: 'latency-idle',
  says: `enqueue call to handler start, one job every ${IDLE_EVERY_MS} ms`,
  aim: 'latency',
  // The 99th of 100 is the fifth largest of so many; of 200 it was the third.
  jobs: { memory: 400, redis: 400, postgres: 400 },
  seconds: { memory: 5, redis: 5, postgres: 5 },
  usual: USUAL,
  jobsMax: 1000,
  run: (stage, jobs) => measureLatency(stage, { jobs, everyMs: IDLE_EVERY_MS, warmUp: 500, warmUpEveryMs: 2 }),
}

export const latency500: Scenario = {
  name: 'latency-500',
  says: 'enqueue call to handler start, 500 jobs per second for 4 s',
  aim: 'latency',
  jobs: { memory: 2000, redis: 2000, postgres: 2000 },
  seconds: { memory: 4.7, redis: 4.7, postgres: 4.7 },
  usual: USUAL,
  jobsMax: 30_000,
  run: (stage, jobs) => measureLatency(stage, { jobs, everyMs: 2, warmUp: 500, warmUpEveryMs: 2 }),
}

interface Timetable {
  readonly jobs: number
  readonly everyMs: number
  /** Not counted: the first jobs measure connections and the compiler of the runtime. */
  readonly warmUp: number
  readonly warmUpEveryMs: number
}

async function measureLatency(stage: Stage, { jobs, everyMs, warmUp, warmUpEveryMs }: Timetable): Promise<Measurement> {
  const { system, payload } = stage
  const crew = await stage.crew({ concurrency: CONCURRENCY, isTimed: true })
  await crew.start()
  const calledMs: number[] = []
  const calls: Promise<void>[] = []
  let clocks = await startClocks({ stage, crew, isWorkHere: true })
  let dueMs = nowMs()
  for (let seq = 0; seq < warmUp + jobs; seq += 1) {
    if (seq === warmUp) {
      await Promise.all(calls)
      clocks = await startClocks({ stage, crew, isWorkHere: true })
      dueMs = nowMs()
    }
    const waitMs = dueMs - nowMs()
    if (waitMs > 0) await pause(waitMs)
    dueMs += seq < warmUp ? warmUpEveryMs : everyMs
    calledMs.push(nowMs())
    calls.push(system.enqueue(payload(seq)))
  }
  await Promise.all(calls)
  const haveAllStarted = await crew.handled(warmUp + jobs, LAST_START_MS)
  clocks.stop()
  if (!haveAllStarted) throw new Error(`some jobs did not start within ${LAST_START_MS / 1000} s of the last call`)
  // The rate is that of the timetable, and the clients mostly wait.
  const { jobs_per_s: _rate, cpu_us_per_job: _clients, ...costs } = await clocks.values(jobs)
  const starts = await crew.starts()
  const waitsMs = calledMs.map((atMs, seq) => starts.get(seq)! - atMs).slice(warmUp)
  return {
    values: {
      p50_ms: percentile(waitsMs, 50),
      p99_ms: percentile(waitsMs, 99),
      ...costs,
    },
  }
}
