// The steps of the autoscaler, kept for people: what changed, from what to what, why, and what the numbers were.
// Bounded by age, in the store, and by count, by whoever leads.
import { SCALING } from '../core/limits.ts'
import { checkInteger } from '../core/names.ts'
import { systemClock } from '../runtime/clock.ts'
import type { NoteStore } from '../store/note-store.ts'
import { decodeEvent, parsed } from './plan-notes.ts'
import type { ScaleEvent } from './plan-notes.ts'

export const HISTORY_SPACE = 'scaling-history'

const PAGE = 100
const READ_MAX = 500
const TRIM_MAX = 500
const HOUR_MS = 60 * 60_000
/** Looked through one after the other, until enough was found; the last one has no beginning. */
const WINDOWS_MS = [HOUR_MS, 24 * HOUR_MS, Infinity]

export interface HistoryQuery {
  /** Newest first; default 50, at most 500. */
  readonly limit?: number
  readonly pool?: string
  readonly queue?: string
  /** Nothing older; default: all that is kept. */
  readonly sinceMs?: number
  /** Of the reader; only says where to begin looking. Default: now. */
  readonly nowMs?: number
}

export async function readScalingHistory(notes: NoteStore, query: HistoryQuery = {}): Promise<readonly ScaleEvent[]> {
  const { pool, queue, nowMs = systemClock.nowMs() } = query
  const limit = checkInteger(query.limit ?? 50, 'limit', 1, READ_MAX)
  const fromMs = query.sinceMs ?? -Infinity
  let found: readonly ScaleEvent[] = []
  for (const windowMs of WINDOWS_MS) {
    const startMs = Math.max(fromMs, nowMs - windowMs)
    found = await newest(notes, startMs === -Infinity ? undefined : timeText(startMs), limit, (event) => {
      return (pool === undefined || event.pool === pool) && (queue === undefined || event.queue === queue)
    })
    if (found.length >= limit || startMs === fromMs) break
  }
  return found.toReversed()
}

/** The same event has the same key: writing it twice is writing it once. */
export async function writeEvent(notes: NoteStore, event: ScaleEvent): Promise<void> {
  const key = `${timeText(event.atMs)}:${event.id}`
  const value = JSON.stringify(event)
  await notes.put({ space: HISTORY_SPACE, key, value, expectVersion: 0, ttlMs: SCALING.historyMs })
}

/** Removes the oldest beyond the bound, some at a time; answers how many. */
export async function trimHistory(notes: NoteStore, keep: number = SCALING.historyEventsMax): Promise<number> {
  const oldest: string[] = []
  let [count, cursor] = [0, undefined as string | undefined]
  while (count < keep + TRIM_MAX) {
    const page = await notes.list(HISTORY_SPACE, PAGE, cursor)
    count += page.length
    for (const { key } of page) if (oldest.length < TRIM_MAX) oldest.push(key)
    cursor = page.at(-1)?.key
    if (page.length < PAGE) break
  }
  const surplus = oldest.slice(0, Math.max(0, count - keep))
  for (const key of surplus) await notes.remove(HISTORY_SPACE, key)
  return surplus.length
}

async function newest(
  notes: NoteStore,
  after: string | undefined,
  limit: number,
  fits: (event: ScaleEvent) => boolean,
): Promise<ScaleEvent[]> {
  let found: ScaleEvent[] = []
  let cursor = after
  for (let seen = 0; seen < 2 * SCALING.historyEventsMax; seen += PAGE) {
    const page = await notes.list(HISTORY_SPACE, PAGE, cursor)
    const events = page.flatMap(({ value }) => decodeEvent(parsed(value)) ?? [])
    found = [...found, ...events.filter(fits)].slice(-limit)
    cursor = page.at(-1)?.key
    if (page.length < PAGE) break
  }
  return found
}

function timeText(ms: number): string {
  return new Date(ms).toISOString()
}
