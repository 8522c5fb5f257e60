// What only Millrace has, under the same faults: counters of batches that agree with their jobs, callbacks that come
// once, ticks of a schedule that fire once each. Pure functions over what the store says.
import type { Findings } from '../figures.ts'
import type { BatchFacts, SideFacts } from '../system.ts'
import type { Span } from './pace.ts'

/**
 * Batches whose counters differ from a recount of their jobs, that did not finish with the last of them, or whose callback
 * did not come exactly once. One whose producer died before it was sealed stays open.
 */
export function miscounted(batches: readonly BatchFacts[]): readonly string[] {
  return batches.flatMap(({ name, counted, recounted, isSealed, isFinished, callbacks }) => {
    const agrees = counted.completed === recounted.completed && counted.total === recounted.total
    const isHung = isSealed && !isFinished && recounted.completed === recounted.total
    return agrees && !isHung && callbacks === (isFinished ? 1 : 0) ? [] : [name]
  })
}

/** Of the one batch that a scenario is about: finished with all of its jobs, and told so once. */
export function wholeBatch(side: SideFacts | undefined, name: string, size: number): Findings {
  const batch = side?.batches.find((one) => one.name === name)
  const isWhole =
    batch?.isFinished === true &&
    batch.callbacks === 1 &&
    batch.counted.completed === size &&
    batch.recounted.completed === size
  return { figures: { members: size }, broken: isWhole ? [] : [`the batch of ${size} did not end as a whole`] }
}

/** Ticks that fired twice or, from the beginning of the load to its end, not at all. */
export function wrongTicks(ticksMs: readonly number[], everyMs: number, { fromMs, toMs }: Span): number {
  const fired = new Set(ticksMs)
  const doubled = ticksMs.length - fired.size
  // The first one comes within an interval, then they are counted from it.
  const firstMs = Math.min(fromMs + everyMs, ...fired)
  const lastMs = Math.max(toMs, ...fired)
  const expected = Math.floor((lastMs - firstMs) / everyMs) + 1
  return doubled + Math.abs(expected - fired.size)
}

/** Whether every tick that was due by the end of the load has had its turn. */
export function hasCaughtUp({ ticksMs, tickEveryMs }: SideFacts, toMs: number): boolean {
  return Math.max(...ticksMs) + tickEveryMs > toMs
}
