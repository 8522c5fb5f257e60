// Who is dead? A worker whose beat has not changed for one ttl, as watched without a gap by the one who
// judges, on its own monotonic clock. No wall clock is compared, so skew cannot kill anybody; and after
// an outage, a restart of the store or a blocked loop of the watcher, everybody gets a full ttl again.
import type { WorkerId } from './job.ts'
import { DEFAULTS } from './limits.ts'
import { isPlanted } from './planted.ts'

export interface BeatSeen {
  readonly beat: number
  readonly sinceMs: number
}

export interface Watch {
  readonly seen: ReadonlyMap<WorkerId, BeatSeen>
  readonly lastPassMs: number
}

export const EMPTY_WATCH: Watch = { seen: new Map(), lastPassMs: Number.NEGATIVE_INFINITY }

export interface WatchedWorker {
  readonly id: WorkerId
  readonly beat: number
  readonly state: 'alive' | 'dead'
}

export interface Pass {
  /** Monotonic time before the store was asked, and after it had answered. */
  readonly askedMs: number
  readonly answeredMs: number
}

export interface Seen {
  readonly watch: Watch
  readonly dead: readonly { readonly id: WorkerId; readonly beat: number }[]
  /** When the next of the others is dead, if no beat of it comes until then. */
  readonly nextDeathMs: number
}

/**
 * One pass over the workers as the store listed them. A beat counts as seen when the answer came and is
 * compared with when the next question was asked: a slow call can only make the judge more patient.
 */
export function watchBeats(
  watch: Watch,
  workers: readonly WatchedWorker[],
  { askedMs, answeredMs }: Pass,
  ttlMs: number,
): Seen {
  const hasty = isPlanted('reap-without-watching')
  // A long wait between two looks, or for one answer, says nothing about the workers: everybody gets a full ttl.
  const gap = Math.max(askedMs - watch.lastPassMs, answeredMs - askedMs) > ttlMs / 2 && !hasty
  const seen = new Map<WorkerId, BeatSeen>()
  const dead: { id: WorkerId; beat: number }[] = []
  let nextDeathMs = Infinity
  for (const worker of workers) {
    if (worker.state === 'dead') continue
    const before = watch.seen.get(worker.id)
    const still = before !== undefined && before.beat === worker.beat && !gap
    const sinceMs = still ? before.sinceMs : hasty ? watch.lastPassMs : answeredMs
    seen.set(worker.id, { beat: worker.beat, sinceMs })
    if (askedMs - sinceMs >= ttlMs) dead.push({ id: worker.id, beat: worker.beat })
    else nextDeathMs = Math.min(nextDeathMs, sinceMs + ttlMs)
  }
  return { watch: { seen, lastPassMs: answeredMs }, dead, nextDeathMs }
}

/** Within this time after its last heartbeat the jobs of a dead worker have been given to others. */
const SILENT_MAX_MS = 1.5 * DEFAULTS.workerTtlMs

/** Nobody declares workers dead while nobody runs maintenance, so the age of the heartbeat counts too. */
export function isLive(
  worker: { readonly state: 'alive' | 'dead'; readonly lastBeatAtMs: number },
  nowMs: number,
): boolean {
  return worker.state === 'alive' && nowMs - worker.lastBeatAtMs <= SILENT_MAX_MS
}
