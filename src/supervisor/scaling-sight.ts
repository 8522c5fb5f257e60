// What the autoscaler sees: the records of all supervisors, put together by pool, and what the store says of their
// queues. Values only; who reads them is autoscaler.ts.
import { readyIn } from '../core/job.ts'
import type { SeenQueue, SeenWorker, Sight } from '../core/scaling-rates.ts'
import type { QueueCounts } from '../store/job-query.ts'
import type { ChildState, PoolStatus, SupervisorRecord } from './fleet.ts'

export interface PoolHost {
  readonly id: string
  readonly min: number
  readonly max: number
  /** What it has set out to run. */
  readonly wanted: number
  readonly draining: number
  /** Nothing more is started there now: it is quiet, or what it starts crashes. */
  readonly isStuck: boolean
}

export interface PoolSight {
  readonly name: string
  /** Those that it serves and that exist. */
  readonly queues: readonly string[]
  readonly hosts: readonly PoolHost[]
  readonly workers: readonly SeenWorker[]
  /** Runs that have ended, by host and queue; null: not all of its hosts say. */
  readonly ended: Sight['ended']
  /** Its size is fixed on every host: nothing to decide. */
  readonly isFixed: boolean
}

export interface HostSight {
  readonly id: string
  /** Processes of pools whose size is fixed. */
  readonly fixed: number
  /** Of all its pools together; null: it does not say. */
  readonly processesMax: number | null
}

export interface FleetSight {
  /** By name. */
  readonly pools: readonly PoolSight[]
  readonly hosts: readonly HostSight[]
}

/** Supervisors that are stopping have no share any more. */
export function fleetSight(records: readonly SupervisorRecord[], known: readonly string[]): FleetSight {
  const alive = records.filter(({ state }) => state !== 'stopping')
  const parts = new Map<string, { readonly record: SupervisorRecord; readonly pool: PoolStatus }[]>()
  for (const record of alive) {
    for (const pool of record.pools) parts.set(pool.name, [...(parts.get(pool.name) ?? []), { record, pool }])
  }
  const pools = [...parts].map(([name, list]): PoolSight => {
    return {
      name,
      queues: queuesOf(
        list.map(({ pool }) => pool),
        known,
      ),
      hosts: list.map(({ record, pool }) => hostOf(record, pool)),
      workers: list.flatMap(({ pool }) => pool.children.flatMap(workerOf)),
      ended: endedOf(list),
      isFixed: list.every(({ pool: { min, max } }) => min >= max),
    }
  })
  const fixed = new Set(pools.filter(({ isFixed }) => isFixed).map(({ name }) => name))
  const hosts = alive.map(({ id, pools: own, processesMax }) => {
    const wanted = own.filter(({ name }) => fixed.has(name)).map((pool) => pool.wanted)
    return { id, fixed: wanted.reduce((sum, count) => sum + count, 0), processesMax: countOrNull(processesMax) }
  })
  return { pools: pools.sort((one, other) => (one.name < other.name ? -1 : 1)), hosts }
}

function endedOf(list: readonly { readonly record: SupervisorRecord; readonly pool: PoolStatus }[]): Sight['ended'] {
  const found = new Map<string, Readonly<Record<string, number>>>()
  for (const { record, pool } of list) {
    if (typeof pool.ended !== 'object' || pool.ended === null) return null
    found.set(record.id, pool.ended)
  }
  return found
}

/** Written by another process, perhaps of another release. */
function countOrNull(value: unknown): number | null {
  return typeof value === 'number' && Number.isSafeInteger(value) && value >= 0 ? value : null
}

/** A queue may be on several connections: what waits in any of them is for the same workers. */
export function countsByQueue(lists: readonly (readonly QueueCounts[])[]): ReadonlyMap<string, QueueCounts> {
  const found = new Map<string, QueueCounts>()
  for (const one of lists.flat()) {
    const other = found.get(one.queue)
    found.set(one.queue, other === undefined ? one : added(one, other))
  }
  return found
}

function added(one: QueueCounts, other: QueueCounts): QueueCounts {
  const { queued, dispatched, running } = other.counts
  const counts = {
    ...one.counts,
    queued: one.counts.queued + queued,
    dispatched: one.counts.dispatched + dispatched,
    running: one.counts.running + running,
  }
  const oldest = [one.oldestReadyAtMs, other.oldestReadyAtMs].filter((at) => at !== null)
  return { queue: one.queue, counts, oldestReadyAtMs: oldest.length === 0 ? null : Math.min(...oldest) }
}

export function sightOf(
  { queues, workers, ended }: PoolSight,
  counts: ReadonlyMap<string, QueueCounts>,
  paused: ReadonlySet<string>,
  nowMs: number,
): Sight {
  return { atMs: nowMs, workers, ended, queues: queues.map((name) => seenQueue(name, counts.get(name), paused, nowMs)) }
}

function seenQueue(
  name: string,
  found: QueueCounts | undefined,
  paused: ReadonlySet<string>,
  nowMs: number,
): SeenQueue {
  // One that has never had a job is not in the store yet.
  if (found === undefined) return { name, size: 0, running: 0, waitMs: 0, paused: paused.has(name) }
  const { counts, oldestReadyAtMs } = found
  return {
    name,
    size: readyIn(counts),
    running: counts.running,
    waitMs: oldestReadyAtMs === null ? 0 : Math.max(0, nowMs - oldestReadyAtMs),
    paused: paused.has(name),
  }
}

/** Hosts may run different versions of a configuration: a pool serves what any of them serves. */
function queuesOf(pools: readonly PoolStatus[], known: readonly string[]): readonly string[] {
  const named = new Set(pools.flatMap(({ queues }) => queues))
  if (pools.some(({ queues }) => queues.length === 0)) for (const queue of known) named.add(queue)
  return [...named].sort()
}

function hostOf(record: SupervisorRecord, pool: PoolStatus): PoolHost {
  return {
    id: record.id,
    // Where somebody has set the size by hand, that is what there is to share.
    min: pool.pinned === true ? pool.wanted : pool.min,
    max: pool.pinned === true ? pool.wanted : pool.max,
    wanted: pool.wanted,
    draining: pool.children.filter(({ state }) => state === 'draining').length,
    isStuck: record.state === 'quiet' || pool.state === 'crash-loop',
  }
}

const SEEN_AS: Readonly<Record<ChildState, SeenWorker['state'] | null>> = {
  starting: 'active',
  running: 'active',
  // It takes no jobs, and it is a process.
  quiet: 'draining',
  draining: 'draining',
  unhealthy: 'draining',
  stopped: null,
  crashed: null,
}

function workerOf({
  id,
  state,
  processed,
  running,
  concurrency,
}: PoolStatus['children'][number]): readonly SeenWorker[] {
  const as = SEEN_AS[state]
  return as === null ? [] : [{ id, ended: processed, running, concurrency, state: as }]
}
