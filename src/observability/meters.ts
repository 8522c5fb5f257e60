// The same counts as instruments of OpenTelemetry, for a process that has registered a meter provider before its Millrace
// was made. Counters and gauges are read when they are collected; the time of runs is recorded as they end.
import { ValueType, createNoopMeter, metrics as api } from '@opentelemetry/api'
import type { BatchObservableCallback, Observable } from '@opentelemetry/api'
import { JOB_BOUNDS_SECONDS } from '../core/buckets.ts'
import { failedRuns, startedRuns } from '../core/job-series.ts'
import type { JobCount, JobSeries } from '../core/job-series.ts'
import type { Probe } from '../runtime/probe.ts'
import { LANES } from '../core/priority.ts'
import { deepestQueues } from './gauge-samples.ts'
import type { Gauges } from './gauges.ts'
import type { Metrics } from './registry.ts'

export interface Meters {
  readonly ended: Probe['ended']
  stop(): void
}

const COUNTERS: readonly (readonly [name: string, of: (series: JobSeries) => number])[] = [
  ['enqueued', count('enqueued')],
  ['duplicates', count('duplicates')],
  ['started', startedRuns],
  ['completed', count('completed')],
  ['failed', failedRuns],
  ['retried', count('retried')],
  ['dead', count('dead')],
  ['cancelled', count('cancelled')],
  ['released', count('released')],
  ['snoozed', count('snoozed')],
  ['stale', count('stale')],
  ['expired', count('expired')],
]

/** Undefined: nobody has registered a provider. */
export function createMeters(metrics: Metrics, gauges: () => Promise<Gauges>): Meters | undefined {
  const meter = api.getMeter('millrace')
  if (meter === createNoopMeter()) return undefined
  const observed = COUNTERS.map(
    ([name, of]) => [meter.createObservableCounter(`millrace.jobs.${name}`, { unit: '{job}' }), of] as const,
  )
  const depth = meter.createObservableGauge('millrace.queue.jobs', { unit: '{job}', valueType: ValueType.INT })
  const ready = meter.createObservableGauge('millrace.queue.ready_jobs', { unit: '{job}', valueType: ValueType.INT })
  const oldest = meter.createObservableGauge('millrace.queue.oldest_ready', { unit: 's' })
  const duration = meter.createHistogram('messaging.process.duration', {
    unit: 's',
    advice: { explicitBucketBoundaries: [...JOB_BOUNDS_SECONDS] },
  })
  const observe: BatchObservableCallback = async (result) => {
    for (const series of metrics.jobs.series()) {
      const attributes = attributesOf(series.queue, series.kind)
      for (const [instrument, of] of observed) result.observe(instrument, of(series), attributes)
    }
    for (const { connection, queues } of await gauges()) {
      for (const { queue, counts, oldestReadyMs, lanes } of deepestQueues(queues)) {
        const own = { 'messaging.destination.name': queue, 'millrace.connection': connection }
        for (const [status, jobs] of Object.entries(counts)) {
          result.observe(depth, jobs, { ...own, 'millrace.job.status': status })
        }
        for (const [at, jobs] of (lanes ?? []).entries()) {
          result.observe(ready, jobs, { ...own, 'millrace.job.lane': LANES[at]! })
        }
        result.observe(oldest, oldestReadyMs / 1_000, own)
      }
    }
  }
  const instruments: Observable[] = [...observed.map(([instrument]) => instrument), depth, ready, oldest]
  meter.addBatchObservableCallback(observe, instruments)
  return {
    ended({ queue, name }, { ranMs, error }) {
      if (ranMs === undefined) return
      const attributes = { ...attributesOf(queue, name), ...(error !== undefined && { 'error.type': error.class }) }
      duration.record(ranMs / 1_000, { 'messaging.operation.name': 'process', ...attributes })
    },
    stop: () => meter.removeBatchObservableCallback(observe, instruments),
  }
}

function count(name: JobCount): (series: JobSeries) => number {
  return ({ counts }) => counts[name] ?? 0
}

function attributesOf(queue: string, kind: string) {
  return { 'messaging.system': 'millrace', 'messaging.destination.name': queue, 'millrace.job.name': kind }
}
