// What only Millrace has, under the same faults: batches that are there whole and whose counters agree with their jobs,
// callbacks that come once, ticks of a schedule that fire once each. Pure functions over the books and what the store says.
import type { Books } from '../books.ts'
import type { Findings } from '../figures.ts'
import type { BatchFacts, SideFacts } from '../system.ts'
import type { Span } from './pace.ts'

/** By name. */
export interface WrongBatches {
  /** Acknowledged, and not there. */
  readonly gone: readonly string[]
  /** Acknowledged or sealed, and not finished when everything else was. */
  readonly unfinished: readonly string[]
  readonly miscounted: readonly string[]
}

export function wrongBatches(batches: readonly BatchFacts[], asked: Books['batches']): WrongBatches {
  const there = new Set(batches.map(({ name }) => name))
  const names = (isSo: (batch: BatchFacts) => boolean): readonly string[] =>
    batches.filter(isSo).map(({ name }) => name)
  return {
    gone: [...asked].flatMap(([name, { isAcked }]) => (isAcked && !there.has(name) ? [name] : [])),
    unfinished: names(
      ({ name, isSealed, isFinished }) => (isSealed || asked.get(name)?.isAcked === true) && !isFinished,
    ),
    miscounted: names((batch) => isMiscounted(batch, asked) || names(({ name }) => name === batch.name).length > 1),
  }
}

/**
 * Whether its counters differ from a recount of its jobs, it has not all that it was asked for with, or its callback did not
 * come exactly once. One whose producer died, or was refused, before it was sealed stays open with what it has.
 */
function isMiscounted({ name, counted, recounted, ...batch }: BatchFacts, asked: Books['batches']): boolean {
  const { size = -1, isAcked = false } = asked.get(name) ?? {}
  const isWhole = batch.isSealed || isAcked ? counted.total === size : counted.total <= size
  const agrees = counted.completed === recounted.completed && counted.total === recounted.total
  return !isWhole || !agrees || batch.callbacks !== (batch.isFinished ? 1 : 0)
}

export function batchWords({ gone, unfinished, miscounted }: WrongBatches): readonly string[] {
  return [
    ...(gone.length > 0 ? [`${gone.length} batches gone`] : []),
    ...(unfinished.length > 0 ? [`${unfinished.length} batches not finished`] : []),
    ...(miscounted.length > 0 ? [`${miscounted.length} batches miscounted`] : []),
  ]
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

/** Ticks that fired twice, off the beat or, from the beginning of the load to its end, not at all. */
export function wrongTicks(ticksMs: readonly number[], everyMs: number, { fromMs, toMs }: Span): number {
  const fired = new Set(ticksMs)
  // The first one comes within an interval; where it did not, the beat is known from the next.
  const dueMs = fromMs + everyMs
  const seenMs = Math.min(...fired)
  const firstMs = fired.size === 0 ? dueMs : seenMs - everyMs * Math.max(Math.ceil((seenMs - dueMs) / everyMs), 0)
  const lastMs = Math.max(toMs, ...fired)
  let onBeat = 0
  let missing = 0
  for (let tickMs = firstMs; tickMs <= lastMs; tickMs += everyMs) {
    if (fired.has(tickMs)) onBeat += 1
    else missing += 1
  }
  return ticksMs.length - onBeat + missing
}

/** Whether every tick that was due by the end of the load has had its turn. */
export function hasCaughtUp({ ticksMs, tickEveryMs }: SideFacts, toMs: number): boolean {
  return Math.max(...ticksMs) + tickEveryMs > toMs
}
