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
import { readDepths } from './depth-history.ts'
import type { HistoryDepth } from './depth-history.ts'
import { byPoint, readNotes } from './rollup-read.ts'
import type { Span } from './rollup-read.ts'
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
  /** Per queue; those in which nothing waited or ran are absent. Null: nobody looked, or a kind was asked for. */
  readonly depths: readonly HistoryDepth[] | null
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

const PARTS_MAX = 2_000

export function createHistory(stores: () => readonly NoteStore[], clock: Clock): History {
  return async (options = {}) => {
    const span = checkSpan(options, clock.nowMs())
    const seen = (await Promise.all(stores().map((notes) => readStore(notes, span)))).flat()
    const isAsked = ({ queue, kind }: JobSeries): boolean =>
      (options.queue ?? queue) === queue && (options.kind ?? kind) === kind
    const points = byPoint(seen, span)
    const depths = options.kind === undefined ? await readDepths(stores(), span) : new Map<number, never>()
    return Array.from({ length: span.points }, (_, index) => {
      const atMs = span.fromMs + index * span.stepMs
      const own = (points.get(atMs) ?? []).flatMap(({ series }) => series.filter(isAsked))
      const deep = depths.get(atMs)?.filter(({ queue }) => (options.queue ?? queue) === queue) ?? null
      return { at: new Date(atMs), series: sumSeries(own).map(shown), depths: deep }
    })
  }
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
  const read = (space: string, keys: readonly [string, string], most?: number) =>
    readNotes(notes, space, keys, decodeRollup, most)
  const hours = stepMs % HOUR_MS === 0 ? await read(HOUR_SPACE, [hourKey(fromMs), hourKey(toMs)]) : []
  // Hours that nobody has folded yet, the one that is not over among them.
  const last = hours.at(-1)
  const keys = [minuteKey(last === undefined ? fromMs : msOfKey(last.key) + HOUR_MS), minuteKey(toMs)] as const
  const minutes = await read(MINUTE_SPACE, keys)
  const folded = new Map(minutes.map(({ key, value }) => [key, new Set(value.parts)]))
  const parts = (await read(PART_SPACE, keys, PARTS_MAX)).flatMap((one) => {
    const part = partOf(one.key)
    return part === null || folded.get(part.minute)?.has(part.id) ? [] : [{ ...one, key: part.minute }]
  })
  return [...hours, ...minutes, ...parts].map(({ key, value }) => ({ atMs: msOfKey(key), series: value.series }))
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
