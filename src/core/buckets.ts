// Histograms with fixed bounds, as values: how many observations fell under which bound, and their sum. Pure; who counts
// on the hot path is src/observability.

export interface Buckets {
  /** One per bound and one for what is above the last. */
  readonly counts: readonly number[]
  readonly sumSeconds: number
}

/** Of jobs: from the millisecond of an empty handler to a backlog of hours. */
export const JOB_BOUNDS_SECONDS = [
  0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300, 1_800, 3_600, 21_600,
] as const

/** Of store calls: a local round trip to the timeout. */
export const CALL_BOUNDS_SECONDS = [
  0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30,
] as const

export const NO_BUCKETS: Buckets = { counts: [], sumSeconds: 0 }

export function totalOf({ counts }: Buckets): number {
  return counts.reduce((sum, count) => sum + count, 0)
}

/** Missing counts are zeros: what is kept is kept without the empty end. */
export function addBuckets(a: Buckets, b: Buckets): Buckets {
  const length = Math.max(a.counts.length, b.counts.length)
  const counts = Array.from({ length }, (_, at) => (a.counts[at] ?? 0) + (b.counts[at] ?? 0))
  return { counts, sumSeconds: a.sumSeconds + b.sumSeconds }
}

/** What came after `before`. */
export function subtractBuckets(now: Buckets, before: Buckets): Buckets {
  const counts = now.counts.map((count, at) => Math.max(0, count - (before.counts[at] ?? 0)))
  return { counts, sumSeconds: Math.max(0, now.sumSeconds - before.sumSeconds) }
}

/**
 * The value under which this share of the observations lies, taken as evenly spread within a bucket; the last bound when
 * it lies above all of them, null when there are none.
 */
export function quantileOf(buckets: Buckets, bounds: readonly number[], share: number): number | null {
  const total = totalOf(buckets)
  if (total === 0) return null
  const rank = share * total
  let seen = 0
  for (const [at, count] of buckets.counts.entries()) {
    if (count > 0 && seen + count >= rank) {
      const high = bounds[at]
      if (high === undefined) break
      const low = at === 0 ? 0 : bounds[at - 1]!
      return low + ((high - low) * Math.max(0, rank - seen)) / count
    }
    seen += count
  }
  return bounds.at(-1) ?? null
}
