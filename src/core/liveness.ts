// Who is dead? A worker whose beat has not changed for one ttl, as watched without a gap by the one who
// judges, on its own monotonic clock. No wall clock is compared, so skew cannot kill anybody; and after
// an outage, a restart of the store or a blocked loop of the watcher, everybody gets a full ttl again.
import type { WorkerId } from './job.ts'
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

/** One pass: the workers as the store lists them now, and the monotonic time at which the call was begun. */
export function watchBeats(
  watch: Watch,
  workers: readonly WatchedWorker[],
  nowMs: number,
  ttlMs: number,
): { readonly watch: Watch; readonly dead: readonly { readonly id: WorkerId; readonly beat: number }[] } {
  const gap = nowMs - watch.lastPassMs > ttlMs / 2 && !isPlanted('reap-without-watching')
  const seen = new Map<WorkerId, BeatSeen>()
  const dead: { id: WorkerId; beat: number }[] = []
  for (const worker of workers) {
    if (worker.state === 'dead') continue
    const before = watch.seen.get(worker.id)
    const still = before !== undefined && before.beat === worker.beat && !gap
    const sinceMs = still ? before.sinceMs : nowMs
    seen.set(worker.id, { beat: worker.beat, sinceMs })
    const silentMs = isPlanted('reap-without-watching')
      ? before === undefined
        ? 0
        : nowMs - sinceMs + ttlMs * 0.75
      : nowMs - sinceMs
    if (silentMs >= ttlMs) dead.push({ id: worker.id, beat: worker.beat })
  }
  return { watch: { seen, lastPassMs: nowMs }, dead }
}
