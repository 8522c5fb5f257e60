// Gates: what a job must pass, in this order, before it is ready. Limits work by admission: a job that
// may not run yet waits in its place, so a claim never has to filter.
import type { ParentFailurePolicy, WaitReason } from './job.ts'

export interface GateFacts {
  readonly pendingParents: number
  readonly runAtMs: number
  readonly nowMs: number
  /** Until the place in the rate line; 0 when there is no limit or its place was reserved before. */
  readonly rateWaitMs: number
  /** Another job of its group is ahead. */
  readonly groupBusy: boolean
  /** Free slots of its key and of its queue; Infinity without a limit or when it holds one. */
  readonly keySlotsFree: number
  readonly queueSlotsFree: number
}

export type Admission =
  | { readonly status: 'queued' }
  | { readonly status: 'scheduled'; readonly runAtMs: number; readonly waitsFor: WaitReason }
  | { readonly status: 'blocked'; readonly waitsFor: 'parents' | 'group' | 'queue-slot' | 'key-slot' }

const QUEUED: Admission = { status: 'queued' }

/**
 * Parents, then time, then the rate line, then the group, then the slots. The rate line comes before
 * the group and the slots so that nobody holds those while waiting for a token; the key slot comes
 * before the queue slot, the same order for everyone, so two jobs never wait for each other.
 */
export function admit(facts: GateFacts): Admission {
  if (facts.pendingParents > 0) return { status: 'blocked', waitsFor: 'parents' }
  if (facts.runAtMs > facts.nowMs) return { status: 'scheduled', runAtMs: facts.runAtMs, waitsFor: 'delay' }
  if (facts.rateWaitMs > 0) {
    return { status: 'scheduled', runAtMs: facts.nowMs + facts.rateWaitMs, waitsFor: 'rate' }
  }
  if (facts.groupBusy) return { status: 'blocked', waitsFor: 'group' }
  if (facts.keySlotsFree <= 0) return { status: 'blocked', waitsFor: 'key-slot' }
  if (facts.queueSlotsFree <= 0) return { status: 'blocked', waitsFor: 'queue-slot' }
  return QUEUED
}

/** What the end of a parent means for a job that waits for it. */
export function parentEnded(
  parentStatus: 'completed' | 'failed' | 'cancelled',
  policy: ParentFailurePolicy,
): 'satisfied' | 'fail' | 'cancel' {
  return parentStatus === 'completed' || policy === 'continue' ? 'satisfied' : policy
}
