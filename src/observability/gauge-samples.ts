// The gauges of the stores as samples of the metrics they are called. Queues beyond a bound are one.
import { readyIn } from '../core/job.ts'
import { OTHER } from '../core/job-series.ts'
import type { JobStatus } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import { LANES } from '../core/priority.ts'
import type { MetricName } from './definitions.ts'
import type { Gauges, QueueGauges, StoreGauges } from './gauges.ts'

export interface Sample {
  readonly name: MetricName
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** Of a store that is down nothing is said but that. */
export function gaugeSamples(gauges: Gauges, queuesMax: number = DEFAULTS.metricSeries): readonly Sample[] {
  return gauges.flatMap((store) => {
    const { connection, isUp } = store
    const up: Sample = { name: 'millrace_store_up', labels: { connection }, value: isUp ? 1 : 0 }
    return isUp ? [up, ...queueSamples(store, queuesMax), ...crewSamples(store), ...memorySamples(store)] : [up]
  })
}

function queueSamples({ connection, queues }: StoreGauges, queuesMax: number): readonly Sample[] {
  return deepestQueues(queues, queuesMax).flatMap(({ queue, isPaused, counts, oldestReadyMs, lanes, dispatch }) => {
    const labels = { connection, queue }
    const samples: Sample[] = Object.entries(counts).map(([status, value]) => ({
      name: 'millrace_queue_jobs',
      labels: { ...labels, status },
      value,
    }))
    samples.push(
      { name: 'millrace_queue_oldest_ready_seconds', labels, value: oldestReadyMs / 1_000 },
      { name: 'millrace_queue_paused', labels, value: isPaused ? 1 : 0 },
      { name: 'millrace_dead_letters', labels, value: counts.failed },
    )
    for (const [at, lane] of LANES.entries()) {
      const value = lanes?.[at]
      if (value !== undefined) samples.push({ name: 'millrace_queue_ready_jobs', labels: { ...labels, lane }, value })
    }
    if (dispatch === null) return samples
    const { backlog, relayLagMs, waiting, inFlight, windowFill } = dispatch
    samples.push({ name: 'millrace_relay_backlog_jobs', labels, value: backlog })
    if (relayLagMs !== null) samples.push({ name: 'millrace_relay_lag_seconds', labels, value: relayLagMs / 1_000 })
    for (const [state, value] of Object.entries({ waiting, in_flight: inFlight })) {
      if (value !== null) samples.push({ name: 'millrace_window_tokens', labels: { ...labels, state }, value })
    }
    if (windowFill !== null) samples.push({ name: 'millrace_window_fill_ratio', labels, value: windowFill })
    return samples
  })
}

function crewSamples({ connection, workers }: StoreGauges): readonly Sample[] {
  if (workers === null) return []
  const { alive, silent, slots, running } = workers
  return [
    { name: 'millrace_workers', labels: { connection, state: 'alive' }, value: alive },
    { name: 'millrace_workers', labels: { connection, state: 'silent' }, value: silent },
    { name: 'millrace_worker_slots', labels: { connection, state: 'all' }, value: slots },
    { name: 'millrace_worker_slots', labels: { connection, state: 'busy' }, value: running },
  ]
}

function memorySamples({ connection, servers }: StoreGauges): readonly Sample[] {
  return servers.flatMap(({ name: server, memory }): readonly Sample[] => {
    if (memory === undefined) return []
    const { usedBytes, maxBytes } = memory
    const labels = { connection, server }
    const used: Sample = { name: 'millrace_redis_memory_used_bytes', labels, value: usedBytes }
    return maxBytes === null ? [used] : [used, { name: 'millrace_redis_memory_max_bytes', labels, value: maxBytes }]
  })
}

/** The deepest queues by name; the others are one. */
export function deepestQueues(
  queues: readonly QueueGauges[],
  queuesMax: number = DEFAULTS.metricSeries,
): readonly QueueGauges[] {
  if (queues.length <= queuesMax) return queues
  // A queue of that very name is among the others: two samples of one name are refused as a whole.
  const named = queues.filter(({ queue }) => queue !== OTHER).sort((a, b) => depthOf(b) - depthOf(a))
  const rest = [...named.slice(queuesMax - 1), ...queues.filter(({ queue }) => queue === OTHER)]
  const counts: Partial<Record<JobStatus, number>> = {}
  for (const one of rest) {
    for (const [status, count] of Object.entries(one.counts)) {
      // The keys of counts are statuses.
      counts[status as JobStatus] = (counts[status as JobStatus] ?? 0) + count
    }
  }
  const other: QueueGauges = {
    queue: OTHER,
    isPaused: false,
    // Every queue has a count of every status.
    counts: counts as Record<JobStatus, number>,
    oldestReadyMs: rest.reduce((most, { oldestReadyMs }) => Math.max(most, oldestReadyMs), 0),
    lanes: null,
    dispatch: null,
  }
  return [...named.slice(0, queuesMax - 1), other]
}

function depthOf({ counts }: QueueGauges): number {
  return readyIn(counts) + counts.running + counts.failed
}
