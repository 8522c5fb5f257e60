// One pass of the scheduler over one schedule, as a pure decision: which ticks become jobs now and
// when to look again. The store makes each (schedule, tick) unique, so two schedulers that decide the
// same are harmless. Whether an overlapping run is skipped is asked at enqueue, where runs are known.

import { lastTicksBetween, nextTickMs, type Recurrence } from './cron.ts'
import { LIMITS } from './limits.ts'

/** What becomes of ticks that nobody fired in time: drop them, one job for all, or the last n. */
export type MisfirePolicy = 'skip' | 'fire-once' | { readonly catchUp: number }

/** May a tick fire while a job of an earlier tick is not finished? */
export type OverlapPolicy = 'allow' | 'skip'

export interface ScheduleClock {
  readonly recurrence: Recurrence
  /** Null: it will not fire again. */
  readonly nextRunMs: number | null
  readonly lastRunMs: number | null
}

/**
 * A tick this late is still on time. Long enough for a new leader (10 s), a restart of the store
 * or a rolling deployment; short enough that a minutely schedule has at most one such tick.
 */
export const MISFIRE_GRACE_MS = 60_000

/** An interval that never ran starts at once (or at an anchor still to come); cron waits for its tick. */
export function firstRunMs(recurrence: Recurrence, nowMs: number): number {
  if (recurrence.kind === 'every') return Math.max(nowMs, recurrence.anchorMs)
  // A valid expression always has a next tick before the year 9999.
  return nextTickMs(recurrence, nowMs) ?? Number.MAX_SAFE_INTEGER
}

export interface TickInput {
  readonly recurrence: Recurrence
  /** The stored next tick. It counts as a tick even when the recurrence has changed since. */
  readonly dueMs: number
  readonly nowMs: number
  readonly misfire: MisfirePolicy
  /** Default MISFIRE_GRACE_MS. */
  readonly graceMs?: number
}

export interface TickDecision {
  /** The ticks to fire now, oldest first; never more than 2 * LIMITS.catchUpMax. */
  readonly ticks: readonly number[]
  /** How many ticks were too late to be on time, fired or not. For cron the count stops at LIMITS.catchUpMax + 1. */
  readonly missed: number
  /** Strictly after now and after every tick so far. Null: it will not fire again. */
  readonly nextRunMs: number | null
}

/**
 * Only the newest tick can be on time; whatever came before it was missed. So a short interval after a stall of a
 * few seconds is judged by its policy, and does not fire a burst.
 */
export function decideTicks({ recurrence, dueMs, nowMs, misfire, graceMs }: TickInput): TickDecision {
  // Also when the clock was set back: the stored next tick is ahead, and nothing fires twice.
  if (dueMs > nowMs) return { ticks: [], missed: 0, nextRunMs: dueMs }
  const due = dueTicks(recurrence, dueMs, dueMs, nowMs, LIMITS.catchUpMax)
  const newestMs = due.ticks.at(-1) ?? dueMs
  const isOnTime = newestMs > nowMs - (graceMs ?? MISFIRE_GRACE_MS)
  const missed = due.count - (isOnTime ? 1 : 0)
  return { ticks: due.ticks.slice(-firedMax(misfire, isOnTime)), missed, nextRunMs: nextTickMs(recurrence, nowMs) }
}

/** How many of the newest ticks fire. At least one is due, so a count of 0 must not become "all". */
function firedMax(misfire: MisfirePolicy, isOnTime: boolean): number {
  if (misfire === 'fire-once') return 1
  const late = misfire === 'skip' ? 0 : Math.min(Math.max(0, misfire.catchUp), LIMITS.catchUpMax)
  return late + (isOnTime ? 1 : 0) || -Infinity
}

/** The last `max` of the ticks t with fromMs <= t <= untilMs, and their number; `dueMs` is one of them. */
function dueTicks(recurrence: Recurrence, dueMs: number, fromMs: number, untilMs: number, max: number) {
  if (untilMs < fromMs) return { ticks: [], count: 0 }
  const startsAtDue = fromMs === dueMs
  const later = lastTicksBetween(recurrence, startsAtDue ? dueMs : fromMs - 1, untilMs, max)
  if (!startsAtDue) return later
  const ticks = later.ticks.length < max ? [dueMs, ...later.ticks] : later.ticks
  return { ticks, count: later.count + 1 }
}
