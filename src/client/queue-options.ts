// What a user may say about a queue, checked and turned into the record that the store keeps.
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { parsePriority } from '../core/priority.ts'
import type { LaneBounds, Priority } from '../core/priority.ts'
import { rateLimit } from '../core/rate.ts'
import type { RateLimitOptions } from '../core/rate.ts'
import { checkRetryPolicy } from '../core/retry.ts'
import type { RetryPolicyRecord } from '../core/retry.ts'
import { defaultQueue } from '../store/queue-defaults.ts'
import type { QueueChange, QueueLimits, QueueRetention, QueueSettings } from '../store/queue-store.ts'

export interface QueueOptions {
  /** Of jobs that name none. */
  readonly priority?: Priority
  readonly attempts?: number
  /** Of jobs whose kind has no policy of its own; null: the default of the system. */
  readonly retry?: RetryPolicyRecord | null
  /** How many jobs of this queue run at once, on all workers together; null: no limit. */
  readonly concurrency?: number | null
  readonly rate?: RateLimitOptions | null
  /** The same per `limitKey`. */
  readonly perKey?: { readonly concurrency?: number | null; readonly rate?: RateLimitOptions | null }
  /** How long finished jobs are kept; null: the default of the system. */
  readonly retention?: {
    readonly completed?: Duration | null
    readonly failed?: Duration | null
    readonly cancelled?: Duration | null
  }
  /** 1 of this many starts goes to a waiting lower lane; 0: strict priority. */
  readonly lowerLaneShare?: number
  /** Highest priority number of the high and of the normal lane. */
  readonly lanes?: LaneBounds
}

/** A queue as `createMillrace` declares it. */
export interface DeclaredQueue extends QueueOptions {
  readonly connection?: string
}

const OPTIONS = [
  'priority',
  'attempts',
  'retry',
  'concurrency',
  'rate',
  'perKey',
  'retention',
  'lowerLaneShare',
  'lanes',
] as const satisfies readonly (keyof QueueOptions)[]

const LOWER_LANE_SHARE_MAX = 1_000

/** The fields that were given, and only those. `known` supplies the other half of limits and retention. */
export function checkQueueOptions(
  options: QueueOptions,
  what: string,
  known: { readonly limits: QueueLimits; readonly retention: QueueRetention } = defaultQueue(''),
): QueueChange {
  checkKnownOptions(options, OPTIONS, what)
  const { priority, attempts, retry, lowerLaneShare, lanes } = options
  // A policy may say how often; `attempts` of its own goes first.
  const tries = attempts ?? retry?.attempts
  const limited = options.concurrency !== undefined || options.rate !== undefined || options.perKey !== undefined
  return {
    ...(priority !== undefined && { defaultPriority: parsePriority(priority) }),
    ...(tries !== undefined && { defaultAttempts: checkInteger(tries, 'attempts', 1, LIMITS.attemptsMax) }),
    ...(retry !== undefined && { retry: checkRetry(retry) }),
    ...(limited && { limits: limitsOf(options, known.limits) }),
    ...(options.retention !== undefined && { retention: retentionOf(options.retention, known.retention) }),
    ...(lowerLaneShare !== undefined && {
      lowerLaneShare: checkShare(lowerLaneShare),
    }),
    ...(lanes !== undefined && { lanes: checkLanes(lanes) }),
  }
}

/** The full record of a queue that is declared or used for the first time. */
export function queueSettings(name: string, declared: DeclaredQueue = {}): QueueSettings {
  const { connection: _, ...options } = declared
  return { ...defaultQueue(checkName(name, 'queue')), ...checkQueueOptions(options, `queue ${name}`) }
}

function checkRetry(retry: RetryPolicyRecord | null): RetryPolicyRecord | null {
  if (retry === null) return null
  const accepted = 'made by exponential(), linear() or fixed(): a function cannot be stored'
  if ((retry as { readonly kind?: unknown }).kind === 'custom') throw invalidOption('retry', retry, accepted)
  // Without custom ones a policy is a record.
  return checkRetryPolicy(retry) as RetryPolicyRecord
}

// With three lanes a share of 1 or 2 would leave nothing for the high one.
function checkShare(share: number): number {
  if (checkInteger(share, 'lowerLaneShare', 0, LOWER_LANE_SHARE_MAX) === 1 || share === 2) {
    throw invalidOption('lowerLaneShare', share, '0 (strict priority), or 3 and more')
  }
  return share
}

function limitsOf({ concurrency, rate, perKey = {} }: QueueOptions, known: QueueLimits): QueueLimits {
  checkKnownOptions(perKey, ['concurrency', 'rate'], 'perKey')
  return {
    concurrency: concurrency === undefined ? known.concurrency : checkConcurrency(concurrency, 'concurrency'),
    rate: rate === undefined ? known.rate : checkRate(rate),
    perKeyConcurrency:
      perKey.concurrency === undefined
        ? known.perKeyConcurrency
        : checkConcurrency(perKey.concurrency, 'perKey.concurrency'),
    perKeyRate: perKey.rate === undefined ? known.perKeyRate : checkRate(perKey.rate),
  }
}

function checkConcurrency(value: number | null, what: string): number | null {
  return value === null ? null : checkInteger(value, what, 1, LIMITS.concurrencyMax)
}

function checkRate(rate: RateLimitOptions | null): QueueLimits['rate'] {
  return rate === null ? null : rateLimit(rate)
}

function retentionOf(options: NonNullable<QueueOptions['retention']>, known: QueueRetention): QueueRetention {
  checkKnownOptions(options, ['completed', 'failed', 'cancelled'], 'retention')
  const keep = (status: 'completed' | 'failed' | 'cancelled', before: number | null): number | null => {
    const value = options[status]
    if (value === undefined) return before
    return value === null ? null : parseDuration(value, `retention.${status}`)
  }
  return {
    completedMs: keep('completed', known.completedMs),
    failedMs: keep('failed', known.failedMs),
    cancelledMs: keep('cancelled', known.cancelledMs),
  }
}

function checkLanes(lanes: LaneBounds): LaneBounds {
  if (!Array.isArray(lanes) || lanes.length !== 2) throw invalidOption('lanes', lanes, '[highMax, normalMax]')
  const highMax = checkInteger(lanes[0], 'lanes[0]', 0, LIMITS.priorityMax - 1)
  return [highMax, checkInteger(lanes[1], 'lanes[1]', highMax + 1, LIMITS.priorityMax)]
}
