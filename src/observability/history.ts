// `mill.history()`: what all processes counted, over time, read from the notes of the stores. The last minutes come from
// parts that nobody has folded yet.
import { JOB_BOUNDS_SECONDS, quantileOf, totalOf } from '../core/buckets.ts'
import type { Buckets } from '../core/buckets.ts'
import type { ErrorClass } from '../core/classify.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { failedRuns, startedRuns, sumSeries } from '../core/job-series.ts'
import type { JobCount, JobSeries } from '../core/job-series.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { decodeRollup, HOUR_MS, hourKey, MINUTE_MS, minuteKey, msOfKey, partOf } from '../core/rollup.ts'
import type { Clock } from '../runtime/clock.ts'
import type { NoteStore } from '../store/note-store.ts'
import { HOUR_SPACE, MINUTE_SPACE, PART_SPACE } from './rollup-spaces.ts'

export interface HistoryOptions {
  /** Default: one hour, or with steps of hours one day, before `to`. */
  readonly from?: Date | number
  /** Default: now. */
  readonly to?: Date | number
  /** Whole minutes, at least one. Minutes are kept for 48 hours, hours for 90 days. Default one minute. */
  readonly step?: Duration
  readonly queue?: string
  readonly kind?: string
}

/** Everything that happened in one step, from `at` on. */
export interface HistoryPoint {
  readonly at: Date
  /** Per queue and kind; those of which nothing was heard are absent. */
  readonly series: readonly HistorySeries[]
}

export interface HistorySeries extends Readonly<Record<Exclude<JobCount, `started${string}`>, number>> {
  readonly queue: string
  readonly kind: string
  readonly started: number
  /** Failed runs, retried or not. */
  readonly failed: number
  readonly failedBy: Readonly<Partial<Record<ErrorClass, number>>>
  /** Null: none was measured. */
  readonly wait: HistoryTimes | null
  readonly run: HistoryTimes | null
  readonly total: HistoryTimes | null
}

export interface HistoryTimes {
  readonly count: number
  readonly meanSeconds: number
  readonly p50Seconds: number
  readonly p95Seconds: number
  readonly p99Seconds: number
}

export type History = (options?: HistoryOptions) => Promise<readonly HistoryPoint[]>

interface Seen {
  readonly atMs: number
  readonly series: readonly JobSeries[]
}

const PAGE = 200
const PARTS_MAX = 2_000

export function createHistory(stores: () => readonly NoteStore[], clock: Clock): History {
  return async (options = {}) => {
    const span = checkSpan(options, clock.nowMs())
    const seen = (await Promise.all(stores().map((notes) => readStore(notes, span)))).flat()
    const isAsked = ({ queue, kind }: JobSeries): boolean =>
      (options.queue ?? queue) === queue && (options.kind ?? kind) === kind
    const points = grouped(seen, span)
    return Array.from({ length: span.points }, (_, index) => {
      const atMs = span.fromMs + index * span.stepMs
      const own = (points.get(atMs) ?? []).filter(isAsked)
      return { at: new Date(atMs), series: sumSeries(own).map(shown) }
    })
  }
}

interface Span {
  readonly fromMs: number
  readonly toMs: number
  readonly stepMs: number
  readonly points: number
}

function checkSpan(options: HistoryOptions, nowMs: number): Span {
  checkKnownOptions(options, ['from', 'to', 'step', 'queue', 'kind'], 'history()')
  const { queue, kind } = options
  if (queue !== undefined) checkName(queue, 'queue')
  if (kind !== undefined) checkName(kind, 'job')
  const stepMs = parseDuration(options.step ?? MINUTE_MS, 'step', {
    minMs: MINUTE_MS,
    maxMs: DEFAULTS.rollupHoursKeptMs,
  })
  if (stepMs % MINUTE_MS !== 0) throw invalidOption('step', options.step, "whole minutes, such as '5m' or '1h'")
  const untilMs = momentOf(options.to ?? nowMs, 'to')
  const sinceMs = momentOf(options.from ?? untilMs - (stepMs >= HOUR_MS ? 24 * HOUR_MS : HOUR_MS), 'from')
  if (sinceMs >= untilMs) throw invalidOption('from', options.from, 'before `to`')
  const fromMs = Math.floor(sinceMs / stepMs) * stepMs
  const points = Math.ceil((untilMs - fromMs) / stepMs)
  if (points > LIMITS.historyPointsMax) {
    throw invalidOption(
      'step',
      options.step,
      `so long that there are at most ${LIMITS.historyPointsMax} of them, not ${points}`,
    )
  }
  return { fromMs, toMs: fromMs + points * stepMs, stepMs, points }
}

function momentOf(value: Date | number, what: string): number {
  const ms = value instanceof Date ? value.getTime() : value
  // Beyond it ISO texts have another form.
  if (typeof ms === 'number' && ms >= 0 && ms < MOMENT_MAX_MS) return ms
  throw invalidOption(what, value, 'a valid Date or milliseconds since 1970')
}

const MOMENT_MAX_MS = Date.UTC(9999, 0)

async function readStore(notes: NoteStore, { fromMs, toMs, stepMs }: Span): Promise<readonly Seen[]> {
  const hours = stepMs % HOUR_MS === 0 ? await readSpace(notes, HOUR_SPACE, hourKey(fromMs), hourKey(toMs)) : []
  // Hours that nobody has folded yet, the one that is not over among them.
  const last = hours.at(-1)
  const minutesFromMs = last === undefined ? fromMs : msOfKey(last.key) + HOUR_MS
  const minutes = await readSpace(notes, MINUTE_SPACE, minuteKey(minutesFromMs), minuteKey(toMs))
  const folded = new Map(minutes.map(({ key, rollup }) => [key, new Set(rollup.parts)]))
  const parts = (await readSpace(notes, PART_SPACE, minuteKey(minutesFromMs), minuteKey(toMs), PARTS_MAX)).flatMap(
    (one) => {
      const part = partOf(one.key)
      return part === null || folded.get(part.minute)?.has(part.id) ? [] : [{ ...one, key: part.minute }]
    },
  )
  return [...hours, ...minutes, ...parts].map(({ key, rollup }) => ({ atMs: msOfKey(key), series: rollup.series }))
}

async function readSpace(notes: NoteStore, space: string, fromKey: string, toKey: string, most = Infinity) {
  const found: { readonly key: string; readonly rollup: NonNullable<ReturnType<typeof decodeRollup>> }[] = []
  // Lists begin after their cursor, and no key ends before its Z.
  let cursor = fromKey.slice(0, -1)
  for (;;) {
    const page = await notes.list(space, PAGE, cursor)
    for (const { key, value } of page) {
      const rollup = decodeRollup(value)
      if (key >= toKey || found.length >= most) return found
      if (rollup !== null) found.push({ key, rollup })
    }
    const end = page.at(-1)?.key
    if (page.length < PAGE || end === undefined) return found
    cursor = end
  }
}

function grouped(seen: readonly Seen[], { fromMs, stepMs }: Span): ReadonlyMap<number, readonly JobSeries[]> {
  const points = new Map<number, JobSeries[]>()
  for (const { atMs, series } of seen) {
    const pointMs = fromMs + Math.floor((atMs - fromMs) / stepMs) * stepMs
    const known = points.get(pointMs)
    if (known === undefined) points.set(pointMs, [...series])
    else known.push(...series)
  }
  return points
}

function shown(series: JobSeries): HistorySeries {
  const { queue, kind, counts, failed, times } = series
  return {
    queue,
    kind,
    enqueued: counts.enqueued ?? 0,
    duplicates: counts.duplicates ?? 0,
    started: startedRuns(series),
    completed: counts.completed ?? 0,
    failed: failedRuns(series),
    failedBy: failed,
    retried: counts.retried ?? 0,
    dead: counts.dead ?? 0,
    cancelled: counts.cancelled ?? 0,
    released: counts.released ?? 0,
    snoozed: counts.snoozed ?? 0,
    stale: counts.stale ?? 0,
    expired: counts.expired ?? 0,
    wait: timesOf(times.wait),
    run: timesOf(times.run),
    total: timesOf(times.total),
  }
}

function timesOf(buckets: Buckets | undefined): HistoryTimes | null {
  if (buckets === undefined) return null
  const count = totalOf(buckets)
  const quantile = (share: number): number => quantileOf(buckets, JOB_BOUNDS_SECONDS, share) ?? 0
  return {
    count,
    meanSeconds: count === 0 ? 0 : buckets.sumSeconds / count,
    p50Seconds: quantile(0.5),
    p95Seconds: quantile(0.95),
    p99Seconds: quantile(0.99),
  }
}
