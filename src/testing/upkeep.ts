// The maintenance of one connection, step by step: ticks of schedules, delays and retries whose time has
// come, jobs that lost their worker or their parent, retention. The services are the real ones.
import type { MaintenanceOptions } from '../maintenance/options.ts'
import { createPromoter } from '../maintenance/promoter.ts'
import { createPruner } from '../maintenance/pruner.ts'
import { createRescuer } from '../maintenance/rescuer.ts'
import { createScheduler } from '../maintenance/scheduler.ts'
import type { World } from '../backends/memory/world.ts'
import type { Service } from '../runtime/service.ts'
import type { DueKind } from '../store/ports.ts'
import { Crank } from './crank.ts'

const DUE_KINDS: readonly DueKind[] = ['expired', 'orphaned', 'batch-cancelled']
/** Each round settles one generation of children; no family is older than this. */
const ROUNDS_MAX = 10_000

export class Upkeep {
  readonly #options: MaintenanceOptions
  readonly #world: World
  readonly #scheduler: Crank
  readonly #promoter: Crank
  readonly #rescuer: Crank
  readonly #pruner: Crank

  constructor(options: MaintenanceOptions, world: World) {
    this.#options = options
    this.#world = world
    const crank = (create: (options: MaintenanceOptions, isLeading: () => boolean) => Service): Crank =>
      new Crank(options.runtime, (runtime) => create({ ...options, runtime }, () => true))
    this.#scheduler = crank(createScheduler)
    this.#promoter = crank(createPromoter)
    this.#rescuer = crank(createRescuer)
    this.#pruner = crank(createPruner)
  }

  /** Everything that is due at this moment. */
  async catchUp(): Promise<void> {
    await this.#scheduler.turn()
    await this.#promoter.turn()
    for (let round = 0; round < ROUNDS_MAX; round++) {
      await this.#rescuer.turn()
      if (!(await this.#hasDue())) return
    }
  }

  prune(): Promise<void> {
    return this.#pruner.turn()
  }

  async stop(): Promise<void> {
    await Promise.all([this.#scheduler, this.#promoter, this.#rescuer, this.#pruner].map((crank) => crank.stop()))
  }

  /** The next moment after this one; Infinity: nothing is planned. */
  nextDueMs(afterMs: number): number {
    const { scheduled, visibility, schedules } = this.#world
    const heads = [scheduled.first()?.heapKeyMs, visibility.first()?.heapKeyMs]
    const ticks = [...schedules.values()].map(({ enabled, nextRunMs }) => (enabled ? nextRunMs : null))
    const dueMs = [...heads, ...ticks].filter((ms): ms is number => typeof ms === 'number' && ms > afterMs)
    return Math.min(...dueMs, Infinity)
  }

  async #hasDue(): Promise<boolean> {
    for (const kind of DUE_KINDS) if ((await this.#options.backend.jobs.due(kind, 1)).length > 0) return true
    return false
  }
}
