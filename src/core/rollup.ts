// History as values: what all processes counted in one minute or one hour, and how parts become one. Pure.
//
// A process writes what it counted in a minute as a part with a name of its own. Whoever folds adds the parts to the note of
// the minute, which names the parts that are in it, and removes them afterwards. So folding may stop anywhere and be done
// again by anybody: a part that is named is not added twice, whether it is still there or there again.
import { ERROR_CLASSES } from './classify.ts'
import type { Buckets } from './buckets.ts'
import { JOB_COUNTS, JOB_TIMES, sumSeries } from './job-series.ts'
import type { JobSeries, JobTime } from './job-series.ts'
import type { JsonText } from './json.ts'
import { LIMITS } from './limits.ts'

export interface Rollup {
  /** Ids of the parts that are in it; the newest, as many as there is room for. */
  readonly parts: readonly string[]
  readonly series: readonly JobSeries[]
}

export interface Part {
  readonly key: string
  readonly series: readonly JobSeries[]
}

export const MINUTE_MS = 60_000
export const HOUR_MS = 60 * MINUTE_MS

/** `2030-01-31T12:05Z`: in order of time as text. */
export function minuteKey(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 16)}Z`
}

/** `2030-01-31T12Z` */
export function hourKey(atMs: number): string {
  return `${new Date(atMs).toISOString().slice(0, 13)}Z`
}

/** The beginning of a minute or an hour; NaN for anything else. */
export function msOfKey(key: string): number {
  return Date.parse(key.length === 14 ? `${key.slice(0, 13)}:00Z` : key)
}

export function partKey(minute: string, id: string): string {
  return `${minute}~${id}`
}

/** The minute and the id of a part; null when it is none. */
export function partOf(key: string): { readonly minute: string; readonly id: string } | null {
  const at = key.indexOf('~')
  const minute = key.slice(0, at)
  return at === -1 || Number.isNaN(msOfKey(minute)) ? null : { minute, id: key.slice(at + 1) }
}

/** The note of a minute with these parts in it; null when all of them are in it already. */
export function foldParts(before: Rollup | null, parts: readonly Part[]): Rollup | null {
  const known = new Set(before?.parts)
  const added = parts.flatMap((part) => {
    const id = partOf(part.key)?.id
    return id === undefined || known.has(id) ? [] : [{ id, series: part.series }]
  })
  if (added.length === 0) return null
  return {
    parts: [...(before?.parts ?? []), ...added.map(({ id }) => id)].slice(-PARTS_NAMED_MAX),
    series: sumSeries([...(before?.series ?? []), ...added.flatMap(({ series }) => series)]),
  }
}

/** Enough for every process of a minute; each name is some twenty characters. */
const PARTS_NAMED_MAX = 500
/** With room for what a store adds. */
const CHARS_MAX = LIMITS.noteBytesMax - 1_024

/** At most as long as a note may be: the least active series become `other`. Names are ASCII, so characters are bytes. */
export function encodeRollup({ parts, series }: Rollup, charsMax: number = CHARS_MAX): JsonText {
  for (let seriesMax: number = LIMITS.rollupSeriesMax; ; seriesMax = Math.floor(seriesMax / 2)) {
    const text = JSON.stringify({ parts, series: sumSeries(series, Math.max(seriesMax, 1)).map(compact) })
    if (text.length <= charsMax || seriesMax <= 1) return text
  }
}

/** Null: somebody else wrote it. */
export function decodeRollup(text: JsonText): Rollup | null {
  try {
    // Written by encodeRollup of this version or another: what is not as expected is left out.
    const { parts, series } = JSON.parse(text) as { readonly parts?: unknown; readonly series?: unknown }
    return {
      parts: Array.isArray(parts) ? parts.filter((part) => typeof part === 'string') : [],
      series: Array.isArray(series) ? series.flatMap((one: unknown) => seriesIn(one) ?? []) : [],
    }
  } catch {
    return null
  }
}

function compact(series: JobSeries): JobSeries {
  const times: Partial<Record<JobTime, Buckets>> = {}
  for (const time of JOB_TIMES) {
    const buckets = series.times[time]
    if (buckets === undefined) continue
    const length = buckets.counts.findLastIndex((count) => count > 0) + 1
    times[time] = { counts: buckets.counts.slice(0, length), sumSeconds: Number(buckets.sumSeconds.toPrecision(9)) }
  }
  return { ...series, times }
}

function seriesIn(value: unknown): JobSeries | undefined {
  if (typeof value !== 'object' || value === null) return undefined
  const { queue, kind, counts, failed, times } = value as Record<string, unknown> // any object has string keys
  if (typeof queue !== 'string' || typeof kind !== 'string') return undefined
  const found: Partial<Record<JobTime, Buckets>> = {}
  for (const time of JOB_TIMES) {
    const buckets = bucketsIn(fieldsOf(times)[time])
    if (buckets !== undefined) found[time] = buckets
  }
  return { queue, kind, counts: countsIn(counts, JOB_COUNTS), failed: countsIn(failed, ERROR_CLASSES), times: found }
}

function countsIn<Name extends string>(value: unknown, names: readonly Name[]): Partial<Record<Name, number>> {
  const fields = fieldsOf(value)
  const counts: Partial<Record<Name, number>> = {}
  for (const name of names) {
    const count = fields[name]
    if (typeof count === 'number') counts[name] = count
  }
  return counts
}

function bucketsIn(value: unknown): Buckets | undefined {
  const { counts, sumSeconds } = fieldsOf(value)
  if (!Array.isArray(counts) || typeof sumSeconds !== 'number') return undefined
  return { counts: counts.map((count: unknown) => (typeof count === 'number' ? count : 0)), sumSeconds }
}

function fieldsOf(value: unknown): Record<string, unknown> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {} // as above
}
