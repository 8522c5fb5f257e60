// What only Millrace has, under the same faults: counters of batches that agree with their jobs, callbacks that come
// once, ticks of a schedule that fire once each. Pure functions over what the store says.
import type { BatchFacts } from '../system.ts'

/** Batches whose counters differ from a recount of their jobs, or whose callback did not come exactly once. */
export function miscounted(batches: readonly BatchFacts[]): readonly string[] {
  return batches.flatMap(({ name, counted, recounted, isFinished, callbacks }) => {
    const agrees = counted.completed === recounted.completed && counted.total === recounted.total
    return agrees && callbacks === (isFinished ? 1 : 0) ? [] : [name]
  })
}

/** Ticks that fired twice or, between the first and the last one, not at all. */
export function wrongTicks(ticksMs: readonly number[], everyMs: number): number {
  const fired = new Set(ticksMs)
  const doubled = ticksMs.length - fired.size
  if (fired.size === 0) return 0
  const expected = (Math.max(...fired) - Math.min(...fired)) / everyMs + 1
  return doubled + Math.abs(Math.round(expected) - fired.size)
}
