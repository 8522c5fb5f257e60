// Settle and claim in one round trip over lua/cycle.lua.
import type { BatchId, ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import { isFinal } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { settleArgs, verdictsOf } from './change-args.ts'
import type { RedisValue } from './link.ts'
import { parentsOf, parseBody } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore, ScriptCall } from './store.ts'
import type { Whereabouts } from './whereabouts.ts'

export interface Cycle {
  claim(request: ClaimRequest): Promise<ClaimReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
}

/** As lua/cycle.lua answers. */
type CycleReply = readonly [unapplied: readonly (number | string)[], verdicts: readonly string[], claim?: Claimed]
type Claimed = readonly [refused: string, paused: readonly string[], claimed: readonly ClaimedQueue[]]
type ClaimedQueue = readonly [
  queue: string,
  hasRate: number,
  hasKeyRate: number,
  firstLease: number,
  ids: readonly string[],
  bodies: readonly string[],
  /** Of jobs that were claimed or gated before: position from 1, then seven facts. */
  histories: readonly (number | string | null)[],
]

const NOTHING: Claimed = ['', [], []]
const NO_TRANSITIONS: readonly Transition[] = []

/** Settles, then claims if there is a request; on a Cluster all of it is about this queue. */
export type CycleIn = (queue: string, settle: readonly Transition[], request?: ClaimRequest) => Promise<ClaimReply>

export function createCycle(store: RedisStore): Cycle {
  const claim = createCycleIn(store, prepared(store, 'jobs.claim', 'cycle'))
  const apply = createCycleIn(store, prepared(store, 'jobs.apply', 'cycle'))
  return {
    claim: (request) => claim(request.queues[0] ?? '', request.settle ?? NO_TRANSITIONS, request),
    apply: async (transitions) => (transitions.length === 0 ? [] : (await apply('', transitions)).verdicts),
  }
}

export function createCycleIn({ where }: RedisStore, run: ScriptCall): CycleIn {
  return async (queue, settle, request) => {
    const settling = settleArgs(settle, where)
    const asked = request === undefined ? [] : claimArgs(request)
    const [unapplied, verdicts, claimed = NOTHING] = (await run(queue, [...settling.args, ...asked])) as CycleReply
    forgetEnded(settle, where)
    const [refused, paused, queues] = claimed
    return {
      jobs: queues.flatMap((one) => claimedJobs(one, where)),
      verdicts: verdictsOf(settle.length, settling, unapplied, verdicts),
      paused,
      ...(refused !== '' && { refused: refused as 'worker-dead' | 'superseded' }), // the two words of lua/_claim.lua
    }
  }
}

function claimArgs({ worker, claimNo, leaseMs, queues, limit }: ClaimRequest): readonly RedisValue[] {
  const bound = Math.min(limit, LIMITS.claimBatchMax)
  return [worker, claimNo, bound, leaseMs === undefined ? '' : Math.ceil(leaseMs), queues.length, ...queues]
}

function forgetEnded(transitions: readonly Transition[], where: Whereabouts): void {
  for (const { jobId, to } of transitions) if (isFinal(to)) where.forget(jobId)
}

const HISTORY_WIDTH = 8

function claimedJobs(claimed: ClaimedQueue, where: Whereabouts): readonly ClaimedJob[] {
  const [queue, hasRate, hasKeyRate, firstLease, ids, bodies, histories] = claimed
  const jobs = ids.map((id, index): ClaimedJob => {
    where.saw(id, queue)
    const { enqueuedAtMs, ...body } = parseBody(bodies[index]!)
    return {
      id: id as JobId, // as inserted
      lease: (firstLease + index) as LeaseNumber, // minted by this claim
      queue,
      ...body,
      attemptCount: 0,
      crashCount: 0,
      enqueuedAtMs,
      runAtMs: enqueuedAtMs,
      batch: null,
      parents: [],
      group: null,
      limitKey: null,
      rateLimited: hasRate === 1,
    }
  })
  for (let at = 0; at < histories.length; at += HISTORY_WIDTH) {
    const index = Number(histories[at]) - 1
    const [attempt, crashes, runAt, batch, group, limitKey, parents] = histories.slice(at + 1, at + HISTORY_WIDTH)
    const job = jobs[index]!
    jobs[index] = {
      ...job,
      attemptCount: Number(attempt ?? 0),
      crashCount: Number(crashes ?? 0),
      runAtMs: Number(runAt ?? job.enqueuedAtMs),
      batch: (batch ?? null) as BatchId | null, // as inserted
      parents: parentsOf((parents ?? undefined) as string | undefined), // a text by its place
      group: (group ?? null) as string | null, // a text by its place
      limitKey: (limitKey ?? null) as string | null, // a text by its place
      rateLimited: hasRate === 1 || (hasKeyRate === 1 && limitKey !== null),
    }
  }
  return jobs
}
