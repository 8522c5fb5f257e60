// Tells the store that a process is gone, so that its jobs start elsewhere now and not when its heartbeats have been missed
// for a whole ttl. Only after the exit of that very process was reported, and only the lives that it named itself: an id is
// never used again, so nobody else can be meant.
import type { WorkerId } from '../core/job.ts'
import { bounded } from '../runtime/bounded.ts'
import { sleep } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'

const TRIES = 5
const WAIT_MS = 500
const CALL_MS = 2_000

export class Obituaries {
  readonly #runtime: Runtime
  readonly #backends: readonly Pick<Backend, 'workers'>[]
  readonly #underWay = new Set<Promise<void>>()

  constructor(runtime: Runtime, backends: readonly Pick<Backend, 'workers'>[]) {
    this.#runtime = runtime
    this.#backends = backends
  }

  tell(workerIds: readonly string[]): void {
    for (const id of workerIds) {
      const telling = this.#tell(id as WorkerId) // as the child named it
      this.#underWay.add(telling)
      void telling.finally(() => this.#underWay.delete(telling))
    }
  }

  /** Until all that was to be told is told, or given up. */
  async told(): Promise<void> {
    await Promise.all(this.#underWay)
  }

  async #tell(id: WorkerId): Promise<void> {
    const { clock, logger } = this.#runtime
    for (let trial = 1; trial <= TRIES; trial++) {
      try {
        // Which of the connections it was registered on is not said; the others do not know it and do nothing.
        const calls = this.#backends.map(({ workers }) => bounded(clock, CALL_MS, 'an obituary', workers.retire(id)))
        await Promise.all(calls)
        return
      } catch (error) {
        if (trial < TRIES) await sleep(clock, WAIT_MS * trial)
        else logger.warn({ worker: id, error }, 'the store was not told of a dead worker; it will miss its heartbeats')
      }
    }
  }
}
