// Looks once a minute how much waits and runs in each queue of one store, and keeps it there for charts. Behind the leader of
// maintenance; a second leader writes the same minute again, which is one look all the same.
import { readyIn } from '../core/job.ts'
import { decodeDepths, depthsOf, encodeDepths, sumDepths } from '../core/depth.ts'
import { isMillraceError } from '../core/errors.ts'
import { DEFAULTS } from '../core/limits.ts'
import { HOUR_MS, hourKey, MINUTE_MS, minuteKey } from '../core/rollup.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { createLoop } from '../runtime/service.ts'
import type { Service } from '../runtime/service.ts'
import type { Backend } from '../store/ports.ts'
import { DEPTH_HOUR_SPACE, DEPTH_MINUTE_SPACE } from './rollup-spaces.ts'

export interface DepthParts {
  readonly runtime: Runtime
  readonly backend: Pick<Backend, 'notes' | 'query' | 'schedules'>
  readonly isLeading: () => boolean
}

/** A worker that runs for a moment need not look. */
const FIRST_MS = 15_000
const FOLLOW_MS = 20_000
/** Hours that a new leader looks at again. */
const HOURS_BACK = 3

export function createDepths({ runtime, backend, isLeading }: DepthParts): Service {
  const { clock } = runtime
  const { notes, query, schedules } = backend
  /** Of the last hours, those that are written. */
  let folded: readonly string[] = []
  let hasWaited = false
  let isRefused = false

  async function pass(): Promise<number> {
    if (isRefused) return HOUR_MS
    if (!hasWaited) {
      hasWaited = true
      return FIRST_MS
    }
    if (!isLeading()) {
      folded = []
      return FOLLOW_MS
    }
    try {
      await look()
      await foldHours()
    } catch (error) {
      // A user of the store who may not count: nobody is served by trying that for ever.
      if (!isMillraceError(error) || error.code !== 'STORE_REFUSED') throw error
      isRefused = true
    }
    // In the middle of the next minute: clocks that differ a little then still name the same one.
    const nowMs = clock.nowMs()
    return (Math.floor(nowMs / MINUTE_MS) + 1.5) * MINUTE_MS - nowMs
  }

  async function look(): Promise<void> {
    const [counts, { nowMs }] = await Promise.all([query.counts(), schedules.due(0)])
    const seen = counts.map(({ queue, counts: byStatus, oldestReadyAtMs }) => ({
      queue,
      ready: readyIn(byStatus),
      running: byStatus.running,
      oldestReadyMs: oldestReadyAtMs === null ? 0 : Math.max(0, nowMs - oldestReadyAtMs),
    }))
    const value = encodeDepths(depthsOf(seen))
    const key = minuteKey(clock.nowMs())
    await notes.put({ space: DEPTH_MINUTE_SPACE, key, value, ttlMs: DEFAULTS.rollupMinutesKeptMs })
  }

  async function foldHours(): Promise<void> {
    const hours = Array.from({ length: HOURS_BACK }, (_, back) => hourKey(clock.nowMs() - (back + 1) * HOUR_MS))
    for (const hour of hours) if (!folded.includes(hour)) await foldHour(hour)
    folded = hours
  }

  /** Computed anew of its minutes, so it may be done any number of times. */
  async function foldHour(hour: string): Promise<void> {
    const prefix = hour.slice(0, -1)
    const minutes = (await notes.list(DEPTH_MINUTE_SPACE, 60, prefix)).filter(({ key }) => key.startsWith(`${prefix}:`))
    const sum = sumDepths(minutes.flatMap(({ value }) => decodeDepths(value) ?? []))
    if (sum.looks === 0) return
    const write = { space: DEPTH_HOUR_SPACE, key: hour, value: encodeDepths(sum) }
    await notes.put({ ...write, ttlMs: DEFAULTS.rollupHoursKeptMs })
  }

  return createLoop({ name: 'depths of the queues', runtime, pass })
}
