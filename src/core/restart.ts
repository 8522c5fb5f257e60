// When a process of a pool is started anew, and how soon. The supervisor watches and acts; here is decided.
import { DEFAULTS } from './limits.ts'

export interface Death {
  readonly livedMs: number
  /** It had begun to work. */
  readonly wasReady: boolean
  /** Ended by a signal that a process does not send itself: SIGKILL or SIGTERM. */
  readonly wasKilled: boolean
  /** Of its pool in the last minute, this one included. */
  readonly killsLately: number
  /** Nobody was started in its place after it: how it did says how the next one will do. */
  readonly isLatest: boolean
}

/** How often and how soon; of a pool. */
export interface RestartTerms {
  readonly delayMinMs: number
  readonly delayMaxMs: number
  /** Who lived shorter than this has failed to start. */
  readonly stableAfterMs: number
  /** So many short lives in one place, one after the other. */
  readonly crashLoopAfter: number
}

export const RESTART_TERMS: RestartTerms = {
  delayMinMs: DEFAULTS.restartMinMs,
  delayMaxMs: DEFAULTS.restartMaxMs,
  stableAfterMs: DEFAULTS.stableAfterMs,
  crashLoopAfter: DEFAULTS.crashLoopAfter,
}

export interface Restart {
  readonly delayMs: number
  /** One after the other, in this place of the pool. */
  readonly shortLives: number
  readonly isCrashLoop: boolean
}

export const KILLS_WINDOW_MS = 60_000
/** More than this in a window is no operator and no test: it is treated as a crash. */
const KILLS_MAX = 40

/**
 * The first restart is at once. When one short life follows another the waits double, from a second to a minute. Who was
 * killed from outside while it worked did nothing wrong: its place is filled at once, though it counts as a short life.
 * The long life of one that was there before others failed to start makes good for nobody.
 */
export function decideRestart(shortLivesBefore: number, death: Death, terms: RestartTerms = RESTART_TERMS): Restart {
  const isShort = !death.wasReady || death.livedMs < terms.stableAfterMs
  const shortLives = isShort ? shortLivesBefore + 1 : death.isLatest ? 0 : shortLivesBefore
  const isCrashLoop = shortLives >= terms.crashLoopAfter
  const isInnocent = death.wasKilled && death.wasReady && death.killsLately <= KILLS_MAX
  const delayMs = isInnocent || shortLives <= 1 ? 0 : backoffMs(shortLives - 2, terms)
  return { delayMs, shortLives, isCrashLoop }
}

function backoffMs(doublings: number, { delayMinMs, delayMaxMs }: RestartTerms): number {
  return Math.min(delayMaxMs, delayMinMs * 2 ** Math.min(doublings, 16))
}

export interface RecycleLimits {
  readonly memoryBytes: number
  readonly maxJobs: number
  /** Of this very process, jittered. */
  readonly maxAgeMs: number
}

export type RecycleReason = 'memory' | 'max-jobs' | 'max-age'

/** Has it had its time? Memory goes first: it is the one that hurts others. */
export function decideRecycle(
  seen: { readonly rssBytes: number; readonly processed: number; readonly ageMs: number },
  limits: RecycleLimits,
): RecycleReason | null {
  if (seen.rssBytes > limits.memoryBytes) return 'memory'
  if (seen.processed >= limits.maxJobs) return 'max-jobs'
  return seen.ageMs >= limits.maxAgeMs ? 'max-age' : null
}

const AGE_JITTER = 0.2

/** Up to a fifth earlier, so that processes that were born together do not leave together. */
export function ownMaxAgeMs(maxAgeMs: number, random: () => number): number {
  return maxAgeMs === Infinity ? Infinity : Math.round(maxAgeMs * (1 - AGE_JITTER * random()))
}

/** How many of a pool may be leaving at the same time: the others must carry at least 70 % of its work. */
export function leavingMax(processes: number): number {
  return Math.max(1, Math.floor(processes * 0.3))
}

export type HealthVerdict = 'ok' | 'unhealthy' | 'end'

export interface HealthTimes {
  readonly healthCheckMs: number
  readonly unresponsiveMs: number
  readonly startTimeoutMs: number
}

const CHECKS_MISSED = 3

/** A process that is silent is shown as unhealthy soon, and ended only after a time that no busy handler takes. */
export function decideHealth(
  seen: { readonly isReady: boolean; readonly startingMs: number; readonly silentMs: number },
  times: HealthTimes,
): HealthVerdict {
  if (!seen.isReady) return seen.startingMs > times.startTimeoutMs ? 'end' : 'ok'
  if (seen.silentMs > times.unresponsiveMs) return 'end'
  const patienceMs = Math.min(CHECKS_MISSED * times.healthCheckMs, times.unresponsiveMs)
  return seen.silentMs > patienceMs ? 'unhealthy' : 'ok'
}

export interface ScalingShares {
  readonly shares: Readonly<Record<string, number>>
}

/** What the plan wants of this supervisor, within the bounds of its pool; null: keep what is there. */
export function ownShare(
  plan: ScalingShares | null,
  supervisor: string,
  bounds: { readonly min: number; readonly max: number },
): number | null {
  const share = plan !== null && Object.hasOwn(plan.shares, supervisor) ? plan.shares[supervisor] : undefined
  if (share === undefined || !Number.isSafeInteger(share)) return null
  return Math.min(bounds.max, Math.max(bounds.min, share))
}

/** The handlers are told to stop this long before the end, so that what they give back has been written by then. */
const GIVE_BACK_MS = 2_000

/** How long running jobs may go on when everything must be over after `deadlineMs`. */
export function jobsDeadlineMs(deadlineMs: number): number {
  return Math.max(deadlineMs - GIVE_BACK_MS, Math.round(deadlineMs * 0.4))
}
