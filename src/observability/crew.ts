// Who works: which of the registered workers live, and what they can do together.
import { isLive } from '../core/liveness.ts'
import type { WorkerRecord } from '../store/worker-store.ts'

export interface SeenWorker extends WorkerRecord {
  readonly connection: string
}

export interface Crew {
  readonly alive: number
  /** Not declared dead, and without a heartbeat for too long. */
  readonly silent: number
  readonly slots: number
  readonly running: number
}

export function crewOf(workers: readonly WorkerRecord[], nowMs: number): Crew {
  const live = workers.filter((worker) => isLive(worker, nowMs))
  return {
    alive: live.length,
    silent: workers.filter((worker) => worker.state === 'alive').length - live.length,
    slots: live.reduce((sum, { concurrency }) => sum + concurrency, 0),
    running: live.reduce((sum, { running }) => sum + running, 0),
  }
}
