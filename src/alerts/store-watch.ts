// The alerts that are about the store itself. Every supervisor looks for itself, remembers in memory and sends directly:
// nothing here needs what it watches. Who is cut off alone tells so too, and names himself. As far as the store answers, what
// fires is shown there, and what happened is recorded.
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
import type { AlertNotes, Sight } from './alert-notes.ts'
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
  /** What others see of it. */
  const shown = new Map<string, Sight>()
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
      for (const notice of after?.owed ?? []) tell(own(notice))
    }
    // Best effort: what is missing there now comes with the next pass.
    if (areNotesUp(facts))
      await record()
        .then(show, () => undefined)
        .catch(() => undefined)
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

  /** The same alert of several supervisors has one key and as many incidents: a receiver can join them, and tell them apart. */
  function own(notice: Notice): Notice {
    const incident = `${notice.incident}@${host}`
    return { ...notice, incident, host, text: seenFrom(notice.text, host) }
  }

  async function record(): Promise<void> {
    for (let next = unrecorded[0]; next !== undefined; next = unrecorded[0]) {
      await notes.record(logEntryOf(next))
      unrecorded.shift()
    }
  }

  async function show(): Promise<void> {
    for (const state of states.values()) {
      if (state.phase !== 'firing') continue
      const sight = { host, state: { ...state, text: seenFrom(state.text, host) } }
      await notes.show(sight)
      shown.set(state.key, sight)
    }
    for (const [key, sight] of shown) {
      if (states.has(key)) continue
      await notes.hide(sight)
      shown.delete(key)
    }
  }

  return createLoop({ name: 'alerts about the store', runtime, pass })
}

function seenFrom(text: string, host: string): string {
  return `${text} (seen from ${host})`
}

/** Notes are kept on `default`, in PostgreSQL where there is one. */
function areNotesUp({ stores }: AlertFacts): boolean {
  const servers = stores.find(({ connection }) => connection === 'default')?.servers ?? null
  if (servers === null) return false
  return servers.find(({ server }) => server === 'postgres')?.isUp ?? servers.every(({ isUp }) => isUp)
}
