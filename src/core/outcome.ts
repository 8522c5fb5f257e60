// How a run can end, as values. A handler returns or throws one of the signals below to say more than
// "done" or "failed"; the executor turns everything that can happen into one Outcome.
import { parseDuration } from './duration.ts'
import type { Duration } from './duration.ts'
import { LIMITS } from './limits.ts'
import type { JsonText } from './json.ts'

export type Outcome =
  | { readonly kind: 'done'; readonly result: JsonText | null }
  | { readonly kind: 'threw'; readonly error: unknown }
  | { readonly kind: 'timed-out'; readonly timeoutMs: number }
  | { readonly kind: 'retry-after'; readonly delayMs: number; readonly reason: string }
  | { readonly kind: 'snooze'; readonly delayMs: number; readonly reason: string }
  | { readonly kind: 'release'; readonly reason: string }
  | { readonly kind: 'cancel'; readonly reason: string }
  | { readonly kind: 'fail'; readonly error: unknown }
  /** Claimed, never started. */
  | { readonly kind: 'returned' }
  /** Claimed, never started: no token of its rate limit. */
  | { readonly kind: 'deferred'; readonly waitMs: number }

type SignalOutcome = Extract<Outcome, { kind: 'retry-after' | 'snooze' | 'release' | 'cancel' | 'fail' }>

/** An ending that a handler asked for. It is an Error so that it can be thrown from deep inside. */
export class OutcomeSignal extends Error {
  override readonly name = 'OutcomeSignal'
  readonly outcome: SignalOutcome

  constructor(outcome: SignalOutcome, message: string) {
    super(message)
    this.outcome = outcome
  }
}

const DELAY_BOUNDS = { maxMs: LIMITS.delayMaxMs }

/** The run failed; try again after this time (counts as an attempt). */
export function retryAfter(delay: Duration, reason = 'the handler asked for a later retry'): OutcomeSignal {
  const delayMs = parseDuration(delay, 'retryAfter', DELAY_BOUNDS)
  return new OutcomeSignal({ kind: 'retry-after', delayMs, reason }, reason)
}

/** Nothing to do yet; run again after this time (does not count). */
export function snooze(delay: Duration, reason = 'snoozed'): OutcomeSignal {
  const delayMs = parseDuration(delay, 'snooze', DELAY_BOUNDS)
  return new OutcomeSignal({ kind: 'snooze', delayMs, reason }, reason)
}

/** Give the job back to the end of its queue (does not count). */
export function release(reason = 'released'): OutcomeSignal {
  return new OutcomeSignal({ kind: 'release', reason }, reason)
}

/** The work is no longer wanted: the job becomes `cancelled`. */
export function cancel(reason = 'cancelled by the handler'): OutcomeSignal {
  return new OutcomeSignal({ kind: 'cancel', reason }, reason)
}

/** The run failed and must not be tried again: the job becomes a dead letter. */
export function fail(reason: string | Error): OutcomeSignal {
  const error = typeof reason === 'string' ? new Error(reason) : reason
  return new OutcomeSignal({ kind: 'fail', error }, error.message)
}
