// What this process counted in a minute goes into the store as a part of that minute, once a minute and at the end. A part
// has a key of its own, so that writing it again after a lost reply changes nothing.
//
// A producer that lived for less than a minute writes nothing: a script that enqueues one job should cost one call.
import { isMillraceError } from '../core/errors.ts'
import { isIdle, startedRuns, subtractSeries } from '../core/job-series.ts'
import type { JobSeries } from '../core/job-series.ts'
import type { JsonText } from '../core/json.ts'
import { DEFAULTS } from '../core/limits.ts'
import { encodeRollup, HOUR_MS, MINUTE_MS, minuteKey, partKey } from '../core/rollup.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { NoteStore } from '../store/note-store.ts'
import { PART_SPACE } from './rollup-spaces.ts'

export interface RecorderParts {
  readonly runtime: Runtime
  /** Everything that was counted since the start of the process. */
  readonly series: () => readonly JobSeries[]
  /** Where the jobs of a queue live. */
  readonly notesOf: (queue: string) => NoteStore
}

interface Pending {
  readonly notes: NoteStore
  readonly key: string
  readonly value: JsonText
}

/** Parts that wait for a store that is away; then the oldest are given up. */
const PENDING_MAX = 60
/** All processes look at their counts when a minute is over, and write them one after the other. */
const SPREAD_MS = 5_000
const LAST_FLUSH_MAX_MS = 2_000

export function createRecorder({ runtime, series, notesOf }: RecorderParts): Service {
  const { clock, logger } = runtime
  let before = new Map<string, JobSeries>()
  let pending: Pending[] = []
  let startMs = clock.nowMs()
  let process: string | undefined
  let cuts = 0
  let writeAtMs = -Infinity
  let isRefused = false

  /** What was counted since the last cut belongs to the minute in which that was made. */
  function cut(): void {
    const minute = minuteKey(startMs)
    startMs = clock.nowMs()
    cuts += 1
    const counted = series()
    const fresh = counted
      .map((one) => (before.has(nameOf(one)) ? subtractSeries(one, before.get(nameOf(one))!) : one))
      .filter((one) => !isIdle(one))
    before = new Map(counted.map((one) => [nameOf(one), one]))
    if (fresh.length === 0) return
    process ??= runtime.newId().slice(-12)
    const id = `${process}.${cuts}`
    for (const [notes, own] of byStore(fresh, notesOf)) {
      pending.push({ notes, key: partKey(minute, id), value: encodeRollup({ parts: [], series: own }) })
    }
    const lost = pending.length - PENDING_MAX
    if (lost <= 0) return
    pending = pending.slice(lost)
    logger.warn({ minutes: lost }, 'history is lost: the store has not taken what was counted for an hour')
  }

  /** A user of the store who may only enqueue writes no history, and says so once. */
  function giveUp(error: unknown): void {
    isRefused = true
    pending = []
    logger.info({ error }, 'this process is not in the history: the store does not let it write notes')
  }

  /** A store that is away keeps only its own parts waiting. */
  async function write(): Promise<void> {
    const away = new Map<NoteStore, unknown>()
    for (const next of pending) {
      const { notes, key, value } = next
      if (away.has(notes)) continue
      try {
        await notes.put({ space: PART_SPACE, key, value, ttlMs: DEFAULTS.rollupMinutesKeptMs })
      } catch (error) {
        if (isMillraceError(error, 'STORE_REFUSED')) {
          giveUp(error)
          return
        }
        away.set(notes, error)
        continue
      }
      // Only now: a write whose fate is unknown is made again.
      pending = pending.filter((one) => one !== next)
    }
    const [failure] = away.values()
    if (away.size > 0) throw failure
  }

  async function pass(): Promise<number> {
    if (isRefused) return HOUR_MS
    const nowMs = clock.nowMs()
    // A clock that went back is no reason to wait for it.
    if (nowMs >= nextMinute(startMs) || nowMs < startMs) {
      cut()
      writeAtMs = clock.monoMs() + spreadOf(process)
    }
    if (clock.monoMs() >= writeAtMs) await write()
    const untilCutMs = Math.ceil(Math.max(nextMinute(startMs) - clock.nowMs(), 0))
    return pending.length === 0 ? untilCutMs : Math.min(untilCutMs, Math.ceil(Math.max(writeAtMs - clock.monoMs(), 0)))
  }

  const loop = createLoop({ name: 'history', runtime, pass })
  return {
    async start() {
      startMs = clock.nowMs()
      await loop.start()
    },
    async stop() {
      await loop.stop()
      if (isRefused) return
      if (cuts === 0 && !series().some((one) => startedRuns(one) > 0)) return
      cut()
      await bounded(clock, LAST_FLUSH_MAX_MS, 'the last part of the history', write()).catch((error: unknown) => {
        logger.warn({ error }, 'what was counted in the last minute is not in the history')
      })
    },
  }
}

function nextMinute(atMs: number): number {
  return (Math.floor(atMs / MINUTE_MS) + 1) * MINUTE_MS
}

/** The same for one process, different for others: the id is random. */
function spreadOf(process: string | undefined): number {
  return process === undefined ? 0 : (Number.parseInt(process.slice(-4), 16) / 0x1_0000) * SPREAD_MS
}

function nameOf({ queue, kind }: JobSeries): string {
  return `${queue}\0${kind}`
}

function byStore(
  series: readonly JobSeries[],
  notesOf: RecorderParts['notesOf'],
): ReadonlyMap<NoteStore, readonly JobSeries[]> {
  const stores = new Map<NoteStore, JobSeries[]>()
  for (const one of series) {
    const notes = notesOf(one.queue)
    const own = stores.get(notes)
    if (own === undefined) stores.set(notes, [one])
    else own.push(one)
  }
  return stores
}
