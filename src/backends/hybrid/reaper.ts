// The Redis half of reaping: sessions that have taken tokens and are not alive. First those that Redis knows, then, of them,
// those that PostgreSQL does not call alive: in the other order a session that was born in between would be taken for dead.
// Their tokens become rows of the dead session in PostgreSQL, where the rescuer settles them as those of any dead worker.
import type { WorkerId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { eachQueue } from './each-queue.ts'
import type { Hybrid } from './hybrid.ts'
import type { EpochTag } from './ports.ts'
import type { Session, SessionQueue } from './session.ts'
import { refsIn } from './token-text.ts'

/** Throws when an outcome is unknown; everything is repeated with the next pass. */
async function reap(hybrid: Hybrid, queue: string): Promise<void> {
  const tag = hybrid.view.tag(queue)
  if (tag === null || hybrid.watch.isOpen(queue)) return
  const reply = await hybrid.calls.gated(queue, tag, (race) => race.audit(queue, tag, 0, []))
  if (reply !== undefined) await buryDead(hybrid, queue, tag, reply.sessions)
}

/** Every queue that has tokens. */
export async function reapAll(hybrid: Hybrid): Promise<void> {
  await eachQueue(hybrid.runtime.logger, 'the reaper', hybrid.view.tokenRows(), ({ queue }) => reap(hybrid, queue))
}

/** Of sessions that Redis has named just now, those that are not alive. */
export async function buryDead(
  hybrid: Hybrid,
  queue: string,
  tag: EpochTag,
  sessions: readonly WorkerId[],
): Promise<number> {
  if (sessions.length === 0) return 0
  const dead = await hybrid.ledger.notAlive(sessions)
  for (const session of dead) await bury(hybrid, queue, tag, session)
  return dead.length
}

async function bury(hybrid: Hybrid, queue: string, tag: EpochTag, session: WorkerId): Promise<void> {
  let cursor = '0'
  do {
    const request = { session, c: 'dead', cursor } as const
    const page = await hybrid.calls.gated(queue, tag, (race) => race.holdings(queue, tag, request))
    if (page === undefined) return
    const refs = refsIn(page.fields)
    if (refs.length > 0) await hybrid.ledger.bequeath(session, refs)
    hybrid.runtime.failpoint('hybrid.bequeathed')
    cursor = page.cursor
    const isLast = cursor === '0'
    const dropped = await hybrid.calls.gated(queue, tag, (race) => race.drop(queue, tag, session, page.fields, isLast))
    if (dropped === undefined) return
  } while (cursor !== '0')
}

/**
 * Of a session that has ended by itself, after PostgreSQL has heard of it: what it still holds in Redis is known to be done, so
 * nobody has to look through what all the others hold. Whatever is in doubt, fails or takes too long is left to the reaper.
 */
export async function leave(hybrid: Hybrid, session: Session): Promise<void> {
  if (session.inFlight.size > 0 || session.claiming.size > 0) return
  const { clock, logger } = hybrid.runtime
  const untilMs = clock.monoMs() + hybrid.times.raceMs
  const known = [...session.queues.values()].filter((own) => own.c > 0 && own.isKnown && !hybrid.watch.isOpen(own.name))
  const asRows = known.map((own) => ({ queue: own.name, own }))
  await eachQueue(logger, 'leaving', asRows, ({ own }) =>
    leaveQueue(hybrid, session.worker, own, () => clock.monoMs() < untilMs),
  )
}

async function leaveQueue(
  hybrid: Hybrid,
  session: WorkerId,
  own: SessionQueue,
  isInTime: () => boolean,
): Promise<void> {
  const { name: queue } = own
  const tag = hybrid.view.tag(queue)
  if (tag === null || !isInTime()) return
  // Fences it: only a session that is noted as dead can be forgotten.
  const request = { session, c: 'dead', cursor: '0' } as const
  const fenced = await hybrid.calls.gated(queue, tag, (race) => race.holdings(queue, tag, request))
  if (fenced === undefined) return
  do {
    const done = own.takeDone(LIMITS.claimBatchMax)
    const isLast = own.doneCount === 0
    const dropped = await hybrid.calls.gated(queue, tag, (race) => race.drop(queue, tag, session, done, isLast))
    if (dropped === undefined) return
  } while (own.doneCount > 0 && isInTime())
}
