// Retention: finished jobs beyond their age, expired notes. Bounded work per pass.
import { FINAL_STATUSES } from '../core/job.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { PruneRule } from '../store/ports.ts'
import type { QueueRecord } from '../store/queue-store.ts'
import type { MaintenanceOptions } from './options.ts'

const PERIOD_MS = 60_000

export function createPruner(options: MaintenanceOptions, isLeading: () => boolean): Service {
  const { runtime, backend } = options

  async function pass(): Promise<number> {
    if (!isLeading()) return PERIOD_MS / 10
    const queues = await backend.queues.list()
    const prune = backend.jobs.prune(pruneRules(queues), LIMITS.maintenanceBatchMax)
    const jobs = await prune
    const notes = await backend.notes.prune(LIMITS.maintenanceBatchMax)
    return jobs >= LIMITS.maintenanceBatchMax || notes >= LIMITS.maintenanceBatchMax ? 0 : PERIOD_MS
  }

  return createLoop({ name: 'pruner', runtime, pass })
}

/** One rule per status for everybody, and one for each queue that says otherwise. */
export function pruneRules(queues: readonly Pick<QueueRecord, 'name' | 'retention'>[]): readonly PruneRule[] {
  const rules: PruneRule[] = FINAL_STATUSES.map((status) => ({ status, olderThanMs: DEFAULTS.retentionFinishedMs }))
  for (const { name, retention } of queues) {
    const ages = { completed: retention.completedMs, failed: retention.failedMs, cancelled: retention.cancelledMs }
    for (const status of FINAL_STATUSES) {
      const olderThanMs = ages[status]
      if (olderThanMs !== null) rules.push({ queue: name, status, olderThanMs })
    }
  }
  return rules
}
