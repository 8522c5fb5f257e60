// What the stores say when they are asked: jobs by status, the oldest ready one, workers, tokens, memory. Read at a scrape,
// kept for a few seconds, and bounded: a store that is slow or dead costs a scrape a short wait and has no values in it.
import { readyIn } from '../core/job.ts'
import { isMillraceError } from '../core/errors.ts'
import type { JobStatus } from '../core/job.ts'
import { DEFAULTS } from '../core/limits.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import { isDispatching, isServed } from '../store/diagnosis.ts'
import type { DispatchState, ServerState } from '../store/diagnosis.ts'
import type { LaneDepths, QueueCounts } from '../store/job-query.ts'
import type { Backend } from '../store/ports.ts'
import { crewOf } from './crew.ts'
import type { Crew } from './crew.ts'

export interface QueueGauges {
  readonly queue: string
  readonly isPaused: boolean
  readonly counts: Readonly<Record<JobStatus, number>>
  /** 0: nothing is ready. */
  readonly oldestReadyMs: number
  /** Jobs that could start now, by lane; null: there was no time to ask. */
  readonly lanes: LaneDepths | null
  /** Where jobs are handed out through Redis. */
  readonly dispatch: DispatchState | null
}

export interface StoreGauges {
  readonly connection: string
  /** False: it did not answer in time, and nothing else is known. */
  readonly isUp: boolean
  readonly queues: readonly QueueGauges[]
  /** Null: they could not be read. */
  readonly workers: Crew | null
  readonly servers: readonly ServerState[]
}

export type Gauges = readonly StoreGauges[]

/** A question that got no answer for this long gets none any more: the next scrape asks anew. */
const GIVEN_UP_MS = 30_000
/** Lanes are a question per queue: those of the deepest, and no longer than this. */
const LANES_ASKED_MAX = 50
const LANES_MAX_MS = 500

export interface GaugeSources {
  readonly connections: Readonly<Record<string, Backend>>
  readonly clock: Clock
  /** Default 2 s. */
  readonly timeoutMs?: number
  /** Default 5 s. */
  readonly cacheMs?: number
}

/** Asks every store once, side by side. Never rejects. */
export async function readGauges(sources: GaugeSources): Promise<Gauges> {
  return Promise.all(
    Object.entries(sources.connections).map(([connection, backend]) => {
      const { clock, timeoutMs = DEFAULTS.gaugesTimeoutMs } = sources
      return bounded(clock, timeoutMs, `the gauges of ${connection}`, readStore(connection, backend, clock)).catch(
        (error: unknown) => unreadStore(connection, error),
      )
    }),
  )
}

/**
 * The same, one question at a time whoever asks. While a store has not answered the last question it is not asked
 * another one: it is down until it does, or until that question is given up.
 */
export function createGauges(sources: GaugeSources): () => Promise<Gauges> {
  const { clock, timeoutMs = DEFAULTS.gaugesTimeoutMs, cacheMs = DEFAULTS.gaugesCacheMs } = sources
  const readers = Object.entries(sources.connections).map(([connection, backend]) => {
    let asked: Promise<StoreGauges> | undefined
    let last: { readonly gauges: StoreGauges; readonly atMs: number } | undefined
    return async (): Promise<StoreGauges> => {
      if (last !== undefined && clock.monoMs() - last.atMs < cacheMs) return last.gauges
      asked ??= bounded(clock, GIVEN_UP_MS, `the gauges of ${connection}`, readStore(connection, backend, clock))
        .catch((error: unknown) => unreadStore(connection, error))
        .then((gauges) => {
          last = { gauges, atMs: clock.monoMs() }
          asked = undefined
          return gauges
        })
      return bounded(clock, timeoutMs, `the gauges of ${connection}`, asked).catch((error: unknown) =>
        unreadStore(connection, error),
      )
    }
  })
  return () => Promise.all(readers.map((read) => read()))
}

async function readStore(connection: string, backend: Backend, clock: Clock): Promise<StoreGauges> {
  const [records, counts, workers, { nowMs }, dispatch, servers] = await Promise.all([
    backend.queues.list(),
    backend.query.counts(),
    backend.workers.list(),
    backend.schedules.due(0),
    isDispatching(backend) ? backend.dispatching() : [],
    isServed(backend) ? backend.servers() : [],
  ])
  const lanes = await lanesOf(backend, counts, clock)
  const paused = new Set(records.filter((record) => record.paused).map(({ name }) => name))
  const tokens = new Map(dispatch.map((one) => [one.queue, one]))
  return {
    connection,
    isUp: true,
    queues: counts.map(({ queue, counts: byStatus, oldestReadyAtMs }) => ({
      queue,
      isPaused: paused.has(queue),
      counts: byStatus,
      oldestReadyMs: oldestReadyAtMs === null ? 0 : Math.max(0, nowMs - oldestReadyAtMs),
      lanes: lanes.get(queue) ?? null,
      dispatch: tokens.get(queue) ?? null,
    })),
    workers: crewOf(workers, nowMs),
    servers,
  }
}

async function lanesOf(
  { query }: Backend,
  counts: readonly QueueCounts[],
  clock: Clock,
): Promise<ReadonlyMap<string, LaneDepths>> {
  const found = new Map<string, LaneDepths>()
  if (query.lanes === undefined) return found
  for (const { queue, counts: own } of counts) if (readyIn(own) === 0) found.set(queue, [0, 0, 0])
  const untilMs = clock.monoMs() + LANES_MAX_MS
  const filled = counts
    .filter(({ counts: own }) => readyIn(own) > 0)
    .sort((a, b) => readyIn(b.counts) - readyIn(a.counts))
  for (const { queue } of filled.slice(0, LANES_ASKED_MAX)) {
    const leftMs = untilMs - clock.monoMs()
    if (leftMs <= 0) break
    const depths = await bounded(clock, leftMs, 'the lanes', query.lanes(queue)).catch(() => null)
    if (depths === null) break
    found.set(queue, depths)
  }
  return found
}

/** One that refuses to be read is not down: this process may do no more than enqueue. */
function unreadStore(connection: string, error: unknown): StoreGauges {
  const isUp = isMillraceError(error) && error.code === 'STORE_REFUSED'
  return { connection, isUp, queues: [], workers: null, servers: [] }
}
