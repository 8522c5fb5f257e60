// From what was seen twice to how fast it goes. What was finished comes from the counters of the hosts, by queue, or where
// one of them does not say, from those of its workers; what waits and runs comes from the store. Jobs that arrived are
// those finished plus what the queue has grown by. Rates are smoothed with an exponential average, so that one look between
// two batches is no trend.
import { SCALING } from './limits.ts'
import type { ScaleMetrics } from './scaling.ts'

export interface SeenQueue {
  readonly name: string
  readonly size: number
  /** In the store, on all workers. */
  readonly running: number
  readonly waitMs: number
  readonly paused: boolean
}

export interface SeenWorker {
  readonly id: string
  /** Jobs that have ended here since it started, whatever became of them. */
  readonly ended: number
  readonly running: number
  readonly concurrency: number
  readonly state: 'active' | 'draining'
}

/** One pool at one moment. */
export interface Sight {
  readonly atMs: number
  /** Runs that have ended, by host and queue, since that host started; null: not all of them say. */
  readonly ended: ReadonlyMap<string, Readonly<Record<string, number>>> | null
  readonly queues: readonly SeenQueue[]
  readonly workers: readonly SeenWorker[]
}

interface QueueRates {
  readonly held: number
  readonly arrivalPerS: number
  readonly processingPerS: number
  readonly running: number
  /** Seconds that jobs have run, and how many have ended, of about the last `SERVICE_JOBS`. */
  readonly ranS: number
  readonly ended: number
}

export interface Rates {
  readonly atMs: number
  readonly ended: ReadonlyMap<string, number>
  readonly endedByHost: ReadonlyMap<string, Readonly<Record<string, number>>>
  readonly queues: ReadonlyMap<string, QueueRates>
  readonly utilisation: number | null
}

export interface Observed {
  readonly rates: Rates
  /** Empty at the first look, and after a time in which nobody looked: there is nothing to compare with. */
  readonly metrics: ReadonlyMap<string, ScaleMetrics>
}

export function observe(before: Rates | null, sight: Sight, smoothingMs: number = SCALING.smoothingMs): Observed {
  const { atMs, workers, queues } = sight
  const ended = new Map(workers.map((worker) => [worker.id, worker.ended]))
  const endedByHost = sight.ended ?? new Map<string, Readonly<Record<string, number>>>()
  const elapsedMs = before === null ? 0 : atMs - before.atMs
  if (before === null || elapsedMs <= 0 || elapsedMs > SCALING.staleMs) {
    return { rates: { atMs, ended, endedByHost, queues: firstRates(queues), utilisation: null }, metrics: new Map() }
  }
  const weight = 1 - Math.exp(-elapsedMs / smoothingMs)
  const seconds = elapsedMs / 1_000
  const endedPerS = endedSince(before.ended, workers) / seconds
  const utilisation = blend(before.utilisation, utilisationOf(workers), weight)
  const busy = workers.reduce((sum, { running }) => sum + running, 0)
  const inStore = queues.reduce((sum, { running }) => sum + running, 0)
  const byQueue = sight.ended === null ? null : endedByQueue(before.endedByHost, sight.ended)
  const endedInAll = byQueue === null ? 0 : queues.reduce((sum, { name }) => sum + (byQueue.get(name) ?? 0), 0)
  const next = new Map<string, QueueRates>()
  const metrics = new Map<string, ScaleMetrics>()
  for (const queue of queues) {
    const ends = byQueue?.get(queue.name) ?? 0
    // Workers count what they run of all queues together; each queue has the part of it that it has in the store, or, where
    // jobs are too short to be seen there, of what has ended.
    const unseen = endedInAll > 0 ? ends / endedInAll : 1 / queues.length
    const share = inStore > 0 ? queue.running / inStore : unseen
    const held = queue.size + queue.running
    const known = before.queues.get(queue.name)
    const processed = byQueue === null ? endedPerS * share : ends / seconds
    const arrived = processed + (known === undefined ? 0 : (held - known.held) / seconds)
    const isFirst = known === undefined || before.utilisation === null
    const fade = 1 - Math.min(1, (processed * seconds) / SERVICE_JOBS)
    const own: QueueRates = {
      held,
      ranS: (known?.ranS ?? 0) * fade + busy * share * seconds,
      ended: (known?.ended ?? 0) * fade + processed * seconds,
      processingPerS: blend(isFirst ? null : known.processingPerS, processed, weight),
      arrivalPerS: blend(isFirst ? null : known.arrivalPerS, arrived, weight),
      running: blend(isFirst ? null : known.running, busy * share, weight),
    }
    next.set(queue.name, own)
    metrics.set(queue.name, metricsOf(sight, queue, own, { utilisation, busy }))
  }
  // Workers that are away at one look may be back at the next, with the same counters.
  const counters = new Map([...[...before.ended].slice(-SCALING.workersMax), ...ended])
  const hosts = new Map([...[...before.endedByHost].slice(-SCALING.hostsMax), ...endedByHost])
  return {
    rates: { atMs, ended: counters, endedByHost: hosts, queues: next, utilisation },
    metrics: workers.some(({ state }) => state === 'active') ? metrics : new Map(),
  }
}

function metricsOf(
  { atMs, workers }: Sight,
  { size, waitMs, paused }: SeenQueue,
  { arrivalPerS, processingPerS, running, ranS, ended }: QueueRates,
  { utilisation, busy }: { readonly utilisation: number; readonly busy: number },
): ScaleMetrics {
  const active = workers.filter(({ state }) => state === 'active')
  const slots = active.reduce((sum, { concurrency }) => sum + concurrency, 0)
  return {
    atMs,
    size,
    waitMs: Math.max(0, waitMs),
    paused,
    running,
    busyOthers: Math.max(0, busy - running),
    arrivalPerS: told(arrivalPerS),
    processingPerS: told(processingPerS),
    // Little's law over the last jobs, not over the last seconds: long jobs may end seldom. Those that run are half done.
    serviceMs: ended > 0 ? (ranS / (ended + running / 2)) * 1_000 : null,
    utilisation,
    concurrency: slots / Math.max(1, active.length),
    workers: workers.length,
    draining: workers.length - active.length,
  }
}

/** What is left of an average long after the last job is no rate. */
const RATE_MIN_PER_S = 0.005

function told(perS: number): number {
  return perS < RATE_MIN_PER_S ? 0 : perS
}

/** How many jobs the mean run time looks back on. */
const SERVICE_JOBS = 100

function firstRates(queues: readonly SeenQueue[]): ReadonlyMap<string, QueueRates> {
  const rates = queues.map(({ name, size, running }) => {
    return [name, { held: size + running, arrivalPerS: 0, processingPerS: 0, running, ranS: 0, ended: 0 }] as const
  })
  return new Map(rates)
}

/** One that was not seen before begins with what it has: nobody knows when it did that. */
function endedSince(before: ReadonlyMap<string, number>, workers: readonly SeenWorker[]): number {
  return workers.reduce((sum, { id, ended }) => sum + Math.max(0, ended - (before.get(id) ?? ended)), 0)
}

/** The same for hosts. A queue that a known host names for the first time began with nothing there. */
function endedByQueue(before: Rates['endedByHost'], now: NonNullable<Sight['ended']>): ReadonlyMap<string, number> {
  const sums = new Map<string, number>()
  for (const [host, counts] of now) {
    const known = before.get(host)
    if (known === undefined) continue
    for (const [queue, count] of Object.entries(counts)) {
      const more = count - (Object.hasOwn(known, queue) ? known[queue]! : 0)
      if (more > 0) sums.set(queue, (sums.get(queue) ?? 0) + more)
    }
  }
  return sums
}

/** Jobs that still run where a worker drains are work, but their slots are not for anybody. */
function utilisationOf(workers: readonly SeenWorker[]): number {
  const busy = workers.reduce((sum, { running }) => sum + running, 0)
  const slots = workers.reduce((sum, { state, concurrency }) => sum + (state === 'active' ? concurrency : 0), 0)
  return slots === 0 ? Math.min(1, busy) : Math.min(1, busy / slots)
}

function blend(before: number | null, value: number, weight: number): number {
  return before === null ? value : before + weight * (value - before)
}
