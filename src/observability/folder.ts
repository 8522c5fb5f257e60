// Folds the history of one store: parts of processes into their minute, minutes into hours. Behind the leader of
// maintenance; two leaders are harmless, since a note is written only if nobody else wrote it meanwhile, and names what is
// in it.
import { sumSeries } from '../core/job-series.ts'
import { DEFAULTS } from '../core/limits.ts'
import { decodeRollup, encodeRollup, foldParts, HOUR_MS, hourKey, MINUTE_MS, msOfKey, partOf } from '../core/rollup.ts'
import type { Part } from '../core/rollup.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { NoteStore } from '../store/note-store.ts'
import { HOUR_SPACE, MINUTE_SPACE, PART_SPACE } from './rollup-spaces.ts'

export interface FolderParts {
  readonly runtime: Runtime
  readonly notes: NoteStore
  readonly isLeading: () => boolean
}

const PERIOD_MS = 20_000
/** Parts come some seconds after their minute; later ones are added when they come. */
const SETTLED_MS = 10_000
const PAGE = 200
const PAGES_MAX = 20
/** Hours that a new leader looks at again: the one before may have died between a minute and its hour. */
const HOURS_BACK = 3

export function createFolder({ runtime, notes, isLeading }: FolderParts): Service {
  const { clock } = runtime
  /** Hours with a minute that changed since they were written. */
  const changed = new Set<string>()
  let wasLeading = false
  let hasWaited = false

  async function pass(): Promise<number> {
    // A worker that runs for a moment need not look at the history.
    if (!hasWaited) {
      hasWaited = true
      return PERIOD_MS / 2
    }
    if (!isLeading()) {
      wasLeading = false
      return PERIOD_MS
    }
    if (!wasLeading) for (let back = 1; back <= HOURS_BACK; back++) changed.add(hourKey(clock.nowMs() - back * HOUR_MS))
    wasLeading = true
    const isMore = await foldMinutes()
    await foldHours()
    return isMore ? 0 : PERIOD_MS
  }

  async function foldMinutes(): Promise<boolean> {
    let cursor: string | undefined
    for (let page = 0; page < PAGES_MAX; page++) {
      const found = await notes.list(PART_SPACE, PAGE, cursor)
      cursor = found.at(-1)?.key
      for (const [minute, parts] of byMinute(found)) {
        if (msOfKey(minute) + MINUTE_MS + SETTLED_MS <= clock.nowMs()) await foldMinute(minute, parts)
      }
      if (found.length < PAGE) return false
    }
    return true
  }

  async function foldMinute(minute: string, parts: readonly Part[]): Promise<void> {
    const note = await notes.get(MINUTE_SPACE, minute)
    const folded = foldParts(note === null ? null : decodeRollup(note.value), parts)
    if (folded !== null) {
      const written = await notes.put({
        space: MINUTE_SPACE,
        key: minute,
        value: encodeRollup(folded),
        expectVersion: note?.version ?? 0,
        ttlMs: DEFAULTS.rollupMinutesKeptMs,
      })
      // Another leader was here: what it has added is seen the next time.
      if (written === null) return
    }
    changed.add(hourKey(msOfKey(minute)))
    for (const { key } of parts) await notes.remove(PART_SPACE, key)
  }

  async function foldHours(): Promise<void> {
    for (const hour of changed) {
      if (msOfKey(hour) + HOUR_MS + MINUTE_MS > clock.nowMs()) continue
      if (await foldHour(hour)) changed.delete(hour)
    }
  }

  /** An hour is what its minutes are: computed anew, so that it may be done any number of times. */
  async function foldHour(hour: string): Promise<boolean> {
    const note = await notes.get(HOUR_SPACE, hour)
    const prefix = hour.slice(0, -1)
    const minutes = (await notes.list(MINUTE_SPACE, 60, prefix)).filter(({ key }) => key.startsWith(`${prefix}:`))
    const series = sumSeries(minutes.flatMap(({ value }) => decodeRollup(value)?.series ?? []))
    const value = encodeRollup({ parts: [], series })
    if (series.length === 0 || note?.value === value) return true
    const terms = { expectVersion: note?.version ?? 0, ttlMs: DEFAULTS.rollupHoursKeptMs }
    return (await notes.put({ space: HOUR_SPACE, key: hour, value, ...terms })) !== null
  }

  return createLoop({ name: 'history of the store', runtime, pass })
}

function byMinute(found: Awaited<ReturnType<NoteStore['list']>>): ReadonlyMap<string, readonly Part[]> {
  const minutes = new Map<string, Part[]>()
  for (const { key, value } of found) {
    const minute = partOf(key)?.minute
    if (minute === undefined) continue
    const part = { key, series: decodeRollup(value)?.series ?? [] }
    const own = minutes.get(minute)
    if (own === undefined) minutes.set(minute, [part])
    else own.push(part)
  }
  return minutes
}
