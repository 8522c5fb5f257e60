// The settings of a queue nobody configured.
import { DEFAULTS } from '../core/limits.ts'
import { DEFAULT_LANES } from '../core/priority.ts'
import type { QueueSettings } from './queue-store.ts'

export function defaultQueue(name: string): QueueSettings {
  return {
    name,
    defaultPriority: DEFAULTS.priority,
    defaultAttempts: DEFAULTS.attempts,
    retry: null,
    limits: { concurrency: null, rate: null, perKeyConcurrency: null, perKeyRate: null },
    retention: { completedMs: null, failedMs: null, cancelledMs: null },
    lowerLaneShare: DEFAULTS.lowerLaneShare,
    lanes: DEFAULT_LANES,
  }
}
