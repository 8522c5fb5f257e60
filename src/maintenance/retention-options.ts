// How long the system keeps what, checked and with the defaults filled in; queues may say otherwise (queue-options.ts).
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { checkKnownOptions } from '../core/names.ts'
import type { DefaultRetention } from '../store/ports.ts'

export interface RetentionOptions {
  /** Finished jobs, from their end. Default 30 days, failed ones a year; in Redis an hour and 7 days. */
  readonly completed?: Duration
  readonly failed?: Duration
  readonly cancelled?: Duration
  /** Completed and cancelled jobs can be read this long after their end; null: not at all. Default 6 months. */
  readonly archive?: Duration | null
  /** Attempts and log lines; after that a sum per day is left. Default 90 days. */
  readonly logs?: Duration
  /** Time that goes at once, where a store keeps jobs by time. Default 7 days. */
  readonly partition?: Duration
}

export interface RetentionPeriods {
  readonly completedMs: number
  readonly failedMs: number
  readonly cancelledMs: number
  readonly archiveMs: number | null
  readonly logsMs: number
  readonly partitionMs: number
}

const OPTIONS = [
  'completed',
  'failed',
  'cancelled',
  'archive',
  'logs',
  'partition',
] as const satisfies readonly (keyof RetentionOptions)[]

const HOUR_MS = 60 * 60_000

const OF_THE_SYSTEM: DefaultRetention = {
  finishedMs: DEFAULTS.retentionFinishedMs,
  failedMs: DEFAULTS.retentionFailedMs,
}

/** What nobody says is decided by the store, or else by the system. */
export function checkRetention(
  options: RetentionOptions = {},
  { finishedMs, failedMs } = OF_THE_SYSTEM,
): RetentionPeriods {
  checkKnownOptions(options, OPTIONS, 'retention')
  const { archive = DEFAULTS.retentionArchiveMs } = options
  const period = (name: 'completed' | 'failed' | 'cancelled' | 'logs', otherwise: number): number =>
    parseDuration(options[name] ?? otherwise, `retention.${name}`)
  return {
    completedMs: period('completed', finishedMs),
    failedMs: period('failed', failedMs),
    cancelledMs: period('cancelled', finishedMs),
    archiveMs: archive === null ? null : parseDuration(archive, 'retention.archive'),
    logsMs: period('logs', DEFAULTS.retentionLogsMs),
    partitionMs: parseDuration(options.partition ?? DEFAULTS.retentionPartitionMs, 'retention.partition', {
      minMs: HOUR_MS,
      maxMs: 366 * 24 * HOUR_MS,
    }),
  }
}
