// Depths over time, read from the notes of the stores: by point, each queue from the store in which it is.
import { decodeDepths, sumDepths } from '../core/depth.ts'
import type { Depths } from '../core/depth.ts'
import { HOUR_MS, hourKey, minuteKey, msOfKey } from '../core/rollup.ts'
import type { NoteStore } from '../store/note-store.ts'
import { byPoint, readNotes } from './rollup-read.ts'
import type { Span } from './rollup-read.ts'
import { DEPTH_HOUR_SPACE, DEPTH_MINUTE_SPACE } from './rollup-spaces.ts'

/** What was seen of a queue, once a minute. */
export interface HistoryDepth {
  readonly queue: string
  /** Jobs that could start, on average and at most. */
  readonly ready: number
  readonly readyMax: number
  /** On average. */
  readonly running: number
  /** Of the oldest job that could start, at most. */
  readonly oldestReadySeconds: number
}

/** By the beginning of the point; a point at which nobody looked is absent. */
export async function readDepths(
  stores: readonly NoteStore[],
  span: Span,
): Promise<ReadonlyMap<number, readonly HistoryDepth[]>> {
  const points = new Map<number, HistoryDepth[]>()
  for (const seen of await Promise.all(stores.map((notes) => readStore(notes, span)))) {
    for (const [atMs, list] of byPoint(seen, span)) {
      points.set(atMs, [...(points.get(atMs) ?? []), ...shown(sumDepths(list.map(({ depths }) => depths)))])
    }
  }
  return points
}

async function readStore(notes: NoteStore, { fromMs, toMs, stepMs }: Span) {
  const read = async (space: string, keys: readonly [string, string]) =>
    (await readNotes(notes, space, keys, decodeDepths)).map(({ key, value }) => ({ atMs: msOfKey(key), depths: value }))
  const hours = stepMs % HOUR_MS === 0 ? await read(DEPTH_HOUR_SPACE, [hourKey(fromMs), hourKey(toMs)]) : []
  // Hours that nobody has folded yet, the one that is not over among them.
  const last = hours.at(-1)
  const minutesFromMs = last === undefined ? fromMs : last.atMs + HOUR_MS
  return [...hours, ...(await read(DEPTH_MINUTE_SPACE, [minuteKey(minutesFromMs), minuteKey(toMs)]))]
}

function shown({ looks, queues }: Depths): readonly HistoryDepth[] {
  return queues.map(({ queue, readySum, readyMax, runningSum, oldestReadyMaxMs }) => ({
    queue,
    ready: readySum / looks,
    readyMax,
    running: runningSum / looks,
    oldestReadySeconds: oldestReadyMaxMs / 1_000,
  }))
}
