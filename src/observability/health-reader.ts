// The facts of health, read from the backends: each question once, all of them at once, with a bound. A store that does
// not answer is a fact like others. Nothing here writes.
import { isMillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import { checkName } from '../core/names.ts'
import { scaleSignal } from '../core/scale-signal.ts'
import type { ScaleSignal } from '../core/scale-signal.ts'
import { withoutPasswords } from '../core/secrets.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import { isDispatching, isServed } from '../store/diagnosis.ts'
import type { Backend } from '../store/ports.ts'
import { decideHealth, queueKey } from './health.ts'
import type { HealthFacts, HealthReport, SeenServer } from './health.ts'
import { recentOf, withLook } from './recent.ts'
import type { Look } from './recent.ts'

export interface Health {
  /** Never rejects: a store that does not answer is in the report. `recent` begins with the second call. */
  report(): Promise<HealthReport>
  /** Whether every store answers in time. Never rejects. */
  answers(): Promise<boolean>
  /** For scalers outside; null: there is no such queue. */
  scale(queue: string): Promise<ScaleSignal | null>
}

export interface HealthOptions {
  readonly connections: Readonly<Record<string, Backend>>
  readonly clock: Clock
  /** How far back `recent` looks. Default one minute. */
  readonly recentMs?: number
}

const RECENT_MS = 60_000
const ROLE = 'maintenance'

export function createHealth({ connections, clock, recentMs = RECENT_MS }: HealthOptions): Health {
  const entries = Object.entries(connections)
  let looks: readonly Look[] = []

  const inTime = <Value>(ask: Promise<Value>): Promise<Value> => bounded(clock, LIMITS.healthMaxMs, 'the store', ask)

  /** Of one connection; null and why, where it does not answer. */
  async function factsOf(connection: string, backend: Backend) {
    const [servers, facts] = await Promise.all([
      serversOf(connection, backend),
      inTime(readFacts(connection, backend)).catch((error: unknown) => ({ connection, ...downOf(error) })),
    ])
    return { servers, facts }
  }

  async function serversOf(connection: string, backend: Backend): Promise<readonly SeenServer[]> {
    if (!isServed(backend)) return []
    const servers = await inTime(backend.servers()).catch(() => [])
    return servers.map((server) => ({ ...server, connection }))
  }

  return {
    async report() {
      const all = await Promise.all(entries.map(([connection, backend]) => factsOf(connection, backend)))
      const down = all.flatMap(({ facts }) => ('message' in facts ? [facts] : []))
      const read = all.flatMap(({ facts }) => ('message' in facts ? [] : [facts]))
      const counts = read.flatMap((one) => one.counts)
      if (down.length === 0) {
        const seen = new Map(counts.map((one) => [queueKey(one.connection, one.queue), one.counts]))
        looks = withLook(looks, { atMs: clock.monoMs(), counts: seen }, recentMs)
      }
      return decideHealth({
        queues: read.flatMap((one) => one.queues),
        counts,
        workers: read.flatMap((one) => one.workers),
        nowMs: read[0]?.nowMs ?? clock.nowMs(),
        servers: all.flatMap((one) => one.servers),
        dispatch: read.flatMap((one) => one.dispatch),
        leaders: read.flatMap((one) => one.leaders),
        down,
        recent: recentOf(looks),
        queuesMax: LIMITS.healthQueuesMax,
      })
    },
    async answers() {
      const asked = entries.map(([, backend]) =>
        bounded(clock, LIMITS.pingMaxMs, 'the store', backend.schedules.due(0)).then(
          () => true,
          () => false,
        ),
      )
      return (await Promise.all(asked)).every(Boolean)
    },
    async scale(queue) {
      checkName(queue, 'queue')
      const asked = await Promise.allSettled(entries.map(([, backend]) => inTime(scaleOf(backend, queue))))
      const found = asked.flatMap((one) => (one.status === 'fulfilled' && one.value !== null ? [one.value] : []))
      if (found[0] !== undefined) return found[0]
      // It may be there: a scaler that is told "no such queue" would take its workers away.
      const away = asked.find((one) => one.status === 'rejected')
      if (away !== undefined) throw away.reason
      return null
    },
  }
}

type Facts = Required<Pick<HealthFacts, 'queues' | 'counts' | 'workers' | 'nowMs' | 'dispatch' | 'leaders'>>

async function readFacts(connection: string, backend: Backend): Promise<Facts> {
  const [queues, counts, workers, { nowMs }, dispatch, leader] = await Promise.all([
    backend.queues.list(),
    backend.query.counts(),
    backend.workers.list(),
    backend.schedules.due(0),
    isDispatching(backend) ? backend.dispatching() : [],
    backend.workers.leader?.(ROLE),
  ])
  const named = <Item extends object>(items: readonly Item[]) => items.map((item) => ({ ...item, connection }))
  return {
    queues: named(queues),
    counts: named(counts),
    workers: named(workers),
    nowMs,
    dispatch: named(dispatch),
    leaders: leader === undefined ? [] : [{ connection, holder: leader?.holder ?? null }],
  }
}

async function scaleOf(backend: Backend, queue: string): Promise<ScaleSignal | null> {
  const [record, [counted], workers, { nowMs }] = await Promise.all([
    backend.queues.get(queue),
    backend.query.counts(queue),
    backend.workers.list(),
    backend.schedules.due(0),
  ])
  if (record === null && counted === undefined) return null
  const serving = workers.filter((worker) => worker.queues.includes(queue) && isLive(worker, nowMs))
  const oldest = counted?.oldestReadyAtMs ?? null
  return scaleSignal({
    queue,
    paused: record?.paused ?? false,
    ready: (counted?.counts.queued ?? 0) + (counted?.counts.dispatched ?? 0),
    running: counted?.counts.running ?? 0,
    oldestReadyMs: oldest === null ? null : nowMs - oldest,
    slots: serving.map(({ concurrency }) => concurrency),
  })
}

/** What has no code of ours came from the way to the store. */
const AWAY: readonly ErrorCode[] = ['STORE_UNAVAILABLE', 'STORE_TIMEOUT']

function downOf(error: unknown): { readonly message: string; readonly isAway: boolean } {
  const message = withoutPasswords(error instanceof Error ? error.message : String(error))
  return { message, isAway: !isMillraceError(error) || AWAY.includes(error.code) }
}
