// How runs end in the tests: transitions, built by core/decide.ts as the worker and the client build them.
import { EDGES } from '../../src/core/edges.ts'
import { decideOutcome } from '../../src/core/decide.ts'
import type { RunFacts } from '../../src/core/decide.ts'
import type { RunPolicy } from '../../src/core/policy.ts'
import type { Outcome } from '../../src/core/outcome.ts'
import { fixed } from '../../src/core/retry.ts'
import type { Transition } from '../../src/core/transition.ts'

export const POLICY: RunPolicy = { retry: fixed({ delay: 0 }), classifiers: [], unknownErrors: 'retry' }

export function ended(run: RunFacts, outcome: Outcome, ranMs = 0): Transition {
  return decideOutcome(run, { outcome, ranMs, nowMs: 0 }, POLICY, () => 0)
}

export function completed(run: RunFacts, result: string | null = null, ranMs = 0): Transition {
  return ended(run, { kind: 'done', result }, ranMs)
}

/** `retry` while attempts are left, then `fail`. */
export function retried(run: RunFacts, delayMs = 0, ranMs = 0): Transition {
  return ended(run, { kind: 'retry-after', delayMs, reason: 'the run failed' }, ranMs)
}

export function failed(run: RunFacts, message = 'the run failed for good', ranMs = 0): Transition {
  return ended(run, { kind: 'fail', error: new Error(message) }, ranMs)
}

export function snoozed(run: RunFacts, delayMs: number): Transition {
  return ended(run, { kind: 'snooze', delayMs, reason: 'nothing to do yet' })
}

export function released(run: RunFacts): Transition {
  return ended(run, { kind: 'release', reason: 'the worker stops' })
}

export function returned(run: RunFacts): Transition {
  return ended(run, { kind: 'returned' })
}

export function deferred(run: RunFacts, waitMs: number): Transition {
  return ended(run, { kind: 'deferred', waitMs })
}

export function cancelledByHandler(run: RunFacts): Transition {
  return ended(run, { kind: 'cancel', reason: 'no longer wanted' })
}

/** What maintenance decides for the run of a dead worker, with the choice of edge left to the test. */
export function expired(run: RunFacts, delayMs = 0): Transition {
  const guard = { from: EDGES.expire.from, lease: run.lease }
  const to = delayMs > 0 ? 'scheduled' : 'queued'
  return { jobId: run.id, edge: 'expire', guard, to, delayMs, waitsFor: 'retry', attempt: 'count', crash: true }
}

export function expiredForGood(run: RunFacts): Transition {
  const guard = { from: EDGES.expireForGood.from, lease: run.lease }
  return { jobId: run.id, edge: 'expireForGood', guard, to: 'failed', attempt: 'count', crash: true }
}
