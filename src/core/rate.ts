// Rate limits as GCRA (a token bucket kept as one moment in time), in two lines per key:
// - the start line is the real bucket: successful takes in any window t are at most burst + rate * t;
// - the admission line only spaces jobs out in advance, so that few of them meet an empty bucket.
// A backend that does this in SQL or Lua refines `reserveStart` and `takeStart` exactly.

import { type Duration, parseDuration } from './duration.ts'
import { checkInteger, checkKnownOptions } from './names.ts'

export interface RateLimit {
  readonly limit: number
  readonly perMs: number
  readonly burst: number
}

/** Theoretical arrival times: when each line would be empty again. */
export interface RateState {
  readonly startTatMs: number
  readonly admitTatMs: number
}

export interface RateLimitOptions {
  readonly limit: number
  readonly per: Duration
  /** How many may start at one instant. Default: one second's worth of the rate, at least 1. */
  readonly burst?: number
}

export type Take =
  | { readonly state: RateState; readonly ok: true }
  | { readonly state: RateState; readonly ok: false; readonly waitMs: number }

const LIMIT_MAX = 1_000_000
const PER_MAX_MS = 31 * 24 * 60 * 60_000

// Times since 1970 have 11 bits left below the millisecond until the year 2109. With intervals that
// are multiples of that, the sums are exact; otherwise rounding would let 10 000/s run 0.1 % too fast.
const GRAIN_PER_MS = 2_048

/** `{ limit: 100, per: '1m' }`: on average 100 starts a minute, at most `burst` of them at once. */
export function rateLimit(options: RateLimitOptions): RateLimit {
  checkKnownOptions(options, ['limit', 'per', 'burst'], 'rate limit')
  const limit = checkInteger(options.limit, 'limit', 1, LIMIT_MAX)
  const perMs = parseDuration(options.per, 'per', { minMs: 1, maxMs: PER_MAX_MS })
  // A worker finds a ready job some milliseconds late. A second's worth of tokens absorbs that;
  // with a burst of 1 every late start at a high rate would be a start lost.
  const usual = Math.min(limit, Math.max(1, Math.ceil((limit * 1_000) / perMs)))
  return { limit, perMs, burst: checkInteger(options.burst ?? usual, 'burst', 1, LIMIT_MAX) }
}

/** The time between two starts at the steady rate; never shorter than asked for. */
export function intervalMs(limit: RateLimit): number {
  return Math.ceil((limit.perMs / limit.limit) * GRAIN_PER_MS) / GRAIN_PER_MS
}

/** Admission: a place in the line, now or later. Never refuses; the wait is whole milliseconds. */
export function reserveStart(
  state: RateState | undefined,
  limit: RateLimit,
  nowMs: number,
): { readonly state: RateState; readonly waitMs: number } {
  return placeInLine(state ?? unusedState(nowMs), limit, nowMs)
}

/**
 * The real bucket, asked at the start of a job. A refused job is given the next free place in the
 * admission line, so that a crowd of refused ones comes back one by one.
 */
export function takeStart(state: RateState | undefined, limit: RateLimit, nowMs: number): Take {
  const known = state ?? unusedState(nowMs)
  const interval = intervalMs(limit)
  const shortMs = tokenAtMs(known, limit, interval) - nowMs
  if (shortMs <= 0) {
    return { ok: true, state: { ...known, startTatMs: Math.max(nowMs, known.startTatMs) + interval } }
  }
  // A near miss is a job in its place while the one before it started a little late. It waits for the
  // very next token: sent to the end of a long line, it would lose its turn, and the token with it.
  if (shortMs <= interval / 4) return { ok: false, state: known, waitMs: Math.ceil(shortMs) }
  return { ok: false, ...placeInLine(known, limit, nowMs) }
}

function placeInLine(state: RateState, limit: RateLimit, nowMs: number) {
  const interval = intervalMs(limit)
  // Only half of the burst is given out in advance: the rest is the slack for late starts.
  const toleranceMs = (Math.ceil(limit.burst / 2) - 1) * interval
  const tokenMs = tokenAtMs(state, limit, interval)
  const lineMs = Math.max(nowMs, state.admitTatMs - toleranceMs)
  const placeMs = Math.max(lineMs, tokenMs)
  // A line that lags behind an empty bucket catches up with it, or its next places would all be refused.
  const admitTatMs = (tokenMs > lineMs ? tokenMs + toleranceMs : Math.max(nowMs, state.admitTatMs)) + interval
  return { state: { ...state, admitTatMs }, waitMs: Math.ceil(placeMs - nowMs) }
}

/** When the bucket has its next token. */
/** Until a token is there; 0 when one is. Takes nothing. */
export function nextTokenInMs(state: RateState | undefined, limit: RateLimit, nowMs: number): number {
  return state === undefined ? 0 : Math.max(0, tokenAtMs(state, limit, intervalMs(limit)) - nowMs)
}

function tokenAtMs(state: RateState, limit: RateLimit, interval: number): number {
  return state.startTatMs - (limit.burst - 1) * interval
}

function unusedState(nowMs: number): RateState {
  return { startTatMs: nowMs, admitTatMs: nowMs }
}
