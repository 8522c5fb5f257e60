// How late the event loop is: the time between two turns beyond what was asked for, as Node's own monitor sees it.
import { monitorEventLoopDelay } from 'node:perf_hooks'
import type { Clock } from './clock.ts'

export interface LoopLag {
  readonly meanSeconds: number
  readonly p99Seconds: number
  readonly maxSeconds: number
}

export interface LoopLagMonitor {
  read(): LoopLag
  stop(): void
}

const RESOLUTION_MS = 20
/** A reading covers the time since the last one that was at least this long ago. */
const WINDOW_MS = 10_000
const NANOSECONDS = 1e9
const NO_LAG: LoopLag = { meanSeconds: 0, p99Seconds: 0, maxSeconds: 0 }

/** Its timer does not keep the process alive. Several readers see the same window. */
export function startLoopLag(clock: Clock): LoopLagMonitor {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS })
  histogram.enable()
  let windowMs = clock.monoMs()
  let before = NO_LAG
  return {
    read() {
      if (histogram.count === 0) return before
      // The monitor counts the whole interval; the lag is what exceeds it.
      const beyond = (value: number): number => Math.max(0, value / NANOSECONDS - RESOLUTION_MS / 1_000)
      const lag = {
        meanSeconds: beyond(histogram.mean),
        p99Seconds: beyond(histogram.percentile(99)),
        maxSeconds: beyond(histogram.max),
      }
      const nowMs = clock.monoMs()
      if (nowMs - windowMs >= WINDOW_MS) {
        windowMs = nowMs
        before = lag
        histogram.reset()
      }
      return lag
    },
    stop: () => void histogram.disable(),
  }
}
