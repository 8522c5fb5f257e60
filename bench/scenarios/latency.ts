// From the enqueue call to the start of the handler while the worker is idle: one job at a time, with a
// pause in between that lets the worker go back to waiting.
import { setTimeout as pause } from 'node:timers/promises'
import type { Scenario } from '../scenario.ts'
import { percentile } from '../stats.ts'
import { payload } from '../system.ts'

const PAUSE_MS = 25
const START_TIMEOUT_MS = 30_000
/** Not counted: the first jobs measure the compiler of the runtime. */
const WARM_UP = 20

export const latencyIdle: Scenario = {
  name: 'latency-idle',
  says: `enqueue to handler start, one job every ${PAUSE_MS} ms`,
  jobs: { memory: 200, other: 200 },
  jobsMax: 1000,
  async run(system, jobs) {
    const waitsMs: number[] = []
    let started = (_seq: number): void => undefined
    const worker = await system.work({ concurrency: 10, onStart: (seq) => started(seq) })
    for (let seq = 0; seq < WARM_UP + jobs; seq += 1) {
      await pause(PAUSE_MS)
      const start = new Promise<number>((resolve, reject) => {
        const timer = setTimeout(() => reject(new Error(`job ${seq} did not start`)), START_TIMEOUT_MS)
        started = (startedSeq) => {
          if (startedSeq !== seq) return
          clearTimeout(timer)
          resolve(performance.now())
        }
      })
      const enqueuedMs = performance.now()
      await system.enqueue(payload(seq))
      const waitMs = (await start) - enqueuedMs
      if (seq >= WARM_UP) waitsMs.push(waitMs)
    }
    await worker.stop()
    return { p50_ms: percentile(waitsMs, 50), p99_ms: percentile(waitsMs, 99) }
  },
}
