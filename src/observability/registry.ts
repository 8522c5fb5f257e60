// The metrics of one process, in memory: what happened to jobs, how the stores answered, how late the event loop is. A
// snapshot is plain JSON, so that a supervisor can sum those of its children.
import { addBuckets } from '../core/buckets.ts'
import { sumSeries } from '../core/job-series.ts'
import type { JobSeries } from '../core/job-series.ts'
import { DEFAULTS } from '../core/limits.ts'
import type { LoopLag } from '../runtime/loop-lag.ts'
import { CallMeter } from './call-meter.ts'
import type { CallSeries } from './call-meter.ts'
import { JobMeter } from './job-meter.ts'

export interface MetricsSnapshot {
  readonly jobs: readonly JobSeries[]
  readonly calls: readonly CallSeries[]
  /** Of the process that is worst off; null: nobody measured. */
  readonly loopLag: LoopLag | null
}

export interface Metrics {
  readonly jobs: JobMeter
  readonly calls: CallMeter
  snapshot(): MetricsSnapshot
}

export interface MetricsParts {
  /** Pairs of queue and kind; more are counted as `other`. */
  readonly seriesMax?: number
  readonly loopLag?: () => LoopLag
}

export function createMetrics({ seriesMax = DEFAULTS.metricSeries, loopLag }: MetricsParts = {}): Metrics {
  const jobs = new JobMeter(seriesMax)
  const calls = new CallMeter()
  return {
    jobs,
    calls,
    snapshot: () => ({ jobs: jobs.series(), calls: calls.series(), loopLag: loopLag?.() ?? null }),
  }
}

/** Sums of what several processes counted; of the lag of their loops the worst. */
export function mergeSnapshots(
  snapshots: readonly MetricsSnapshot[],
  seriesMax: number = DEFAULTS.metricSeries,
): MetricsSnapshot {
  const calls = new Map<string, CallSeries>()
  for (const one of snapshots.flatMap((snapshot) => snapshot.calls)) {
    const name = `${one.connection}\0${one.call}`
    const known = calls.get(name)
    calls.set(name, known === undefined ? one : addCalls(known, one))
  }
  const lags = snapshots.flatMap(({ loopLag }) => loopLag ?? [])
  return {
    jobs: sumSeries(
      snapshots.flatMap(({ jobs }) => jobs),
      seriesMax,
    ),
    calls: [...calls.values()],
    loopLag: lags.length === 0 ? null : lags.reduce(worseLag),
  }
}

function addCalls(a: CallSeries, b: CallSeries): CallSeries {
  const errors = { ...a.errors }
  for (const [code, count] of Object.entries(b.errors)) errors[code] = (errors[code] ?? 0) + count
  return { connection: a.connection, call: a.call, times: addBuckets(a.times, b.times), errors }
}

function worseLag(a: LoopLag, b: LoopLag): LoopLag {
  return {
    meanSeconds: Math.max(a.meanSeconds, b.meanSeconds),
    p99Seconds: Math.max(a.p99Seconds, b.p99Seconds),
    maxSeconds: Math.max(a.maxSeconds, b.maxSeconds),
  }
}
