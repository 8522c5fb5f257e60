// Moves scheduled jobs to ready when their time has come, in bounded batches. Wakes for the next due time.
import { LIMITS } from '../core/limits.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import { SCHEDULED_TOPIC } from '../store/wakeups.ts'
import type { MaintenanceOptions } from './options.ts'

export function createPromoter(options: MaintenanceOptions, isLeading: () => boolean): Service {
  const { runtime, backend, periodMs } = options
  let stopListening: (() => void) | undefined

  async function pass(): Promise<number> {
    if (!isLeading()) return periodMs
    const call = backend.jobs.promote(LIMITS.maintenanceBatchMax)
    const { promoted, nextDueInMs } = await call
    runtime.failpoint('promoter.after-pass')
    if (promoted >= LIMITS.maintenanceBatchMax) return 0
    return nextDueInMs === null ? periodMs : Math.min(Math.ceil(nextDueInMs), periodMs)
  }

  const loop = createLoop({ name: 'promoter', runtime, pass })
  return {
    start() {
      // A new job may be due before the pass that is planned.
      stopListening = backend.wakeups.listen([SCHEDULED_TOPIC], () => loop.wake())
      return loop.start()
    },
    async stop() {
      stopListening?.()
      await loop.stop()
    },
  }
}
