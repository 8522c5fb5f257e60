// From the enqueue call to the start of the handler, with producer and worker in processes of their own where
// jobs do not live in memory. Calls are made on a timetable, whether or not earlier jobs have started: a system that
// falls behind shows it.
import { setTimeout as pause } from 'node:timers/promises'
import { startClocks } from '../clocks.ts'
import { nowMs } from '../crew.ts'
import type { Measurement, Scenario, Stage } from '../scenario.ts'
import { percentile } from '../stats.ts'

const CONCURRENCY = 10
/** The last jobs may start this long after the last call. */
const LAST_START_MS = 60_000

export const latencyIdle: Scenario = {
  name: 'latency-idle',
  says: 'enqueue call to handler start, one job every 25 ms',
  aim: 'latency',
  jobs: { memory: 200, redis: 200, postgres: 200 },
  seconds: { memory: 5, redis: 6, postgres: 6 },
  jobsMax: 1000,
  run: (stage, jobs) => measureLatency(stage, { jobs, everyMs: 25, warmUp: 500, warmUpEveryMs: 4 }),
}

export const latency500: Scenario = {
  name: 'latency-500',
  says: 'enqueue call to handler start, 500 jobs per second for 6 s',
  aim: 'latency',
  jobs: { memory: 3000, redis: 3000, postgres: 3000 },
  seconds: { memory: 5, redis: 6, postgres: 6 },
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
