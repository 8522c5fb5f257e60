// Claims that stand. A claim that got nothing may stand: the insert that brings jobs next hands some of them
// over in its own atom, as that claim would have taken them, and tells the worker. It saves the worker a bell and a call.
//
// A claim is answered like that at most once, and never after the worker has claimed again or has asked for its holdings
// with a higher number. The message may be lost or late, so the next claim says what it should have brought (`answered`).
import type { ClaimedJob, WorkerId } from '../core/job.ts'

export interface HandOver {
  /** Of the claim that is answered. */
  readonly claimNo: number
  /** Of the claim of this worker that was answered like this before; 0: none was. */
  readonly before: number
  readonly jobs: readonly ClaimedJob[]
}

/** False: it was not taken, so whoever counts it as handed out must not. */
export type Ear = (handOver: HandOver) => boolean | undefined

/** Messages may have been lost: with the connection, which is a new one now, or this once, and the next may be as well. */
export type OnBack = (why: 'connected' | 'in-doubt') => void

export interface HandOvers {
  /** Resolves when the store can tell this worker. Answers the way to stop. */
  listen(worker: WorkerId, onHandOver: Ear, onBack: OnBack): Promise<() => void>
}
