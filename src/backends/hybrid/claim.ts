// Claim: tokens from Redis, one script per queue and no statement in PostgreSQL; settlements go out beside it. Queues that
// have no tokens now (mode ledger, or a Redis that does not answer) are claimed from the ledger: ready rows only.
//
// Everything handed out is in the in-flight table from before the gate is read until it is settled. What does not pass
// the gate is not handed out and makes the session suspect of that queue.
import type { ClaimedJob } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Verdict } from '../../core/transition.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { admit, dropAll, flightOf } from './admit.ts'
import type { Stood } from './hands.ts'
import type { Hybrid } from './hybrid.ts'
import type { EpochTag, Stand, TakeReply, TakeRequest } from './ports.ts'
import { checkMarked, checkSelf } from './self-check.ts'
import type { Session, SessionQueue } from './session.ts'
import { settleAll } from './settle.ts'

/** What the queues of one claim have brought so far. */
interface Basket {
  readonly jobs: ClaimedJob[]
  readonly paused: string[]
  refused?: ClaimReply['refused']
}

const NO_VERDICTS: readonly Verdict[] = []
const NOWHERE: readonly string[] = []

export async function claim(hybrid: Hybrid, request: ClaimRequest): Promise<ClaimReply> {
  const session = hybrid.sessions.get(request.worker)
  // Whoever did not register here: the ledger says what it thinks of that.
  if (session === undefined) return claimElsewhere(hybrid, request)
  const settling =
    request.settle === undefined || request.settle.length === 0
      ? NO_VERDICTS
      : settleAll(hybrid, request.worker, request.settle)
  const taking = takeAll(hybrid, session, request)
  // Both, whatever becomes of the other: what was taken is in the table, or its queue is suspect.
  const [settled, taken] = await Promise.allSettled([settling, taking])
  if (settled.status === 'rejected' || taken.status === 'rejected') {
    if (taken.status === 'fulfilled') dropAll(session, taken.value.jobs)
    throw settled.status === 'rejected' ? settled.reason : (taken as PromiseRejectedResult).reason
  }
  const { jobs, paused, refused } = taken.value
  // Meanwhile somebody asked what this session holds, and counted this claim as lost.
  if (request.claimNo <= session.fencedClaimNo && jobs.length > 0) {
    dropAll(session, jobs)
    return { jobs: [], verdicts: settled.value, paused, refused: 'superseded' }
  }
  const answered = session.answeredNo
  return {
    jobs,
    verdicts: settled.value,
    paused,
    ...(refused !== undefined && { refused }),
    ...(answered > 0 && { answered }),
  }
}

async function claimElsewhere(hybrid: Hybrid, request: ClaimRequest): Promise<ClaimReply> {
  const { settle = [], ...rest } = request
  const verdicts = settle.length === 0 ? NO_VERDICTS : await settleAll(hybrid, request.worker, settle)
  const reply = await hybrid.store.jobs.claim(rest)
  return { ...reply, verdicts }
}

async function takeAll(hybrid: Hybrid, session: Session, request: ClaimRequest): Promise<Basket> {
  const basket: Basket = { jobs: [], paused: [] }
  const { lastClaimNo } = session
  if (request.claimNo <= Math.max(lastClaimNo, session.fencedClaimNo)) return { ...basket, refused: 'superseded' }
  session.lastClaimNo = request.claimNo
  // Without a wait where there is nothing to wait for: a look that begins in this very turn must find this claim under way.
  if (session.isDoubtful || session.checking !== undefined) await checkMarked(hybrid, session, lastClaimNo)
  const filling = fillBasket(hybrid, session, request, basket)
  session.claiming.add(filling)
  try {
    return await filling
  } finally {
    session.claiming.delete(filling)
  }
}

async function fillBasket(hybrid: Hybrid, session: Session, request: ClaimRequest, basket: Basket): Promise<Basket> {
  const limit = Math.min(request.limit, LIMITS.claimBatchMax)
  const where = standsIn(hybrid, session, request)
  const fromLedger: string[] = []
  for (const name of request.queues) {
    const room = Math.min(limit - basket.jobs.length, session.room)
    if (room <= 0) {
      notAsked(hybrid, session, name, basket)
      continue
    }
    const tag = hybrid.view.tag(name)
    if (isOfLedger(hybrid, name)) fromLedger.push(name)
    else if (tag !== null) {
      const stands = standOf(request, name, where, basket)
      await takeFrom(hybrid, session, { name, tag, room, stands, leaseMs: request.leaseMs }, basket)
    }
    if (basket.refused !== undefined) return basket
  }
  const room = Math.min(limit - basket.jobs.length, session.room)
  if (room <= 0) for (const name of fromLedger) notAsked(hybrid, session, name, basket)
  if (fromLedger.length === 0 || room <= 0) return basket
  return claimReady(hybrid, session, request, fromLedger, room, basket)
}

/** Where the claim may stand: in all of these queues or in none. */
function standsIn(
  hybrid: Hybrid,
  session: Session,
  { queues, stands = false, leaseMs }: ClaimRequest,
): readonly string[] {
  if (!stands || leaseMs !== undefined || hybrid.race.hear === undefined) return NOWHERE
  // Jobs that come from the ledger would fill it up behind the back of Redis.
  if (queues.some((name) => isOfLedger(hybrid, name))) return NOWHERE
  return queues.filter((name) => hybrid.view.tag(name) !== null && session.queues.has(name))
}

/** Undefined: the claim has brought something already, and is no idle worker's. */
function standOf(
  { claimNo, limit }: ClaimRequest,
  queue: string,
  where: readonly string[],
  { jobs }: Basket,
): Stand | undefined {
  if (jobs.length > 0 || !where.includes(queue)) return undefined
  return { claimNo, most: Math.min(limit, LIMITS.handOverMax), isLast: queue === where.at(-1) }
}

function isOfLedger({ view, watch }: Hybrid, queue: string): boolean {
  return view.row(queue)?.mode !== 'token' || watch.isOpen(queue)
}

/** The claim was full before it came to this queue: whether it is paused is said as far as it is known here. */
function notAsked({ view }: Hybrid, { queues }: Session, name: string, { paused }: Basket): void {
  const own = queues.get(name)
  if (own !== undefined) own.passedByC = own.c
  if (view.row(name)?.paused === true) paused.push(name)
}

async function claimReady(
  hybrid: Hybrid,
  session: Session,
  { worker, claimNo, leaseMs }: ClaimRequest,
  queues: readonly string[],
  limit: number,
  basket: Basket,
): Promise<Basket> {
  const visibility = leaseMs === undefined ? {} : { leaseMs }
  const reply = await session
    .reserving(limit, () => hybrid.store.jobs.claim({ worker, claimNo, queues, limit, ...visibility }))
    .catch((error: unknown) => {
      session.doubt()
      // What was taken is not lost with it.
      if (basket.jobs.length === 0) throw error
      return null
    })
  if (reply === null) return basket
  const { jobs, paused, refused } = reply
  const sinceMs = hybrid.threadMonoMs()
  for (const job of jobs) session.inFlight.add(flightOf(job, -1, ''), sinceMs)
  const all = { jobs: [...basket.jobs, ...jobs], paused: [...basket.paused, ...paused] }
  return refused === undefined ? all : { ...all, refused }
}

interface Ask {
  readonly name: string
  readonly tag: EpochTag
  readonly room: number
  readonly stands: Stand | undefined
  readonly leaseMs: number | undefined
}

async function takeFrom(hybrid: Hybrid, session: Session, ask: Ask, basket: Basket): Promise<void> {
  const own = session.queues.get(ask.name)
  if (own === undefined) return
  const epoch = hybrid.view.row(ask.name)!.epoch // it has a tag
  // Nothing is taken that could not be started.
  if (!session.inFlight.mayStart(own.index, epoch)) {
    hybrid.awaitGate(session)
    return
  }
  if (!(await isLookedAt(hybrid, session, own, ask.tag))) return
  const room = Math.min(ask.room, session.room)
  if (room <= 0) return
  const reply = await session.reserving(room, () => take(hybrid, session, own, { ...ask, room }))
  if (reply === undefined) return
  if (reply.kind === 'paused') basket.paused.push(ask.name)
  else if (reply.kind === 'dup') session.suspect(own)
  else if (reply.kind === 'dead') basket.refused = 'worker-dead'
  else if (reply.texts.length > 0) {
    basket.jobs.push(...(await admit(hybrid, session, own, { texts: reply.texts, epoch, leaseMs: ask.leaseMs })))
  }
}

/** Nothing is taken from a queue while anybody looks at what this session holds: it would seem to be unknown. */
async function isLookedAt(hybrid: Hybrid, session: Session, own: SessionQueue, tag: EpochTag): Promise<boolean> {
  if (own.isSuspect && own.checking === undefined) void checkSelf(hybrid, session, own, tag)
  if (own.checking === undefined) return !own.isSuspect
  const { runtime, times } = hybrid
  // One that hangs keeps no other queue waiting.
  await bounded(runtime.clock, times.raceMs, 'the look', own.checking).catch(() => undefined)
  return own.checking === undefined && !own.isSuspect && hybrid.view.tag(own.name) === tag
}

/** Undefined: nothing came of it. Never throws: an unknown take makes the session suspect, which is all there is to say. */
async function take(hybrid: Hybrid, session: Session, own: SessionQueue, ask: Ask): Promise<TakeReply | undefined> {
  const { name, tag, room, stands } = ask
  const done = own.takeDone(LIMITS.claimBatchMax)
  own.c += 1
  own.taking += 1
  const before = own.hands.stoodAt(own.c - 1)
  const request: TakeRequest = {
    session: session.worker,
    c: own.c,
    most: room,
    done,
    ...standing(session, own, stands),
  }
  try {
    hybrid.runtime.failpoint('hybrid.before-take')
    const reply = await hybrid.calls.gated(name, tag, (race) => race.take(name, tag, request))
    hybrid.runtime.failpoint('hybrid.after-take')
    // Neither was forgotten then: Redis looks at these first.
    const isKept = reply === undefined ? hybrid.view.tag(name) === tag : reply.kind === 'dead'
    if (isKept) own.keepDone(done)
    if (reply !== undefined) told(session, own, request, before, reply)
    // Refused: a copy of it may yet find this epoch open, and nobody is told any more whether the one before it was answered.
    else if (hybrid.view.tag(name) === tag) session.suspect(own)
    return reply
  } catch {
    own.keepDone(done)
    session.suspect(own)
    return undefined
  } finally {
    own.taking -= 1
  }
}

/** What the take says of standing: of its own, or that nothing of this session stands any more. */
function standing(session: Session, own: SessionQueue, stands: Stand | undefined): Pick<TakeRequest, 'stands'> {
  if (stands === undefined) return session.mayStand ? { stands: 'no-longer' } : {}
  session.mayStand ||= stands.isLast
  own.hands.stand({ c: own.c, claimNo: stands.claimNo })
  return { stands }
}

/** An answer to a take: whether it stands, and whether the one before it, which stood, was answered. */
function told(
  session: Session,
  own: SessionQueue,
  { c, stands }: TakeRequest,
  before: Stood | undefined,
  reply: TakeReply,
): void {
  const isEmpty = reply.kind === 'taken' && reply.texts.length === 0
  if (!isEmpty) own.hands.fell(c)
  if (reply.kind !== 'taken' && reply.kind !== 'paused') return
  if (stands === 'no-longer') session.mayStand = false
  if (before === undefined) return
  const fate = own.hands.told(before, reply.answered ?? false, session.heardNo)
  if (fate === 'settled') return
  // What is not heard of it in time the worker looks for, unless it has looked already and could not ask this queue.
  session.answeredNo = Math.max(session.answeredNo, before.claimNo)
  if (fate === 'lost' || before.claimNo <= session.fencedClaimNo) session.suspect(own)
}
