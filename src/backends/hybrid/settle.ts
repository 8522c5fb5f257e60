// Settle: the ledger decides; when it has answered, the run is no longer in flight and its field goes to Redis with the next
// take, kept until that take is answered. Changes without a lease may concern a token that waits: see cancel.ts.
import type { WorkerId } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { cancelDispatched } from './cancel.ts'
import type { Hybrid } from './hybrid.ts'

export async function settleAll(
  hybrid: Hybrid,
  worker: WorkerId | null,
  transitions: readonly Transition[],
): Promise<readonly Verdict[]> {
  const { verdicts, dispatched } = await hybrid.ledger.settle(worker, transitions)
  hybrid.runtime.failpoint('hybrid.after-settle')
  for (let index = 0; index < transitions.length; index++) {
    const verdict = verdicts[index]
    if (verdict !== undefined && verdict !== 'busy') noteSettled(hybrid, transitions[index]!, verdict)
  }
  hybrid.liveStatus?.flush()
  return dispatched.length === 0 ? verdicts : cancelDispatched(hybrid, transitions, verdicts, dispatched)
}

/** `jobs.apply`: whoever runs it here is found by its lease; usually one worker has them all. */
export async function applyAll(hybrid: Hybrid, transitions: readonly Transition[]): Promise<readonly Verdict[]> {
  const workerOf = ({ guard: { lease } }: Transition): WorkerId | null =>
    lease === undefined ? null : (hybrid.sessions.holding({ lease })?.worker ?? null)
  if (hybrid.sessions.size <= 1) {
    const held = transitions.find((transition) => workerOf(transition) !== null)
    return settleAll(hybrid, held === undefined ? null : workerOf(held), transitions)
  }
  const workers = transitions.map(workerOf)
  const distinct = new Set(workers.filter((worker) => worker !== null))
  if (distinct.size <= 1) return settleAll(hybrid, [...distinct][0] ?? null, transitions)
  const verdicts: Verdict[] = []
  for (let from = 0; from < transitions.length;) {
    let to = from + 1
    while (to < transitions.length && workers[to] === workers[from]) to += 1
    verdicts.push(...(await settleAll(hybrid, workers[from] ?? null, transitions.slice(from, to))))
    from = to
  }
  return verdicts
}

function noteSettled(hybrid: Hybrid, transition: Transition, verdict: Verdict): void {
  const { edge, guard } = transition
  if (edge === 'report' || guard.lease === undefined) return
  for (const session of hybrid.sessions.all()) {
    const flight = session.settled({ lease: guard.lease })
    if (flight === undefined) continue
    hybrid.liveStatus?.ended(session.worker, flight, transition, verdict)
    return
  }
}
