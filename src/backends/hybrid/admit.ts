// What becomes of tokens that came to a session, by a take or by a hand-over: they are put into the in-flight table, then the gate is
// read. What does not pass it is not handed out and makes the session suspect of that queue.
import type { ClaimedJob, JobId, LeaseNumber, LeaseRef } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import type { Hybrid } from './hybrid.ts'
import type { Flight } from './in-flight.ts'
import type { TokenField } from './ports.ts'
import type { Session, SessionQueue } from './session.ts'
import { readToken } from './token-text.ts'
import type { ReadToken } from './token-text.ts'

export interface Arrived {
  readonly texts: readonly string[]
  /** That they were taken in. */
  readonly epoch: number
  /** The claim has a visibility of its own. */
  readonly leaseMs?: number | undefined
}

/** Answers what may be handed out. Never throws. */
export async function admit(
  hybrid: Hybrid,
  session: Session,
  own: SessionQueue,
  { texts, epoch, leaseMs }: Arrived,
): Promise<readonly ClaimedJob[]> {
  hybrid.tally.add(own.name, 'taken', texts.length)
  // An old copy of a Redis that does not say who it is hands out what already runs here.
  const read = readAll(texts, own.name)?.filter(({ job }) => !session.inFlight.has(job.lease))
  if (read !== undefined) return passGate(hybrid, session, own, read, epoch, leaseMs)
  // What else came with it goes back with the look at what this session holds.
  session.suspect(own)
  return []
}

/** Undefined: one of them is no token, so somebody else has written there. */
function readAll(texts: readonly string[], queue: string): readonly ReadToken[] | undefined {
  try {
    return texts.map((text) => readToken(text, queue))
  } catch {
    return undefined
  }
}

/** One way or the other. */
async function passGate(
  hybrid: Hybrid,
  session: Session,
  own: SessionQueue,
  read: readonly ReadToken[],
  epoch: number,
  leaseMs: number | undefined,
): Promise<readonly ClaimedJob[]> {
  const { inFlight } = session
  const isConfirmed = leaseMs !== undefined || hybrid.needsConfirmation(own.name)
  const sinceMs = hybrid.threadMonoMs()
  for (const { job, field } of read) {
    inFlight.add(flightOf(job, own.index, field), sinceMs)
  }
  const mayStart = inFlight.mayStart(own.index, epoch) || isPlanted('hybrid-old-epoch-started')
  let kept = mayStart ? read : []
  if (isConfirmed && mayStart) kept = await confirm(hybrid, session, own, read, leaseMs)
  if (kept.some(({ needsBody }) => needsBody)) return addBodies(hybrid, session, own, kept)
  if (!mayStart) for (const { job } of read) inFlight.remove(job.lease)
  if (!mayStart) session.suspect(own)
  return kept.map(({ job }) => job)
}

/** Only what the ledger has put down as running here is handed out. */
async function confirm(
  hybrid: Hybrid,
  session: Session,
  own: SessionQueue,
  read: readonly ReadToken[],
  leaseMs: number | undefined,
): Promise<readonly ReadToken[]> {
  const refs = read.map(({ job }): LeaseRef => ({ jobId: job.id, lease: job.lease }))
  try {
    const confirmed = new Set((await hybrid.ledger.confirm(session.worker, refs, leaseMs)).map(({ lease }) => lease))
    for (const { lease } of refs) if (!confirmed.has(lease)) session.settled({ lease })
    // A mark or an adoption under way may put down as ours what was refused.
    if (confirmed.size < refs.length) session.doubt()
    return read.filter(({ job }) => confirmed.has(job.lease))
  } catch {
    for (const { lease } of refs) session.inFlight.remove(lease)
    session.suspect(own)
    return []
  }
}

async function addBodies(
  hybrid: Hybrid,
  session: Session,
  own: SessionQueue,
  read: readonly ReadToken[],
): Promise<readonly ClaimedJob[]> {
  const long = read.filter(({ needsBody }) => needsBody).map(({ job }) => job.id)
  let bodies: ReadonlyMap<JobId, string> = new Map()
  try {
    bodies = await hybrid.ledger.bodies(long)
  } catch {
    session.suspect(own)
  }
  return read.flatMap(({ job, needsBody }) => {
    if (!needsBody) return [job]
    const payload = bodies.get(job.id)
    if (payload !== undefined) return [{ ...job, payload }]
    session.inFlight.remove(job.lease satisfies LeaseNumber)
    session.suspect(own)
    return []
  })
}

/** Handed to nobody. Tokens are found by the check of their queue, rows that are marked by that of PostgreSQL. */
export function dropAll(session: Session, jobs: readonly ClaimedJob[]): void {
  if (jobs.length === 0) return
  session.doubt()
  for (const { queue, lease } of jobs) {
    if (session.inFlight.remove(lease) === undefined) continue
    const own = session.queues.get(queue)
    if (own !== undefined) session.suspect(own)
  }
}

export function flightOf(job: ClaimedJob, queueIndex: number, field: TokenField): Flight {
  const { id: jobId, lease, queue, attemptCount, crashCount } = job
  return { jobId, lease, queueIndex, field, queue, attemptCount, crashCount }
}
