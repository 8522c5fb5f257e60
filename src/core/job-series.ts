// What is counted of the jobs of one queue and kind, as a value: the form in which counts are summed over processes and
// kept in the store. Pure.
import { addBuckets, NO_BUCKETS, subtractBuckets, totalOf } from './buckets.ts'
import type { Buckets } from './buckets.ts'
import type { ErrorClass } from './classify.ts'

/** `failed`: runs that ended in a failure, retried or not. `dead`: jobs that failed for good. */
export const JOB_COUNTS = [
  'enqueued',
  'duplicates',
  'startedHigh',
  'startedNormal',
  'startedLow',
  'completed',
  'retried',
  'dead',
  'cancelled',
  'released',
  'snoozed',
  'stale',
  'expired',
] as const
export type JobCount = (typeof JOB_COUNTS)[number]

export const JOB_TIMES = ['wait', 'run', 'total'] as const
export type JobTime = (typeof JOB_TIMES)[number]

export interface JobSeries {
  readonly queue: string
  readonly kind: string
  /** Absent: none. */
  readonly counts: Readonly<Partial<Record<JobCount, number>>>
  /** Runs that failed, by the class of their error. */
  readonly failed: Readonly<Partial<Record<ErrorClass, number>>>
  readonly times: Readonly<Partial<Record<JobTime, Buckets>>>
}

/** What does not fit into a bound is counted under this name, as queue and as kind. */
export const OTHER = 'other'

export function addSeries(a: JobSeries, b: JobSeries): JobSeries {
  return {
    queue: a.queue,
    kind: a.kind,
    counts: addCounts(a.counts, b.counts),
    failed: addCounts(a.failed, b.failed),
    times: mapTimes((time) => addBuckets(a.times[time] ?? NO_BUCKETS, b.times[time] ?? NO_BUCKETS)),
  }
}

/** What was counted after `before`, of the same queue and kind. */
export function subtractSeries(now: JobSeries, before: JobSeries): JobSeries {
  return {
    queue: now.queue,
    kind: now.kind,
    counts: subtractCounts(now.counts, before.counts),
    failed: subtractCounts(now.failed, before.failed),
    times: mapTimes((time) => subtractBuckets(now.times[time] ?? NO_BUCKETS, before.times[time] ?? NO_BUCKETS)),
  }
}

/** One series per queue and kind. Beyond `seriesMax` the least active ones are summed as `other`. */
export function sumSeries(list: readonly JobSeries[], seriesMax = Infinity): readonly JobSeries[] {
  const byName = new Map<string, JobSeries>()
  for (const series of list) {
    const name = `${series.queue}\0${series.kind}`
    const known = byName.get(name)
    byName.set(name, known === undefined ? series : addSeries(known, series))
  }
  const all = [...byName.values()]
  if (all.length <= seriesMax) return all
  // One place is for the sum, which may have been there before.
  const isSum = ({ queue, kind }: JobSeries): boolean => queue === OTHER && kind === OTHER
  const named = all.filter((series) => !isSum(series)).sort((a, b) => activityOf(b) - activityOf(a))
  const kept = named.slice(0, Math.max(0, seriesMax - 1))
  const rest = [...named.slice(kept.length), ...all.filter(isSum)].map((series) => ({
    ...series,
    queue: OTHER,
    kind: OTHER,
  }))
  return sumSeries([...kept, ...rest])
}

export function isIdle(series: JobSeries): boolean {
  return activityOf(series) === 0
}

export function failedRuns({ failed }: JobSeries): number {
  return sumOf(failed)
}

export function startedRuns({ counts }: JobSeries): number {
  return (counts.startedHigh ?? 0) + (counts.startedNormal ?? 0) + (counts.startedLow ?? 0)
}

function activityOf({ counts, failed, times }: JobSeries): number {
  return sumOf(counts) + sumOf(failed) + JOB_TIMES.reduce((sum, time) => sum + totalOf(times[time] ?? NO_BUCKETS), 0)
}

function sumOf(counts: Readonly<Record<string, number>>): number {
  return Object.values(counts).reduce((sum, count) => sum + count, 0)
}

type Counts<Name extends string> = Readonly<Partial<Record<Name, number>>>

function addCounts<Name extends string>(a: Counts<Name>, b: Counts<Name>): Counts<Name> {
  const sums: Partial<Record<Name, number>> = { ...a }
  for (const name of namesOf(b)) sums[name] = (sums[name] ?? 0) + (b[name] ?? 0)
  return sums
}

function subtractCounts<Name extends string>(now: Counts<Name>, before: Counts<Name>): Counts<Name> {
  const left: Partial<Record<Name, number>> = {}
  for (const name of namesOf(now)) {
    const count = (now[name] ?? 0) - (before[name] ?? 0)
    if (count > 0) left[name] = count
  }
  return left
}

// Object.keys forgets the names that the type knows.
function namesOf<Name extends string>(counts: Counts<Name>): readonly Name[] {
  return Object.keys(counts) as Name[]
}

function mapTimes(of: (time: JobTime) => Buckets): JobSeries['times'] {
  const times: Partial<Record<JobTime, Buckets>> = {}
  for (const time of JOB_TIMES) {
    const buckets = of(time)
    if (totalOf(buckets) > 0) times[time] = buckets
  }
  return times
}
