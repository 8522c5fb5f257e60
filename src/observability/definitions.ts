// Every metric of Millrace: name, kind, labels and meaning, once. The Prometheus text and docs/metrics.md are made of it.
import { CALL_BOUNDS_SECONDS, JOB_BOUNDS_SECONDS } from '../core/buckets.ts'

export interface Definition {
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly labels: readonly string[]
  readonly help: string
  readonly bounds?: readonly number[]
  /** `process`: each process counts its own, sum them. `store`: the same whoever is asked, take one or the maximum. */
  readonly of: 'process' | 'store'
}

const perJob = ['queue', 'kind'] as const

const counter = (help: string, labels: readonly string[] = perJob): Definition => ({
  type: 'counter',
  labels,
  help,
  of: 'process',
})
const histogram = (help: string, bounds: readonly number[], labels: readonly string[] = perJob): Definition => ({
  type: 'histogram',
  labels,
  help,
  bounds,
  of: 'process',
})
const gauge = (help: string, labels: readonly string[], of: Definition['of'] = 'store'): Definition => ({
  type: 'gauge',
  labels,
  help,
  of,
})

export const METRICS = {
  millrace_jobs_enqueued_total: counter(
    'Jobs that this process has put into a store, those of schedules included. What is written inside a transaction counts also when it is rolled back.',
  ),
  millrace_jobs_duplicates_total: counter('Enqueue calls that were answered with a job that was already there.'),
  millrace_jobs_started_total: counter('Runs that were started here.', ['queue', 'kind', 'lane']),
  millrace_jobs_completed_total: counter('Runs that completed their job.'),
  millrace_jobs_failed_total: counter(
    'Runs that failed, whether they are tried again or not, by the class of their error.',
    ['queue', 'kind', 'error_class'],
  ),
  millrace_jobs_retried_total: counter('Failed runs whose job will be tried again.'),
  millrace_jobs_dead_total: counter('Jobs that failed for good and are dead letters.'),
  millrace_jobs_cancelled_total: counter('Jobs whose run, or whose turn, ended because they were cancelled.'),
  millrace_jobs_released_total: counter('Runs that were given back unfinished and count as no attempt.'),
  millrace_jobs_snoozed_total: counter('Runs that put themselves off.'),
  millrace_jobs_stale_total: counter('Results that came too late: the run no longer owned its job.'),
  millrace_jobs_expired_total: counter('Runs that lost their worker or their visibility, as found by this process.'),
  millrace_job_wait_seconds: histogram(
    'From the moment a job was due (enqueued, or after its delay) until its handler was called. A difference between the clocks of store and worker is in it.',
    JOB_BOUNDS_SECONDS,
  ),
  millrace_job_run_seconds: histogram('How long handlers took.', JOB_BOUNDS_SECONDS),
  millrace_job_total_seconds: histogram(
    'From the first enqueue of a job to its end, all attempts and waits included.',
    JOB_BOUNDS_SECONDS,
  ),
  millrace_store_call_seconds: histogram('Round trips to the store.', CALL_BOUNDS_SECONDS, ['connection', 'call']),
  millrace_store_call_errors_total: counter('Store calls that failed, by the code of their error.', [
    'connection',
    'call',
    'code',
  ]),
  millrace_event_loop_lag_seconds: gauge(
    'How late the event loop was in the last 10 s or more: mean, p99 and max. Of several processes the worst.',
    ['stat'],
    'process',
  ),
  millrace_store_up: gauge(
    '1: the store answered in time when it was asked for these gauges. 0: it did not, and has none.',
    ['connection'],
  ),
  millrace_queue_jobs: gauge('Jobs of a queue by status.', ['connection', 'queue', 'status']),
  millrace_queue_ready_jobs: gauge(
    'Jobs of a queue that could start now, by lane. Of the 50 deepest queues, as far as the store counts them within half a second.',
    ['connection', 'queue', 'lane'],
  ),
  millrace_queue_oldest_ready_seconds: gauge('How long the oldest ready job has been ready; 0 when there is none.', [
    'connection',
    'queue',
  ]),
  millrace_queue_paused: gauge('1 while the queue is paused.', ['connection', 'queue']),
  millrace_dead_letters: gauge('Jobs that failed for good and were neither replayed nor deleted.', [
    'connection',
    'queue',
  ]),
  millrace_workers: gauge('Workers that the store knows; `silent` ones have missed their heartbeats.', [
    'connection',
    'state',
  ]),
  millrace_worker_slots: gauge('Jobs that live workers can run at once, and those they run.', ['connection', 'state']),
  millrace_relay_backlog_jobs: gauge('Ready jobs that have no token in Redis yet.', ['connection', 'queue']),
  millrace_relay_lag_seconds: gauge('How long the oldest ready job has waited for its token although there was room.', [
    'connection',
    'queue',
  ]),
  millrace_window_tokens: gauge('Tokens in Redis: waiting, and in flight with workers.', [
    'connection',
    'queue',
    'state',
  ]),
  millrace_window_fill_ratio: gauge('Waiting tokens of the fullest lane, as a share of its window.', [
    'connection',
    'queue',
  ]),
  millrace_redis_memory_used_bytes: gauge('Memory that Redis uses.', ['connection', 'server']),
  millrace_redis_memory_max_bytes: gauge('`maxmemory` of Redis; absent when it has no limit.', [
    'connection',
    'server',
  ]),
} as const satisfies Readonly<Record<string, Definition>>

export type MetricName = keyof typeof METRICS
