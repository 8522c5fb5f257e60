// Pause and shares are PostgreSQL's; Redis is told of a change by whoever made it and, should that be lost, by the leader.
import type { Hybrid } from './hybrid.ts'
import type { DispatchRow } from './ports.ts'

/** What Redis is known to have been told, per queue. */
export class ConfigSync {
  readonly #hybrid: Hybrid
  readonly #told = new Map<string, string>()

  constructor(hybrid: Hybrid) {
    this.#hybrid = hybrid
  }

  /** Throws when the outcome is unknown. */
  async tell(row: DispatchRow): Promise<void> {
    const { calls, view } = this.#hybrid
    const { queue, paused, configVersion: version, lowerLaneShare } = row
    const tag = view.tag(queue)
    if (tag === null) return
    const what = `${tag} ${version}`
    if (this.#told.get(queue) === what) return
    const reply = await calls.gated(queue, tag, (race) => race.config(queue, tag, { version, paused, lowerLaneShare }))
    if (reply !== undefined) this.#told.set(queue, what)
  }

  /** Right after a change: as soon as can be, and without making anybody wait for a Redis that is gone. */
  async changed(queue: string): Promise<void> {
    const { epochs, view, runtime } = this.#hybrid
    try {
      await epochs.refresh([queue])
      const row = view.row(queue)
      if (row !== undefined) await this.tell(row)
    } catch (error) {
      runtime.logger.warn({ queue, error }, 'Redis was not told yet of a change of the queue')
    }
  }
}
