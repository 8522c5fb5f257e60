// The alerts that are about the store itself. Every supervisor looks for itself, remembers in memory and sends directly:
// nothing here needs what it watches. Who is cut off alone tells so too, and names himself.
import { evaluate } from '../core/alerting.ts'
import type { AlertState, Notice, Rule } from '../core/alerting.ts'
import { DIRECT_RULES } from '../core/alert-rules.ts'
import type { AlertFacts } from '../core/alert-facts.ts'
import type { Silence } from '../core/alert-silence.ts'
import { DEFAULTS } from '../core/limits.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { logEntryOf } from './alert-notes.ts'
import type { AlertNotes } from './alert-notes.ts'
import type { DirectPost } from './direct-post.ts'
import type { AlertPlan } from './options.ts'
import { readServers } from './servers.ts'

export interface StoreWatchParts {
  readonly runtime: Runtime
  readonly connections: Readonly<Record<string, Backend>>
  readonly plan: AlertPlan
  /** Named in the notices: which of several supervisors cannot reach the store. */
  readonly host: string
  readonly post: DirectPost
  readonly notes: AlertNotes
  /** As they were when the store last answered. */
  readonly silences: () => readonly Silence[]
}

const UNRECORDED_MAX = 50

export function createStoreWatch(parts: StoreWatchParts): Service {
  const { runtime, connections, plan, host, post, notes, silences } = parts
  const { clock, logger } = runtime
  const rules: readonly Rule[] = plan.rules.filter(({ name }) => DIRECT_RULES.has(name))
  const states = new Map<string, AlertState>()
  const unrecorded: Notice[] = []
  const everyMs = Math.min(DEFAULTS.alertStoreEveryMs, plan.everyMs)

  async function pass(): Promise<number> {
    const facts = await look()
    const { changes } = evaluate({
      rules,
      facts,
      states,
      silences: silences(),
      nowMs: facts.nowMs,
      stepMaxMs: 3 * everyMs,
    })
    for (const { key, after } of changes) {
      if (after === null || after.phase === 'recovered') states.delete(key)
      else states.set(key, { ...after, owed: [] })
      for (const notice of after?.owed ?? []) tell({ ...notice, text: `${notice.text} (seen from ${host})` })
    }
    await record(facts)
    return everyMs
  }

  async function look(): Promise<AlertFacts> {
    const stores = await Promise.all(
      Object.entries(connections).map(async ([connection, backend]) => ({
        connection,
        queues: null,
        kinds: null,
        schedules: null,
        relay: null,
        servers: await readServers(backend, clock),
      })),
    )
    return { nowMs: clock.nowMs(), stores, pools: null }
  }

  function tell(notice: Notice): void {
    logger.warn({ alert: notice.key, kind: notice.kind, quiet: notice.quiet }, notice.text)
    unrecorded.push(notice)
    if (unrecorded.length > UNRECORDED_MAX) unrecorded.shift()
    if (notice.quiet) return
    for (const sink of plan.routes[notice.severity]) post.send(sink, notice)
  }

  /** The log of the alerts is in the store: written when that answers again, and not worth more than a try. */
  async function record({ stores }: AlertFacts): Promise<void> {
    const isUp = stores.find(({ connection }) => connection === 'default')?.servers?.every((server) => server.isUp)
    while (isUp === true && unrecorded[0] !== undefined) {
      try {
        await notes.record(logEntryOf(unrecorded[0]))
      } catch {
        return
      }
      unrecorded.shift()
    }
  }

  return createLoop({ name: 'alerts about the store', runtime, pass })
}
