// The text format of Prometheus (version 0.0.4): every metric with its help, samples in the order of the definitions.
import { totalOf } from '../core/buckets.ts'
import type { Buckets } from '../core/buckets.ts'
import { JOB_TIMES } from '../core/job-series.ts'
import type { JobCount, JobSeries } from '../core/job-series.ts'
import { LANES } from '../core/priority.ts'
import { METRICS } from './definitions.ts'
import type { Definition, MetricName } from './definitions.ts'
import { gaugeSamples } from './gauge-samples.ts'
import type { Gauges } from './gauges.ts'
import type { MetricsSnapshot } from './registry.ts'

export const PROMETHEUS_CONTENT_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

type Labels = Readonly<Record<string, string>>
type Lines = Map<MetricName, string[]>

/** Without gauges: those of the stores are asked for elsewhere. */
export function prometheusText(snapshot: MetricsSnapshot, gauges: Gauges = []): string {
  const lines: Lines = new Map()
  for (const series of snapshot.jobs) addJobs(lines, series)
  for (const { connection, call, times, errors } of snapshot.calls) {
    addBuckets(lines, 'millrace_store_call_seconds', { connection, call }, times)
    for (const [code, count] of Object.entries(errors)) {
      add(lines, 'millrace_store_call_errors_total', { connection, call, code }, count)
    }
  }
  if (snapshot.loopLag !== null) {
    const { meanSeconds, p99Seconds, maxSeconds } = snapshot.loopLag
    for (const [stat, value] of Object.entries({ mean: meanSeconds, p99: p99Seconds, max: maxSeconds })) {
      add(lines, 'millrace_event_loop_lag_seconds', { stat }, value)
    }
  }
  for (const { name, labels, value } of gaugeSamples(gauges)) add(lines, name, labels, value)
  return render(lines)
}

const COUNTERS: readonly (readonly [JobCount, MetricName])[] = [
  ['enqueued', 'millrace_jobs_enqueued_total'],
  ['duplicates', 'millrace_jobs_duplicates_total'],
  ['completed', 'millrace_jobs_completed_total'],
  ['retried', 'millrace_jobs_retried_total'],
  ['dead', 'millrace_jobs_dead_total'],
  ['cancelled', 'millrace_jobs_cancelled_total'],
  ['released', 'millrace_jobs_released_total'],
  ['snoozed', 'millrace_jobs_snoozed_total'],
  ['stale', 'millrace_jobs_stale_total'],
  ['expired', 'millrace_jobs_expired_total'],
]
const STARTED: readonly JobCount[] = ['startedHigh', 'startedNormal', 'startedLow']

/** Counters are shown from the first job of a kind on, zeros too: a rate needs a zero to rise from. */
function addJobs(lines: Lines, { queue, kind, counts, failed, times }: JobSeries): void {
  for (const [count, name] of COUNTERS) add(lines, name, { queue, kind }, counts[count] ?? 0)
  for (const [lane, count] of STARTED.entries()) {
    if (counts[count] !== undefined) {
      add(lines, 'millrace_jobs_started_total', { queue, kind, lane: LANES[lane]! }, counts[count])
    }
  }
  for (const [errorClass, count] of Object.entries(failed)) {
    add(lines, 'millrace_jobs_failed_total', { queue, kind, error_class: errorClass }, count)
  }
  for (const time of JOB_TIMES) {
    const buckets = times[time]
    if (buckets !== undefined) addBuckets(lines, `millrace_job_${time}_seconds`, { queue, kind }, buckets)
  }
}

function addBuckets(lines: Lines, name: MetricName, labels: Labels, buckets: Buckets): void {
  const { bounds = [] }: Definition = METRICS[name]
  let below = 0
  for (const [at, bound] of bounds.entries()) {
    below += buckets.counts[at] ?? 0
    add(lines, name, { ...labels, le: String(bound) }, below, '_bucket')
  }
  const total = totalOf(buckets)
  add(lines, name, { ...labels, le: '+Inf' }, total, '_bucket')
  add(lines, name, labels, buckets.sumSeconds, '_sum')
  add(lines, name, labels, total, '_count')
}

function add(lines: Lines, name: MetricName, labels: Labels, value: number, suffix = ''): void {
  const pairs = Object.entries(labels).map(([label, text]) => `${label}="${escapeLabel(text)}"`)
  const line = `${name}${suffix}${pairs.length === 0 ? '' : `{${pairs.join(',')}}`} ${value}`
  const known = lines.get(name)
  if (known === undefined) lines.set(name, [line])
  else known.push(line)
}

function render(lines: Lines): string {
  // Names of the definitions alone are used as keys.
  const names = Object.keys(METRICS) as MetricName[]
  const blocks = names.flatMap((name) => {
    const samples = lines.get(name)
    if (samples === undefined) return []
    const { type, help }: Definition = METRICS[name]
    return [`# HELP ${name} ${escapeHelp(help)}`, `# TYPE ${name} ${type}`, ...samples]
  })
  return `${blocks.join('\n')}\n`
}

function escapeLabel(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n').replaceAll('"', '\\"')
}

function escapeHelp(text: string): string {
  return text.replaceAll('\\', '\\\\').replaceAll('\n', '\\n')
}
