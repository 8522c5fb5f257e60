// Retention: finished jobs beyond their age, what is left of them, expired notes. Bounded work per pass.
import { FINAL_STATUSES } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { JobStore, PruneRule, RetainReply } from '../store/ports.ts'
import type { QueueRecord } from '../store/queue-store.ts'
import type { MaintenanceOptions } from './options.ts'
import { checkRetention } from './retention-options.ts'
import type { RetentionPeriods } from './retention-options.ts'

const PERIOD_MS = 60_000
/** Between two steps of a long clean-up, and after one that met somebody in its way. */
const WAIT_MS: Readonly<Record<RetainReply['next'], number>> = { now: 0, soon: PERIOD_MS / 10, later: PERIOD_MS }
/** So often in a row it may be put off without a word: ten minutes. */
const PUT_OFF_MAX = 100

export function createPruner(options: MaintenanceOptions, isLeading: () => boolean): Service {
  const { runtime, backend, retention = checkRetention() } = options
  let putOff = 0

  async function pass(): Promise<number> {
    if (!isLeading()) return PERIOD_MS / 10
    const rules = pruneRules(await backend.queues.list(), retention)
    const { next } = await retainPass(backend.jobs, rules, retention)
    putOff = next === 'soon' ? putOff + 1 : 0
    if (putOff > 0 && putOff % PUT_OFF_MAX === 0) {
      runtime.logger.warn({ passes: putOff }, 'retention is put off: a long transaction uses the tables of jobs')
    }
    const notes = await backend.notes.prune(LIMITS.maintenanceBatchMax)
    return notes >= LIMITS.maintenanceBatchMax ? 0 : WAIT_MS[next]
  }

  return createLoop({ name: 'pruner', runtime, pass })
}

/** One bounded pass of what the store can do. */
export async function retainPass(
  jobs: JobStore,
  rules: readonly PruneRule[],
  retention: RetentionPeriods,
): Promise<RetainReply> {
  const limit = LIMITS.maintenanceBatchMax
  if (jobs.retain !== undefined) {
    const { archiveMs, logsMs, partitionMs } = retention
    return await jobs.retain({ rules, archiveMs, logsMs, partitionMs }, limit)
  }
  const deleted = await jobs.prune(rules, limit)
  return { deleted, next: deleted >= limit ? 'now' : 'later' }
}

/** One rule per status for everybody, and one for each queue that says otherwise. */
export function pruneRules(
  queues: readonly Pick<QueueRecord, 'name' | 'retention'>[],
  system: Pick<RetentionPeriods, 'completedMs' | 'failedMs' | 'cancelledMs'> = checkRetention(),
): readonly PruneRule[] {
  return [{ retention: system }, ...queues].flatMap((queue) => {
    const { completedMs, failedMs, cancelledMs } = queue.retention
    const ages = { completed: completedMs, failed: failedMs, cancelled: cancelledMs }
    return FINAL_STATUSES.flatMap((status): readonly PruneRule[] => {
      const olderThanMs = ages[status]
      if (olderThanMs === null) return []
      return [{ ...('name' in queue && { queue: queue.name }), status, olderThanMs }]
    })
  })
}
