// The facts of one look, from the ports of the backends: a few bounded reads, side by side. What is not answered in time is
// null, and says nothing.
import { readyIn } from '../core/job.ts'
import type { AlertFacts, KindFacts, PoolFacts, QueueFacts, StoreFacts } from '../core/alert-facts.ts'
import { followTrend } from '../core/alert-trend.ts'
import type { Trend } from '../core/alert-trend.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import { shortText } from '../core/short-text.ts'
import { boundedBackend } from '../client/bounded-backend.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { isDispatching } from '../store/diagnosis.ts'
import type { LaneDepths, QueueCounts } from '../store/job-query.ts'
import type { Backend } from '../store/ports.ts'
import type { QueueRecord } from '../store/queue-store.ts'
import type { WorkerRecord } from '../store/worker-store.ts'
import type { AlertNotes } from './alert-notes.ts'
import { readServers } from './servers.ts'

const ERROR_CHARS_MAX = 200
/** A question each. */
const LANES_ASKED_MAX = 100
const READ_MAX_MS = 10_000
/** Failures of kinds are looked for at least this often: soon enough to be within the window. */
const KINDS_KNOWN_MS = DEFAULTS.alertWindowMs / 2

export interface FactsParts {
  readonly runtime: Runtime
  readonly connections: Readonly<Record<string, Backend>>
  /** Kinds of job whose failures somebody wants to know. */
  readonly kinds: readonly string[]
  /** Whether somebody wants to know the lanes of this queue. */
  readonly wantsLanes: (queue: string) => boolean
  readonly notes: AlertNotes
  /** Of all supervisors; absent: there are none. */
  readonly pools?: () => Promise<readonly PoolFacts[]>
}

export interface FactsReader {
  read(): Promise<AlertFacts>
  /** Somebody else has led meanwhile: what was remembered is old, and he has written down what he knew. */
  forget(): void
}

export function createFactsReader(parts: FactsParts): FactsReader {
  const { runtime, connections, pools } = parts
  const { clock, logger } = runtime
  const readers = Object.entries(connections).map(([name, backend]) =>
    createStoreReader(parts, name, boundedBackend(backend, clock, READ_MAX_MS)),
  )
  return {
    forget() {
      for (const reader of readers) reader.forget()
    },
    async read() {
      const [looks, seenPools] = await Promise.all([
        Promise.all(readers.map((reader) => reader.read())),
        pools === undefined ? [] : orNull(bounded(clock, READ_MAX_MS, 'the pools', pools())),
      ])
      const missing = looks.flatMap(({ facts }) => missingOf(facts))
      if (missing.length > 0) logger.debug({ missing }, 'some facts for the alerts are missing')
      const own = looks.find(({ facts }) => facts.connection === 'default')?.nowMs ?? null
      return { nowMs: own ?? clock.nowMs(), stores: looks.map(({ facts }) => facts), pools: seenPools }
    },
  }
}

interface StoreLook {
  /** Null: the store did not say. */
  readonly nowMs: number | null
  readonly facts: StoreFacts
}

function createStoreReader(
  { runtime, kinds, notes, wantsLanes }: FactsParts,
  connection: string,
  backend: Backend,
): { read(): Promise<StoreLook>; forget(): void } {
  const { clock, logger } = runtime
  let trends: ReadonlyMap<string, Trend> | null = null
  let isTold = false
  const kindReader = createKindReader(backend, kinds)

  async function queuesOf(
    [records, counts, workers]: readonly [
      readonly QueueRecord[] | null,
      readonly QueueCounts[] | null,
      readonly WorkerRecord[] | null,
    ],
    nowMs: number | null,
  ): Promise<readonly QueueFacts[] | null> {
    if (records === null || counts === null || nowMs === null) return null
    if (counts.length > LIMITS.alertQueuesMax && !isTold) {
      isTold = true
      logger.warn({ connection, queues: counts.length }, `alerts look at ${LIMITS.alertQueuesMax} queues at most`)
    }
    const loaded = trends ?? (await notes.trends(connection).catch(() => new Map<string, Trend>()))
    // Who has looked before knows that a queue he has not seen is new.
    const unseen = trends === null && loaded.size === 0 ? undefined : newQueue(nowMs)
    const paused = new Map(records.map((queue) => [queue.name, queue.paused]))
    const live = workers?.filter((worker) => isLive(worker, nowMs)) ?? null
    const next = new Map<string, Trend>()
    const lanes = await lanesOf(counts)
    let isNews = false
    const facts = counts.slice(0, LIMITS.alertQueuesMax).map((one): QueueFacts => {
      const { running, completed, failed, cancelled } = one.counts
      const ready = readyIn(one.counts)
      const { oldestReadyAtMs } = one
      const numbers = { ready, running, completed, failed, cancelled, oldestReadyAtMs }
      const seen = followTrend(loaded.get(one.queue) ?? unseen, numbers, nowMs)
      next.set(one.queue, seen.trend)
      isNews ||= seen.isNews
      return {
        queue: one.queue,
        paused: paused.get(one.queue) ?? false,
        ready,
        lanes: lanes.get(one.queue) ?? null,
        running,
        oldestReadyMs: oldestReadyAtMs === null ? null : Math.max(0, nowMs - oldestReadyAtMs),
        workers: live?.filter(({ queues }) => queues.includes(one.queue)).length ?? null,
        deadLetters: failed,
        isStalled: seen.isStalled,
        recent: seen.recent,
      }
    })
    trends = next
    // For the next leader; without it he begins to count anew.
    if (isNews) await notes.writeTrends(connection, next).catch(() => undefined)
    return facts
  }

  async function lanesOf(counts: readonly QueueCounts[]): Promise<ReadonlyMap<string, LaneDepths>> {
    const found = new Map<string, LaneDepths>()
    const wanted = counts.filter(({ queue }) => wantsLanes(queue)).slice(0, LANES_ASKED_MAX)
    const untilMs = clock.monoMs() + READ_MAX_MS
    for (const { queue } of wanted) {
      const depths = await orNull(backend.query.lanes?.(queue) ?? Promise.resolve(null))
      // One that is too slow for one queue is asked no more in this look.
      if (depths === null || clock.monoMs() >= untilMs) break
      found.set(queue, depths)
    }
    return found
  }

  return {
    forget() {
      trends = null
    },
    async read() {
      const [due, records, counts, workers, schedules, relay, servers] = await Promise.all([
        orNull(backend.schedules.due(0)),
        orNull(backend.queues.list()),
        orNull(backend.query.counts()),
        orNull(backend.workers.list()),
        orNull(backend.schedules.list()),
        orNull(bounded(clock, READ_MAX_MS, 'the dispatch', relayOf(backend))),
        readServers(backend, clock),
      ])
      const nowMs = due?.nowMs ?? null
      const failed = counts?.reduce((sum, one) => sum + one.counts.failed, 0) ?? null
      return {
        nowMs,
        facts: {
          connection,
          queues: await queuesOf([records, counts, workers], nowMs),
          kinds: nowMs === null || failed === null ? null : await orNull(kindReader(nowMs, failed)),
          schedules:
            nowMs === null || schedules === null
              ? null
              : schedules.map(({ name, enabled, nextRunMs }) => ({
                  schedule: name,
                  lateMs: enabled && nextRunMs !== null ? Math.max(0, nowMs - nextRunMs) : 0,
                })),
          relay,
          servers,
        },
      }
    },
  }
}

function newQueue(nowMs: number): Trend {
  return { ready: 0, ended: 0, oldestReadyAtMs: null, samples: [[nowMs - 1, 0, 0]] }
}

/** Null while Redis cannot be asked: the lag of nobody is known then. */
async function relayOf(backend: Backend): Promise<StoreFacts['relay']> {
  if (!isDispatching(backend)) return []
  const states = await backend.dispatching()
  if (states.some(({ waiting }) => waiting === null)) return null
  return states.map(({ queue, relayLagMs }) => ({ queue, lagMs: relayLagMs ?? 0 }))
}

/**
 * Failures of a kind are found by walking dead letters, which may be many. While their number has not changed none has come,
 * unless as many went: so for a while the last answer is only grown older.
 */
function createKindReader(backend: Backend, kinds: readonly string[]) {
  let known: { readonly failed: number; readonly atMs: number; readonly found: readonly FoundFailures[] } | null = null
  return async (nowMs: number, failed: number): Promise<readonly KindFacts[]> => {
    if (kinds.length === 0) return []
    const sinceMs = nowMs - DEFAULTS.alertWindowMs
    const ageMs = known === null ? Infinity : nowMs - known.atMs
    if (known?.failed !== failed || ageMs < 0 || ageMs >= KINDS_KNOWN_MS) {
      const found: FoundFailures[] = []
      for (const kind of kinds) {
        const filter = { name: kind, status: ['failed'], finishedFromMs: sinceMs } as const
        const { items } = await backend.query.list(filter, { limit: LIMITS.alertKindFailuresMax })
        const failures = items.map(({ finishedAtMs, lastError }) => ({
          atMs: finishedAtMs ?? nowMs,
          error: lastError === null ? null : shortText(`${lastError.name}: ${lastError.message}`, ERROR_CHARS_MAX),
        }))
        found.push({ kind, failures })
      }
      known = { failed, atMs: nowMs, found }
    }
    return known.found.map(({ kind, failures }) => {
      const recent = failures.filter(({ atMs }) => atMs >= sinceMs)
      return { kind, failed: recent.length, error: recent[0]?.error ?? null }
    })
  }
}

interface FoundFailures {
  readonly kind: string
  /** Newest first. */
  readonly failures: readonly { readonly atMs: number; readonly error: string | null }[]
}

function missingOf({ connection, ...parts }: StoreFacts): readonly string[] {
  return Object.entries(parts).flatMap(([part, value]) => (value === null ? [`${connection} ${part}`] : []))
}

async function orNull<Value>(call: Promise<Value>): Promise<Value | null> {
  try {
    return await call
  } catch {
    return null
  }
}
