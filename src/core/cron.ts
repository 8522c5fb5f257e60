// When a recurring schedule ticks: cron expressions in a time zone (by croner, which follows Vixie
// cron over DST) and plain intervals on a fixed grid. Pure: the moments come in as arguments.

import { Cron } from 'croner'
import { type Duration, parseDuration } from './duration.ts'
import { MillraceError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { shown } from './names.ts'

/** The ticks of `every` are anchorMs, anchorMs + everyMs, ...; there are none before the anchor. */
export type Recurrence =
  | { readonly kind: 'cron'; readonly expression: string; readonly timeZone: string }
  | { readonly kind: 'every'; readonly everyMs: number; readonly anchorMs: number }

const EVERY_MIN_MS = 1_000
const EVERY_MAX_MS = 366 * 24 * 60 * 60_000
const TIME_ZONE = /^[A-Za-z][A-Za-z0-9_+/-]{0,63}$/
const EXPRESSION = /^[0-9A-Za-z*?,/#+ -]+$/

// Without a year field a pattern repeats itself for ever, so one that fires after this fires after now.
const REFERENCE_MS = 1_704_067_200_000

/** 5 fields, or 6 with seconds first; time zone UTC unless named. Extensions: names, `L`, `W`, `#`, `+`. */
export function cronRecurrence(expression: string, timeZone = 'UTC'): Recurrence {
  const trimmed = typeof expression === 'string' && expression.length <= LIMITS.cronCharsMax ? expression.trim() : ''
  const fields = trimmed.split(/ +/).length
  // Checked before croner sees it: it would also take dates, nicknames and lists of any length.
  if (!EXPRESSION.test(trimmed) || fields < 5 || fields > 6) {
    throw invalidCron(expression, 'use 5 fields (minute hour day month weekday) or 6 with seconds first')
  }
  checkTimeZone(timeZone)
  const recurrence = { kind: 'cron', expression: trimmed, timeZone } as const
  if (firstAfterReference(recurrence) === null) throw invalidCron(expression, 'it never fires')
  return recurrence
}

/** Every so often, at least a second apart, on the grid that starts at the anchor. */
export function everyRecurrence(every: Duration, anchorMs: number): Recurrence {
  return {
    kind: 'every',
    everyMs: parseDuration(every, 'every', { minMs: EVERY_MIN_MS, maxMs: EVERY_MAX_MS }),
    anchorMs,
  }
}

/** The first tick strictly after the moment; null only at the end of the calendar. */
export function nextTickMs(recurrence: Recurrence, afterMs: number): number | null {
  if (recurrence.kind === 'cron') return cronOf(recurrence).nextRun(new Date(afterMs))?.getTime() ?? null
  const { everyMs, anchorMs } = recurrence
  return afterMs < anchorMs ? anchorMs : anchorMs + (Math.floor((afterMs - anchorMs) / everyMs) + 1) * everyMs
}

/** The first `max` ticks t with afterMs < t <= untilMs, oldest first. About 90 us per cron tick. */
export function ticksBetween(recurrence: Recurrence, afterMs: number, untilMs: number, max: number): number[] {
  const next = (ms: number): number | null => nextTickMs(recurrence, ms)
  const ticks: number[] = []
  let tick = max > 0 ? next(afterMs) : null
  while (tick !== null && tick <= untilMs && ticks.length < max) {
    ticks.push(tick)
    tick = ticks.length < max ? next(tick) : null
  }
  return ticks
}

/**
 * The last `max` ticks t with afterMs < t <= untilMs, oldest first, and how many there are in all.
 * The count of cron ticks stops at LIMITS.catchUpMax: after a year, every second is too many to walk.
 */
export function lastTicksBetween(
  recurrence: Recurrence,
  afterMs: number,
  untilMs: number,
  max: number,
): { readonly ticks: readonly number[]; readonly count: number } {
  if (recurrence.kind === 'every') {
    const first = nextTickMs(recurrence, afterMs) ?? untilMs + 1
    const count = first > untilMs ? 0 : Math.floor((untilMs - first) / recurrence.everyMs) + 1
    const kept = Math.min(count, max)
    const ticks = Array.from({ length: kept }, (_, index) => first + (count - kept + index) * recurrence.everyMs)
    return { ticks, count }
  }
  const oldest = ticksBetween(recurrence, afterMs, untilMs, LIMITS.catchUpMax)
  if (oldest.length < LIMITS.catchUpMax) return { ticks: max > 0 ? oldest.slice(-max) : [], count: oldest.length }
  if (max <= 0) return { ticks: [], count: oldest.length }
  // croner answers "before the second of the reference": one second later means "up to now".
  const reference = new Date((Math.floor(untilMs / 1_000) + 1) * 1_000)
  const newest = cronOf(recurrence).previousRuns(Math.min(max, LIMITS.catchUpMax), reference)
  const ticks = newest.map((date) => date.getTime()).filter((tick) => tick > afterMs && tick <= untilMs)
  return { ticks: ticks.reverse(), count: oldest.length }
}

type CronRecurrence = Extract<Recurrence, { kind: 'cron' }>

// Parsing costs as much as a tick. What is kept is bounded and depends on nothing but its key.
const parsed = new Map<string, Cron>()
const PARSED_MAX = 256

function cronOf({ expression, timeZone }: CronRecurrence): Cron {
  const key = `${timeZone} ${expression}`
  const known = parsed.get(key)
  if (known !== undefined) return known
  const cron = new Cron(expression, { paused: true, timezone: timeZone, mode: '5-or-6-parts' })
  if (parsed.size >= PARSED_MAX) parsed.clear()
  parsed.set(key, cron)
  return cron
}

function firstAfterReference(recurrence: CronRecurrence): number | null {
  try {
    return nextTickMs(recurrence, REFERENCE_MS)
  } catch (error) {
    throw invalidCron(recurrence.expression, error instanceof Error ? error.message : 'it cannot be parsed')
  }
}

function checkTimeZone(timeZone: unknown): void {
  if (typeof timeZone === 'string' && TIME_ZONE.test(timeZone) && isKnownTimeZone(timeZone)) return
  throw new MillraceError(
    'INVALID_TIME_ZONE',
    `${shown(timeZone)} is no time zone known to this runtime: use an IANA name such as Europe/Berlin or UTC`,
  )
}

function isKnownTimeZone(timeZone: string): boolean {
  try {
    return new Intl.DateTimeFormat('en', { timeZone }).resolvedOptions().timeZone !== ''
  } catch {
    return false
  }
}

function invalidCron(expression: unknown, reason: string): MillraceError {
  return new MillraceError('INVALID_CRON', `${shown(expression)} cannot be a cron expression: ${reason}`)
}
