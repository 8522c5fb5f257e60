// How long the system keeps what, checked and with the defaults filled in; queues may say otherwise (queue-options.ts).
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { checkKnownOptions } from '../core/names.ts'

export interface RetentionOptions {
  /** Finished jobs, from their end. Default 30 days, failed ones a year. */
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

export function checkRetention(options: RetentionOptions = {}): RetentionPeriods {
  checkKnownOptions(options, OPTIONS, 'retention')
  const { archive = DEFAULTS.retentionArchiveMs } = options
  const period = (name: 'completed' | 'failed' | 'cancelled' | 'logs', otherwise: number): number =>
    parseDuration(options[name] ?? otherwise, `retention.${name}`)
  return {
    completedMs: period('completed', DEFAULTS.retentionFinishedMs),
    failedMs: period('failed', DEFAULTS.retentionFailedMs),
    cancelledMs: period('cancelled', DEFAULTS.retentionFinishedMs),
    archiveMs: archive === null ? null : parseDuration(archive, 'retention.archive'),
    logsMs: period('logs', DEFAULTS.retentionLogsMs),
    partitionMs: parseDuration(options.partition ?? DEFAULTS.retentionPartitionMs, 'retention.partition', {
      minMs: HOUR_MS,
      maxMs: 366 * 24 * HOUR_MS,
    }),
  }
}
