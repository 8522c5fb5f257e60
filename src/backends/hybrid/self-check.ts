// Self-check of a session that is suspect of a queue: a take had an unknown outcome, or a token was not started. What Redis
// says this session holds and is not in flight goes back to ready by (id, lease), without an attempt; then Redis forgets
// it. `holdings` first raises the number of the last take, so a take that is still on its way cannot land after it.
import { isPlanted } from '../../core/planted.ts'
import type { Hybrid } from './hybrid.ts'
import type { EpochTag, TokenField } from './ports.ts'
import type { Session, SessionQueue } from './session.ts'
import { refOf } from './token-text.ts'

/**
 * The half of PostgreSQL: rows marked as run by this session that it does not run, because an adoption marked a token that
 * was not handed out, a claim of the ledger was lost, or somebody who cancels marked it. Only with no claim under way but
 * the one that asks; `holdings` fences earlier ones that may still be on their way. Throws when the outcome is unknown.
 */
export async function checkMarked(hybrid: Hybrid, session: Session, lastClaimNo: number): Promise<void> {
  if (session.claiming > 1) return
  session.isDoubtful = false
  try {
    const marked = await hybrid.store.jobs.holdings(session.worker, lastClaimNo)
    const unknown = marked.filter(({ lease }) => !session.inFlight.has(lease))
    if (unknown.length > 0) await hybrid.ledger.giveBack(session.worker, unknown)
  } catch (error) {
    session.isDoubtful = true
    throw error
  }
}

/** False: not now, the queue stays suspect. Never throws. */
export async function checkSelf(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  if (own.taking > 0 || own.checking !== undefined) return false
  const checking = check(hybrid, session, own, tag)
  own.checking = checking.then(
    () => undefined,
    () => undefined,
  )
  try {
    return await checking
  } catch {
    return false
  } finally {
    own.checking = undefined
  }
}

async function check(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  const { worker } = session
  const held = await heldFields(hybrid, session, own, tag)
  if (held === undefined) return false
  const unknown = held.filter((field) => !session.inFlight.has(refOf(field).lease) && !own.isDone(field))
  if (unknown.length > 0) {
    hybrid.runtime.failpoint('hybrid.before-give-back')
    const moved = await hybrid.ledger.giveBack(worker, unknown.map(refOf))
    hybrid.tally.add(own.name, 'returned', moved)
    const dropped = await hybrid.calls.gated(own.name, tag, (race) => race.drop(own.name, tag, worker, unknown, false))
    if (dropped === undefined) return false
  }
  own.isSuspect = false
  return true
}

/** Everything this session holds in Redis, with later takes only. Undefined: the epoch is another. */
export async function heldFields(
  hybrid: Hybrid,
  { worker }: Session,
  own: SessionQueue,
  tag: EpochTag,
): Promise<readonly TokenField[] | undefined> {
  const fields: TokenField[] = []
  let cursor = '0'
  do {
    const c = isPlanted('hybrid-holdings-keep-number') ? 0 : own.c
    const request = { session: worker, c, cursor }
    const page = await hybrid.calls.gated(own.name, tag, (race) => race.holdings(own.name, tag, request))
    if (page === undefined) return undefined
    fields.push(...page.fields)
    cursor = page.cursor
  } while (cursor !== '0')
  return fields
}
