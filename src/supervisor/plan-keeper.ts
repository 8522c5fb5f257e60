// The plans of one leader, under compare-and-set. On taking the lead every plan is written once more with the new
// term; from then on whatever an older leader still has under way meets a version that it does not know and is refused.
// Whoever meets a plan with a higher term has been relieved and writes nothing.
import { SCALING } from '../core/limits.ts'
import type { ScaleStep } from '../core/scaling.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { NoteStore } from '../store/note-store.ts'
import { readScalingHistory, trimHistory, writeEvent } from './scaling-history.ts'
import { RECENT_MAX, readPlan, readPlans } from './plan-notes.ts'
import type { PlanNote, ScaleEvent, StoredPlan } from './plan-notes.ts'
import { PLAN_SPACE } from './scaling-plan.ts'
import type { StoreTime } from './store-time.ts'

const HISTORY_READ = 200
const HISTORY_READ_MS = 60 * 60_000
const TRIM_EVERY = 100

export interface PlanKeeperOptions {
  readonly notes: NoteStore
  readonly runtime: Pick<Runtime, 'clock' | 'logger'>
  readonly time: StoreTime
  readonly term: number
  readonly leaderTtlMs: number
}

/** What is to stand in a plan; the rest is the keeper's. */
export interface PlanChange {
  readonly pool: string
  readonly total: number
  readonly shares: Readonly<Record<string, number>>
  readonly reasons: readonly string[]
  readonly event: ScaleEvent | null
}

export class PlanKeeper {
  readonly #options: PlanKeeperOptions
  readonly #sinceMs: number
  readonly #plans = new Map<string, StoredPlan>()
  readonly #steps = new Map<string, readonly ScaleStep[]>()
  /** Events that may not be in the history yet. */
  readonly #unwritten = new Map<string, ScaleEvent>()
  #written = 0

  private constructor(options: PlanKeeperOptions) {
    this.#options = options
    this.#sinceMs = options.runtime.clock.monoMs()
  }

  /** Reads what earlier leaders left, and closes the door behind them. */
  static async takeOver(options: PlanKeeperOptions): Promise<PlanKeeper> {
    const { notes, time } = options
    const keeper = new PlanKeeper(options)
    // For pools whose plan is gone; those that have one bring their steps along.
    const nowMs = time.nowMs()
    const events = await readScalingHistory(notes, { limit: HISTORY_READ, nowMs, sinceMs: nowMs - HISTORY_READ_MS })
    for (const { pool, action, atMs } of events.toReversed()) keeper.#addStep(pool, { action, atMs })
    for (const stored of await readPlans(notes, SCALING.poolsMax)) {
      keeper.#learn(stored)
      await keeper.#write({ ...stored.plan, term: options.term })
    }
    return keeper
  }

  get(pool: string): PlanNote | null {
    return this.#plans.get(pool)?.plan ?? null
  }

  /** What was done to this pool, oldest first, none of it in the future. */
  steps(pool: string): readonly ScaleStep[] {
    return this.#steps.get(pool) ?? []
  }

  /** False: somebody else wrote meanwhile; decide again with what is there now. */
  async save(change: PlanChange): Promise<boolean> {
    const { event, ...decided } = change
    const { term, time } = this.#options
    const before = this.get(change.pool)
    const recent = [...(before?.recent ?? []), ...(event === null ? [] : [event])].slice(-RECENT_MAX)
    const done = await this.#write({ ...decided, recent, decidedAtMs: time.nowMs(), term })
    if (done && event !== null) {
      this.#addStep(event.pool, event)
      this.#unwritten.set(event.id, event)
    }
    return done
  }

  /** Brings the steps of the plans into the history; what fails is tried again with the next call. */
  async flush(): Promise<void> {
    const { notes } = this.#options
    for (const event of this.#unwritten.values()) {
      await writeEvent(notes, event)
      this.#unwritten.delete(event.id)
      if (this.#written % TRIM_EVERY === 0) await trimHistory(notes)
      this.#written += 1
    }
  }

  async #write(plan: PlanNote): Promise<boolean> {
    const { notes, runtime } = this.#options
    const before = this.#plans.get(plan.pool)
    if (before !== undefined && before.plan.term > plan.term && !this.#isUndisputed()) {
      runtime.logger.info({ pool: plan.pool, term: plan.term }, 'a newer leader has planned this pool')
      return false
    }
    const value = { ...plan, term: Math.max(plan.term, before?.plan.term ?? 0) }
    const version = await notes.put({
      space: PLAN_SPACE,
      key: plan.pool,
      value: JSON.stringify(value),
      expectVersion: before?.version ?? 0,
      ttlMs: SCALING.planLifeMs,
    })
    if (version !== null) {
      this.#plans.set(plan.pool, { plan: value, version })
      return true
    }
    // Somebody wrote, perhaps this very process with a call whose reply was lost.
    this.#plans.delete(plan.pool)
    const found = await readPlan(notes, plan.pool)
    if (found !== null) this.#learn(found)
    return false
  }

  /** Held for so long that nobody else can still believe to lead: a higher term is left over from a store that lost its terms. */
  #isUndisputed(): boolean {
    const { runtime, leaderTtlMs } = this.#options
    return runtime.clock.monoMs() - this.#sinceMs > leaderTtlMs
  }

  #learn(stored: StoredPlan): void {
    this.#plans.set(stored.plan.pool, stored)
    for (const event of stored.plan.recent) {
      this.#unwritten.set(event.id, event)
      this.#addStep(stored.plan.pool, event)
    }
  }

  /** One from the future, after a clock was set back, counts as done now: the cooldown begins again, once. */
  #addStep(pool: string, { action, atMs }: ScaleStep): void {
    const step = { action, atMs: Math.min(atMs, this.#options.time.nowMs()) }
    const steps = [...this.steps(pool), step].sort((one, other) => one.atMs - other.atMs)
    this.#steps.set(pool, steps.slice(-RECENT_MAX))
  }
}
