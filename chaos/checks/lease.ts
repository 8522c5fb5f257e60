// Leases of a worker that has fallen silent: how long they surely hold, so that nobody else may begin its jobs, and from when
// on it must not begin any itself (docs/reliability-model.md).
import { DEFAULTS } from '../../src/core/limits.ts'
import type { Books } from '../books.ts'
import type { Robbed } from './delivery.ts'

/** Both are the same share of a ttl that a scenario sets, see systems/millrace.ts. */
const BEAT_SHARE = DEFAULTS.heartbeatMs / DEFAULTS.workerTtlMs
/** That a beat was late on a busy machine, and the fault a moment older than the harness has seen. */
const MARGIN_SHARE = DEFAULTS.trustMarginMs / DEFAULTS.workerTtlMs

/**
 * Each with the moment until which its leases surely held: a ttl after its last beat, which may have been due when it fell
 * silent.
 */
export function withLeases(robbed: readonly Robbed[], ttlMs: number = DEFAULTS.workerTtlMs): readonly Robbed[] {
  const sureMs = ttlMs * (1 - BEAT_SHARE - MARGIN_SHARE)
  return robbed.map((one) => ({ heldUntilMs: one.fromMs + sureMs, ...one }))
}

/** Begun by a worker that was cut off, a ttl and more after it could last be heard: somebody else may have had the job. */
export function begunInDoubt(
  { runs }: Books,
  robbed: readonly Robbed[],
  ttlMs: number = DEFAULTS.workerTtlMs,
): readonly string[] {
  const isInDoubt = (pid: number, atMs: number): boolean =>
    robbed.some((one) => one.pid === pid && atMs > one.fromMs + ttlMs && atMs < one.toMs)
  return runs.flatMap(({ id, pid, startMs }) => (isInDoubt(pid, startMs) ? [id] : []))
}
