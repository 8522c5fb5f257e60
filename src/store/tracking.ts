// A store that keeps something about jobs beside them, which a crash, an eviction or a hand may leave behind. Sweeping is
// optional and idempotent, in bounded steps; it takes away only what provably belongs to nothing any more.

export interface SweepRequest {
  /** Where the last step stopped; null: at the beginning. */
  readonly cursor: string | null
  /** Keys that this step is asked to look at, about. */
  readonly count: number
  readonly isDryRun: boolean
}

export interface SweepReply {
  /** Null: everything was looked at. */
  readonly cursor: string | null
  readonly counts: SweepCounts
}

export interface SweepCounts {
  /** Keys of this store that were looked at. */
  readonly seen: number
  /** Keys that belonged to nothing, and were removed unless it was a dry run. */
  readonly dead: number
  /** Keys that had lost their expiry, and got one unless it was a dry run. */
  readonly endless: number
  /** Keys under our prefix that no rule of this store knows. They are left alone. */
  readonly foreign: number
}

export interface Sweepable {
  sweepTracking(request: SweepRequest): Promise<SweepReply>
}

export function isSweepable<Value extends object>(backend: Value): backend is Value & Sweepable {
  return 'sweepTracking' in backend && typeof backend.sweepTracking === 'function'
}
