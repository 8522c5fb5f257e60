// Self-check of a session that is suspect of a queue: a take had an unknown outcome, or a token was not started. What Redis
// says this session holds and is not in flight goes back to ready by (id, lease), without an attempt; then Redis forgets
// it. `holdings` first raises the number of the last take, so a take that is still on its way cannot land after it.
import { isPlanted } from '../../core/planted.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Hybrid } from './hybrid.ts'
import type { EpochTag, TokenField } from './ports.ts'
import type { Session, SessionQueue } from './session.ts'
import { refOf, refsIn } from './token-text.ts'

/**
 * The half of PostgreSQL: rows marked as run by this session that it does not run. Once at a time, after the claims under way
 * and before any later one: a row that a claim is just bringing would look as if nobody knew it. `holdings` fences claims
 * that were given up and may still be on their way. Throws when the outcome is unknown.
 */
export async function checkMarked(hybrid: Hybrid, session: Session, lastClaimNo: number): Promise<void> {
  if (session.checking === undefined && session.isDoubtful) {
    session.checking = lookForMarked(hybrid, session, lastClaimNo).finally(() => {
      session.checking = undefined
    })
  }
  await session.checking
}

async function lookForMarked(hybrid: Hybrid, session: Session, lastClaimNo: number): Promise<void> {
  await endClaims(hybrid, session, lastClaimNo)
  const { clock } = hybrid.runtime
  const beganMs = clock.monoMs()
  const asking = hybrid.store.jobs.holdings(session.worker, lastClaimNo)
  const marked = await bounded(clock, hybrid.times.ledgerMs, 'jobs.holdings', asking)
  const unknown = marked.filter(({ lease }) => !session.inFlight.has(lease))
  if (unknown.length > 0) await hybrid.ledger.giveBack(session.worker, unknown)
  session.looked(beganMs)
}

/** Those that do not end soon hand out nothing any more, whenever they do. */
async function endClaims({ runtime, times }: Hybrid, session: Session, lastClaimNo: number): Promise<void> {
  const ended = Promise.allSettled(session.claiming)
  await bounded(runtime.clock, times.raceMs, 'the claims under way', ended).catch(() => {
    session.fencedClaimNo = Math.max(session.fencedClaimNo, lastClaimNo)
    session.claiming.clear()
  })
}

/** False: not now, the queue stays suspect. Never throws. */
export async function checkSelf(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  if (own.taking > 0 || own.checking !== undefined) return false
  const checking = check(hybrid, session, own, tag)
  own.checking = checking.then(() => undefined)
  const isSure = await checking
  own.checking = undefined
  return isSure
}

async function check(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  // What is suspected from here on is not answered by what was held before.
  own.isSuspect = false
  const isSure = await isRidOfStrays(hybrid, session, own, tag).catch(() => false)
  if (!isSure) own.isSuspect = true
  return isSure && !own.isSuspect
}

async function isRidOfStrays(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  const { worker } = session
  const held = await heldFields(hybrid, session, own, tag)
  if (held === undefined) return false
  const unknown = own.notDone(held).filter((field) => !session.inFlight.has(refOf(field).lease))
  if (unknown.length > 0) {
    hybrid.runtime.failpoint('hybrid.before-give-back')
    const moved = await hybrid.ledger.giveBack(worker, refsIn(unknown))
    hybrid.tally.add(own.name, 'returned', moved)
    const dropped = await hybrid.calls.gated(own.name, tag, (race) => race.drop(own.name, tag, worker, unknown, false))
    if (dropped === undefined) return false
  }
  return true
}

/**
 * Everything this session holds in Redis; nothing else comes but by later takes. Undefined: the epoch is another. What was handed over
 * is among it, whether it was heard of or not: whoever asks gives back what is not known here.
 */
export async function heldFields(
  hybrid: Hybrid,
  { worker }: Session,
  own: SessionQueue,
  tag: EpochTag,
): Promise<readonly TokenField[] | undefined> {
  const fields: TokenField[] = []
  const { c: fenced } = own
  let cursor = '0'
  do {
    const c = isPlanted('hybrid-holdings-keep-number') ? 0 : own.c
    const request = { session: worker, c, cursor }
    const page = await hybrid.calls.gated(own.name, tag, (race) => race.holdings(own.name, tag, request))
    if (page === undefined) return undefined
    fields.push(...page.fields)
    cursor = page.cursor
  } while (cursor !== '0')
  if (!isPlanted('hybrid-hand-over-not-fenced')) own.hands.looked(fenced)
  return fields
}
