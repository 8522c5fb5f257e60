// The seam to distributed tracing: spans around an enqueue, a run and its settlement. Whoever calls asks first whether it is
// on, and computes nothing otherwise.
import type { ClaimedJob, NewJob, WorkerId } from '../core/job.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Transition, Verdict } from '../core/transition.ts'

export interface Tracing {
  /** Is there anybody who records spans? Cheap: it is asked for every job. */
  isOn(): boolean
  /** One span around one write; the jobs that are given on carry its context. */
  enqueue<Reply>(jobs: readonly NewJob[], write: (jobs: readonly NewJob[]) => Promise<Reply>): Promise<Reply>
  run(claimed: ClaimedJob, worker: WorkerId): RunTrace
}

/** The spans of one run: its handler, then its settlement. */
export interface RunTrace {
  /** Calls the handler with the span of the run as the active one. */
  within<Value>(call: () => Value): Value
  /** The handler has ended; the settlement begins. */
  ended(outcome: Outcome): void
  /** The store has answered. */
  settled(transition: Transition, verdict: Verdict): void
}
