// What people call the things that the benchmark measures.
import type { Metric } from '../scenario.ts'
import type { Summary } from '../stats.ts'

const SYSTEM_NAMES: Readonly<Record<string, string>> = {
  millrace: 'Millrace',
  'graphile-worker': 'Graphile Worker',
  'graphile-worker-tuned': 'Graphile Worker, tuned',
  bullmq: 'BullMQ',
}

const BACKEND_NAMES: Readonly<Record<string, string>> = {
  postgres: 'PostgreSQL',
  redis: 'Redis',
  'redis-no-aof': 'Redis without a log',
  hybrid: 'PostgreSQL and Redis (hybrid)',
  'hybrid-no-aof': 'PostgreSQL and Redis without a log (hybrid)',
}

export const METRIC_LABELS: Readonly<Record<Metric, string>> = {
  jobs_per_s: 'jobs/s',
  unheld_jobs_per_s: 'jobs/s without the snapshot',
  usual_jobs_per_s: 'jobs/s from a short backlog',
  ratio: 'ratio of the two',
  p50_ms: 'p50, ms',
  p99_ms: 'p99, ms',
  bytes_per_job: 'bytes per job',
  redis_bytes_per_job: 'of them in Redis',
  redis_commands_per_job: 'Redis commands per job',
  cpu_us_per_job: 'client CPU per job, µs',
  server_cpu_us_per_job: 'server CPU per job, µs',
  redis_cpu_us_per_job: 'of it Redis, µs',
  wal_bytes_per_job: 'bytes of WAL per job',
  worker_cpu_percent: 'CPU of the busiest worker, % of a core',
  worker_cpu_min_percent: 'CPU of the least busy worker',
  backlog_jobs: 'backlog',
  link_ms: 'added to a round trip, ms',
}

/** Of `system:backend`. */
export function displayName(target: string): string {
  const [system = '', backend = ''] = target.split(':')
  return `${SYSTEM_NAMES[system] ?? system} on ${BACKEND_NAMES[backend] ?? backend}`
}

/** Three digits that matter, in groups of three before the point. */
export function shown(value: number): string {
  const rounded = Number(value.toPrecision(3))
  const [whole = '', ...fraction] = String(rounded).split('.')
  return [whole.replace(/\B(?=(\d{3})+$)/g, ' '), ...fraction].join('.')
}

/** The median with the least and the most. */
export function spreadOf({ median, min, max, runs }: Summary): string {
  return runs === 1 ? shown(median) : `${shown(median)} (${shown(min)}–${shown(max)})`
}

export function nameOf({ system, backend }: { readonly system: string; readonly backend: string }): string {
  return `${system}:${backend}`
}
