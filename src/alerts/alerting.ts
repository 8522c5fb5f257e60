// Alerts of one Millrace, as a service that every supervisor starts. The leader looks, decides (core/alerting.ts) and hands
// notices to the queue; every supervisor watches the store itself (store-watch.ts).
//
// Who is told how often. A decision is written first, with the notices it owes; then they are enqueued; then it is written
// that they were. A leader that dies in between leaves a state that owes something, and the next one enqueues it again:
// the unique key of the job makes that one delivery within an hour, and `dedupeKey` tells a receiver of anything later. So
// every notice is told at least once, and twice only if a receiver answered and the answer was lost.
import { hasLaneLimit } from '../core/alert-options.ts'
import { evaluate } from '../core/alerting.ts'
import type { AlertState, Notice, Rule } from '../core/alerting.ts'
import { DIRECT_RULES } from '../core/alert-rules.ts'
import type { PoolFacts } from '../core/alert-facts.ts'
import type { Silence } from '../core/alert-silence.ts'
import { boundedBackend } from '../client/bounded-backend.ts'
import { DEFAULTS } from '../core/limits.ts'
import { isMillraceError } from '../core/errors.ts'
import { invalidOption } from '../core/names.ts'
import { createLeader } from '../maintenance/leader.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { createAlertNotes, logEntryOf } from './alert-notes.ts'
import type { AlertEntry } from './alert-notes.ts'
import { createDirectPost } from './direct-post.ts'
import { createFactsReader } from './facts.ts'
import type { NotifyInput } from './notify-job.ts'
import type { AlertPlan } from './options.ts'
import { createPost } from './post.ts'
import type { SinkParts } from './sink-options.ts'
import { createStoreWatch } from './store-watch.ts'

export interface AlertingParts {
  readonly runtime: Runtime
  readonly plan: AlertPlan
  /** The state of the alerts is kept on `default`; all of them are looked at. */
  readonly connections: Readonly<Record<string, Backend>>
  /** Hands one notice for one sink to the queue: `mill.enqueue(notifyJob, input, notifyOptions(input))`. */
  readonly enqueue: (input: NotifyInput) => Promise<unknown>
  /** Which supervisor this is. */
  readonly host: string
  readonly pools?: () => Promise<readonly PoolFacts[]>
  /** For tests. */
  readonly sinks?: Omit<SinkParts, 'runtime'>
}

const STORE_MAX_MS = 10_000
const FOLLOW_MS = 2_000

export function createAlerting(parts: AlertingParts): Service {
  const { runtime, plan, connections, enqueue, host, pools, sinks = {} } = parts
  const { clock, logger } = runtime
  const own = connections['default']
  if (own === undefined) throw invalidOption('connections', connections, 'backends, one of them named default')
  const store = boundedBackend(own, clock, STORE_MAX_MS)
  const notes = createAlertNotes(store.notes)
  const rules: readonly Rule[] = plan.rules.filter(({ name }) => !DIRECT_RULES.has(name))
  const leader = createLeader({ runtime, workers: store.workers, role: 'alerts', ttlMs: DEFAULTS.leaderTtlMs })
  const facts = createFactsReader({
    runtime,
    connections,
    kinds: plan.kinds,
    wantsLanes: (queue) => hasLaneLimit(rules, queue),
    notes,
    ...(pools !== undefined && { pools }),
  })
  const direct = createDirectPost(createPost(plan, { runtime, ...sinks }), runtime)
  let silences: readonly Silence[] = plan.silences
  let wasLeading = false
  let nextLookMs = -Infinity

  async function pass(): Promise<number> {
    const startMs = clock.monoMs()
    if (!leader.isLeading()) {
      wasLeading = false
      // Silences are needed when the store cannot be asked for them.
      if (startMs >= nextLookMs) await learnSilences(startMs)
      return Math.min(FOLLOW_MS, plan.everyMs)
    }
    if (!wasLeading) facts.forget()
    wasLeading = true
    await learnSilences(startMs)
    await look()
    return Math.max(0, plan.everyMs - (clock.monoMs() - startMs))
  }

  async function learnSilences(startMs: number): Promise<void> {
    nextLookMs = startMs + plan.everyMs
    silences = [...plan.silences, ...(await notes.silences())]
  }

  async function look(): Promise<void> {
    const seen = await facts.read()
    const entries = new Map(await notes.states())
    for (const [key, entry] of entries) {
      const { state, version } = entry
      // Of a leader that died, or of a person who acknowledged.
      if (state === null || state.owed.length === 0) continue
      const settled = await byItself(key, () => handOver(state, version))
      if (settled !== null) entries.set(key, settled)
    }
    const states = new Map([...entries].flatMap(([key, { state }]) => (state === null ? [] : [[key, state] as const])))
    const { changes, broken, dropped } = evaluate({
      rules,
      facts: seen,
      states,
      silences,
      nowMs: seen.nowMs,
      stepMaxMs: 3 * plan.everyMs,
    })
    for (const { rule, error } of broken) logger.error({ rule, error }, 'an alert rule threw and decides nothing')
    if (dropped > 0) logger.error({ dropped }, 'more alerts than can be kept: some are left out')
    for (const { key, after } of changes) {
      await byItself(key, () => change(entries.get(key), states.get(key), after))
    }
  }

  /** A store that is away is away for all of them. Whatever else goes wrong with one alert does not keep the others back. */
  async function byItself<Value>(key: string, act: () => Promise<Value>): Promise<Value | null> {
    try {
      return await act()
    } catch (error) {
      if (isAway(error)) throw error
      logger.error({ alert: key, error }, 'an alert could not be written or told, and is tried again')
      return null
    }
  }

  async function change(
    entry: AlertEntry | undefined,
    before: AlertState | undefined,
    after: AlertState | null,
  ): Promise<void> {
    const version = entry?.version ?? 0
    if (after === null) {
      if (before !== undefined) await notes.take(before, version)
      return
    }
    const written = await notes.write(after, version)
    // Somebody else has decided about it since; the next look sees what.
    if (written === null) return
    if (after.owed.length > 0) await handOver(after, written)
  }

  /** Enqueues what is owed and writes that it was. What comes after a crash in between is said above. */
  async function handOver(state: AlertState, version: number): Promise<AlertEntry> {
    for (const notice of state.owed) await handOverOne(notice)
    const settled = { ...state, owed: [] }
    if (state.phase === 'recovered') {
      await notes.take(settled, version)
      return { state: null, version: 0 }
    }
    const written = await notes.write(settled, version)
    // Null: another one has done the same, or a person has acknowledged it; read again at the next look.
    return { state: settled, version: written ?? version }
  }

  async function handOverOne(notice: Notice): Promise<void> {
    await notes.record(logEntryOf(notice))
    const { key, kind, quiet, severity } = notice
    logger[kind === 'firing' && !quiet ? 'warn' : 'info']({ alert: key, kind, quiet, severity }, notice.text)
    if (quiet) return
    const failures: unknown[] = []
    for (const sink of plan.routes[severity]) {
      await enqueue({ sink, notice }).catch((error: unknown) => {
        if (isAway(error)) throw error
        failures.push(error)
      })
    }
    if (failures.length > 0) throw failures[0]
  }

  const loop = createLoop({ name: 'alerts', runtime, pass })
  const watch = createStoreWatch({
    runtime,
    connections,
    plan,
    host,
    post: direct,
    notes,
    silences: () => silences,
  })
  const services: readonly Service[] = [leader, watch, loop]
  return {
    async start() {
      for (const service of services) await service.start()
    },
    async stop() {
      await loop.stop()
      await watch.stop()
      await direct.stop()
      await leader.stop()
    },
  }
}

function isAway(error: unknown): boolean {
  return isMillraceError(error) && error.retryable
}
