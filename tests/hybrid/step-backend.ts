// A hybrid for suites that call a backend directly: no services run beside it, so each claim first takes the steps that they
// would take, and waits for them. Jobs are put down as running when they are claimed (`confirmed`), and come from the ledger:
// what the suites say of `queued` and `running` holds. Tokens, epochs and the relay are those of the real rules.
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import type { HybridBackendParts } from '../../src/backends/hybrid/compose.ts'
import type { Hybrid } from '../../src/backends/hybrid/hybrid.ts'
import type { Ledger } from '../../src/backends/hybrid/ports.ts'
import { QUEUE } from '../conformance/world.ts'
import { push } from '../../src/backends/hybrid/insert.ts'
import { relayOnce } from '../../src/backends/hybrid/relay.ts'
import type { NewJob, WorkerId } from '../../src/core/job.ts'
import type { HandOver, HandOvers } from '../../src/store/hand-overs.ts'
import type { Backend, ClaimReply, ClaimRequest, InsertReply } from '../../src/store/ports.ts'

const WAIT_MAX_MS = 5_000

export interface StepOptions extends Omit<HybridBackendParts, 'isConfirmed'> {
  /**
   * The ways that are taken under load: plain jobs are minted by their insert, a start is put down in PostgreSQL only when it
   * has lasted a while, which here is at once, and claims do not wait for each other.
   */
  readonly isFast?: boolean
}

/** Jobs that were minted by their insert, in all stores of a file: a suite that is to show that way has taken it. */
export const fastJobs = { count: 0 }

export function stepBackend({ isFast = false, ...parts }: StepOptions): Backend {
  // The window is set by each claim, to what it asks for: there is no other bound here.
  const times = { ...parts.times, windowTotal: Number.MAX_SAFE_INTEGER }
  const { backend, hybrid } = composeHybrid({
    ...parts,
    times,
    ledger: counted(parts.ledger),
    isConfirmed: () => !isFast,
  })
  // The share of the window is set by each claim.
  void hybrid.memory.stop()
  const pipes = new Map<string, string>()
  let last: Promise<unknown> = Promise.resolve()
  /** Where the last claim stands. */
  let standing: readonly string[] = []

  async function claim(request: ClaimRequest): Promise<ClaimReply> {
    const { settle = [], ...rest } = request
    const verdicts = await backend.jobs.apply(settle)
    // In Redis a session is dead when the reaper has been there; here it is at once.
    if ((await hybrid.ledger.notAlive([request.worker])).length > 0) {
      return { ...(await parts.store.jobs.claim(rest)), verdicts }
    }
    const isVoid = request.limit <= 0 || request.claimNo <= (hybrid.sessions.get(request.worker)?.lastClaimNo ?? 0)
    // What stands, stands in Redis.
    standing = isFast && request.stands === true ? request.queues : []
    for (const queue of standing) await openQueue(hybrid, queue)
    const queues = isVoid ? [] : await ready(hybrid, request.worker, request.queues)
    for (const queue of queues) {
      if (!isFast) hybrid.windowShare = (Math.max(request.limit, 1) + 0.5) / hybrid.times.window
      while ((await relayOnce(hybrid, queue, isFast ? new Map() : pipes, true)) && isFast);
    }
    const reply = await backend.jobs.claim(rest)
    const refs = reply.jobs.map(({ id, lease }) => ({ jobId: id, lease, ageMs: 0 }))
    if (isFast && refs.length > 0) await hybrid.ledger.mark(request.worker, refs)
    return { ...reply, verdicts }
  }

  /** One after the other: what one claim has brought to Redis is not to be another's. */
  const inTurn = (request: ClaimRequest): Promise<ClaimReply> => {
    const turn = last.then(() => claim(request))
    last = turn.catch(() => undefined)
    return turn
  }

  /** As a producer that knows the way: there are tokens, and it has heard how much room there is. */
  async function insertFast(jobs: readonly NewJob[]): Promise<InsertReply> {
    // The queue that the workers of the suites serve; what they claim of others comes from the ledger.
    const served = standing.length > 0 ? standing : [QUEUE]
    for (const queue of served.filter((name) => jobs.some((job) => job.queue === name))) {
      await openQueue(hybrid, queue)
      const tag = hybrid.view.tag(queue)
      if (tag !== null) await push(hybrid, queue, tag, 'step', [], null)
    }
    const reply = await backend.jobs.insert(jobs)
    // What was not minted is brought by the relay, which in a process follows at once.
    for (const queue of standing) await relayOnce(hybrid, queue, new Map(), true)
    return reply
  }

  const insert = isFast ? insertFast : (jobs: readonly NewJob[]) => parts.store.jobs.insert(jobs)
  const { handOvers, ...others } = backend
  return {
    ...others,
    jobs: { ...backend.jobs, insert, claim: isFast ? claim : inTurn },
    // The inserts of the other way bring nothing to Redis.
    ...(isFast && handOvers !== undefined && { handOvers: marking(hybrid, handOvers) }),
  }
}

/** Somebody has worked on this queue before: it has an epoch. */
async function openQueue({ ledger, race, view, epochs }: Hybrid, queue: string): Promise<void> {
  await epochs.refresh()
  if (view.row(queue) !== undefined) return
  const redisId = await race.identity(queue)
  const [row] = await ledger.flip({ queues: [{ queue, expected: 0 }], mode: 'token', redisId, unlessHealthy: false })
  if (row === undefined) return
  const { epoch, firstLease, configVersion: version, paused, lowerLaneShare } = row
  const reply = await race.open(queue, { epoch, redisId, firstLease, version, paused, lowerLaneShare })
  if (reply.kind === 'open') await ledger.born(queue, epoch, reply.birth)
  await epochs.refresh()
}

/** What was handed over has lasted a while. */
function marking({ ledger }: Hybrid, handOvers: HandOvers): HandOvers {
  return {
    listen(worker, onHandOver, onBack) {
      const heard = async (handOver: HandOver): Promise<void> => {
        const refs = handOver.jobs.map(({ id, lease }) => ({ jobId: id, lease, ageMs: 0 }))
        await ledger.mark(worker, refs)
        onHandOver(handOver)
      }
      return handOvers.listen(worker, (handOver) => void heard(handOver), onBack)
    },
  }
}

function counted(ledger: Ledger): Ledger {
  return {
    ...ledger,
    async insert(jobs, offers) {
      const reply = await ledger.insert(jobs, offers)
      fastJobs.count += reply.leases.filter((lease) => lease > 0).length
      return reply
    },
  }
}

/** Waits until the queues that are there have tokens and this worker may take them; answers those. */
async function ready(hybrid: Hybrid, worker: WorkerId, queues: readonly string[]): Promise<readonly string[]> {
  const session = hybrid.sessions.get(worker)
  if (session === undefined) return []
  const untilMs = performance.now() + WAIT_MAX_MS
  for (;;) {
    await hybrid.epochs.refresh()
    const there = queues.filter((queue) => session.queues.has(queue) && hybrid.view.row(queue) !== undefined)
    const isReady = (queue: string): boolean => {
      const { epoch = -1 } = hybrid.view.row(queue) ?? {}
      const index = session.queues.get(queue)?.index ?? -1
      return hybrid.view.tag(queue) !== null && session.inFlight.mayStart(index, epoch)
    }
    if (there.every(isReady)) return there
    if (performance.now() > untilMs) throw new Error(`no tokens for ${there.join(', ')} after ${WAIT_MAX_MS} ms`)
    hybrid.watch.wake()
    await new Promise((resolve) => setTimeout(resolve, 2))
  }
}
