// Following the plan of the autoscaler. A plan that nobody has written for a minute is nobody's plan; whether it is fresh
// is judged by its version on the own clock, and only a plan seen for the first time by the time that it names.
import { DEFAULTS } from '../core/limits.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { storeNowMs } from './command-notes.ts'

export const PLAN_SPACE = 'scaling-plan'

export interface ScalingPlan {
  readonly pool: string
  readonly total: number
  /** By supervisor. */
  readonly shares: Readonly<Record<string, number>>
  readonly reasons: readonly string[]
  readonly decidedAtMs: number
}

export class PlanReader {
  readonly #store: Pick<Backend, 'notes' | 'schedules'>
  readonly #runtime: Runtime
  readonly #seen = new Map<string, { readonly version: number; readonly sinceMs: number }>()

  constructor(store: Pick<Backend, 'notes' | 'schedules'>, runtime: Runtime) {
    this.#store = store
    this.#runtime = runtime
  }

  /** Null: there is none, or none that counts. */
  async read(pool: string): Promise<ScalingPlan | null> {
    const note = await this.#store.notes.get(PLAN_SPACE, pool)
    const plan = note === null ? null : parse(note.value)
    if (note === null || plan === null) return null
    const nowMs = this.#runtime.clock.monoMs()
    let seen = this.#seen.get(pool)
    if (seen?.version !== note.version) {
      const agoMs = seen === undefined ? Math.max(0, (await storeNowMs(this.#store)) - plan.decidedAtMs) : 0
      seen = { version: note.version, sinceMs: nowMs - agoMs }
      this.#seen.set(pool, seen)
    }
    return nowMs - seen.sinceMs > DEFAULTS.planStaleMs ? null : plan
  }
}

function parse(text: string): ScalingPlan | null {
  try {
    const plan = JSON.parse(text) as ScalingPlan // as far as it is used, checked here and where the share is taken
    return typeof plan === 'object' && plan !== null && typeof plan.shares === 'object' && plan.shares !== null
      ? plan
      : null
  } catch {
    return null
  }
}
