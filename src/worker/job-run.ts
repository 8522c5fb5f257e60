// One claimed job in this worker, from claim to verdict.
//
// States: buffered (claimed, waits for a slot) → running (its handler was called) → ended (an outcome is
// decided; whatever the handler still does is ignored). An abort gives the handler a grace to end by
// itself; after it the run ends without it.
import type { AnyJob } from '../core/definition.ts'
import type { ClaimedJob, LogLine, WorkerId } from '../core/job.ts'
import type { JsonText } from '../core/json.ts'
import type { Outcome } from '../core/outcome.ts'
import type { Transition } from '../core/transition.ts'
import type { RunTrace } from '../runtime/tracing.ts'
import type { Deadline } from './deadlines.ts'

/** Why a handler is told to stop. */
export interface AbortCause {
  readonly reason: Error
  /** How the run ends if the handler does not end it by itself; null: nobody waits for an outcome. */
  readonly outcome: Outcome | null
}

/** What a worker allows the runs of any job. */
export interface RunBounds {
  /** The longest a run may take here, whatever its job says. */
  readonly timeoutMaxMs: number
  /** Whoever fails here for the nth time fails for good, whatever its job says. */
  readonly attemptsMax: number
}

export class JobRun implements Deadline {
  readonly claimed: ClaimedJob
  readonly definition: AnyJob | undefined
  /** The life that claimed it. */
  readonly worker: WorkerId
  /** Monotonic: when it was claimed, then when it started. */
  readonly claimedMs: number
  startedMs = 0
  state: 'buffered' | 'running' | 'ended' = 'buffered'
  dueMs = Infinity
  /** What its job and its worker allow, whichever is less. */
  timeoutMs = Infinity
  abortCause: AbortCause | undefined
  #controller: AbortController | undefined
  readonly #onDeadline: (run: JobRun) => void

  /** What was reported and not yet sent. */
  progress: JsonText | undefined
  logLines: LogLine[] | undefined
  logLinesSent = 0
  /** The report that was sent and is not answered yet. */
  reportOut: Transition | undefined

  /** It was sent inside a transaction of the handler; what became of that is unknown here. */
  completion: Transition | undefined
  /** The result that came with it: whatever the handler returns. */
  given: { readonly result: JsonText | null } | undefined

  /** Where somebody records spans. */
  trace: RunTrace | undefined

  constructor(
    claimed: ClaimedJob,
    definition: AnyJob | undefined,
    worker: WorkerId,
    claimedMs: number,
    onDeadline: (run: JobRun) => void,
  ) {
    this.claimed = claimed
    this.definition = definition
    this.worker = worker
    this.claimedMs = claimedMs
    this.#onDeadline = onDeadline
  }

  get over(): boolean {
    return this.state === 'ended'
  }

  get hasUnsentReport(): boolean {
    return this.progress !== undefined || this.logLines !== undefined
  }

  expire(): void {
    this.#onDeadline(this)
  }

  /** Made on demand: most handlers never look at their signal, and a controller costs more than a whole no-op job. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController()
      if (this.abortCause !== undefined) this.#controller.abort(this.abortCause.reason)
    }
    return this.#controller.signal
  }

  abort(cause: AbortCause): void {
    this.abortCause = cause
    this.#controller?.abort(cause.reason)
  }
}
