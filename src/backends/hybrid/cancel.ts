// Cancelling, and removing, a job that is dispatched: its token is revoked first, then its row is changed under the lease.
// A token that is absent may be running under an older epoch: then only under the barrier. A token in flight, or no Redis to
// ask: the row is flagged, its worker learns it by its beat, and requeue and settle obey it.
import { isPlanted } from '../../core/planted.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { Hybrid } from './hybrid.ts'
import type { DispatchedRow, Revoked } from './ports.ts'
import { fieldOf } from './token-text.ts'

/** A race that is lost so often is left to the flag. */
const TRIES = 5

/** The verdicts with what could be done about the rows that were dispatched. */
export async function cancelDispatched(
  hybrid: Hybrid,
  transitions: readonly Transition[],
  before: readonly Verdict[],
  dispatched: readonly DispatchedRow[],
): Promise<readonly Verdict[]> {
  const verdicts = [...before]
  for (const row of dispatched) {
    const transition = transitions[row.index]!
    const verdict = await cancelOne(hybrid, transition, row)
    verdicts[row.index] = verdict
    if (verdict !== 'applied') continue
    // The request that follows for a job that runs: it does not any more, or is gone.
    const next = transitions[row.index + 1]
    if (next?.edge !== 'requestCancel' || next.jobId !== transition.jobId) continue
    verdicts[row.index + 1] = transition.edge === 'remove' ? 'missing' : 'stale'
  }
  return verdicts
}

async function cancelOne(hybrid: Hybrid, transition: Transition, first: DispatchedRow): Promise<Verdict> {
  const { ledger } = hybrid
  let row = first
  for (let tryNo = 1; tryNo <= TRIES; tryNo++) {
    // What this process believes of the queue may be old: who cancels need not work on it.
    await hybrid.epochs.refresh([row.queue])
    const revoked = await revoke(hybrid, transition, row)
    if (revoked === 'revoked' || revoked === 'absent') {
      const { epoch } = hybrid.view.row(row.queue) ?? { epoch: 0 }
      const needsBarrier = revoked === 'absent' && !isPlanted('hybrid-cancel-without-barrier')
      const barrierOf = needsBarrier ? { queue: row.queue, epoch } : null
      hybrid.runtime.failpoint('hybrid.after-revoke')
      const verdict = await ledger.settleRevoked(transition, row.lease, barrierOf)
      if (verdict !== 'stale') return verdict
    } else {
      const worker = revoked === 'unknown' ? null : revoked.session
      const { jobId } = transition
      const flagged = await ledger.flagCancel({ jobId, lease: row.lease }, worker, transition.edge === 'remove')
      if (flagged) return 'stale'
    }
    // It moved on, or the barrier does not hold yet: look again.
    const again = await ledger.settle(null, [transition])
    const found = again.dispatched[0]
    if (found === undefined) return again.verdicts[0] ?? 'missing'
    row = found
  }
  await ledger.flagCancel({ jobId: transition.jobId, lease: row.lease }, null, transition.edge === 'remove')
  return 'stale'
}

async function revoke(
  hybrid: Hybrid,
  { jobId }: Transition,
  { queue, lease }: DispatchedRow,
): Promise<Revoked | 'unknown'> {
  if (isPlanted('hybrid-cancel-without-revoke')) return 'revoked'
  const tag = hybrid.view.tag(queue)
  if (hybrid.watch.isOpen(queue)) return 'unknown'
  // Without tokens there is nothing to revoke; what was dispatched before is a matter of the barrier.
  if (tag === null) return hybrid.view.row(queue)?.mode === 'ledger' ? 'absent' : 'unknown'
  try {
    const fields = [fieldOf({ jobId, lease })]
    const reply = await hybrid.calls.gated(queue, tag, (race) => race.revoke(queue, tag, fields))
    return reply?.[0] ?? 'unknown'
  } catch {
    return 'unknown'
  }
}
