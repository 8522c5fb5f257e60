// Settle and claim in one round trip over lua/cycle.lua.
import type { BatchId, ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import { isFinal } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { settleArgs, verdictsOf } from './change-args.ts'
import { parentsOf, parseBody } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'
import type { Whereabouts } from './whereabouts.ts'

export interface Cycle {
  claim(request: ClaimRequest): Promise<ClaimReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
}

/** As lua/cycle.lua answers. */
type CycleReply = readonly [unapplied: readonly (number | string)[], verdicts: readonly string[], claim: Claimed]
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

const NO_TRANSITIONS: readonly Transition[] = []

export function createCycle(store: RedisStore): Cycle {
  const claiming = prepared(store, 'jobs.claim', 'cycle')
  const applying = prepared(store, 'jobs.apply', 'cycle')
  const { where } = store
  return {
    async claim(request) {
      const { settle = NO_TRANSITIONS, queues, worker, claimNo, leaseMs } = request
      const settling = settleArgs(settle, where)
      const limit = Math.min(request.limit, LIMITS.claimBatchMax)
      const [unapplied, verdicts, [refused, paused, claimed]] = (await claiming(queues[0] ?? '', [
        ...settling.args,
        ...[worker, claimNo, limit, leaseMs === undefined ? '' : Math.ceil(leaseMs), queues.length, ...queues],
      ])) as CycleReply
      forgetEnded(settle, where)
      return {
        jobs: claimed.flatMap((one) => claimedJobs(one, where)),
        verdicts: verdictsOf(settle.length, settling, unapplied, verdicts),
        paused,
        ...(refused !== '' && { refused: refused as 'worker-dead' | 'superseded' }), // the two words of lua/_claim.lua
      }
    },
    async apply(transitions) {
      if (transitions.length === 0) return []
      const settling = settleArgs(transitions, where)
      const [unapplied, verdicts] = (await applying('', settling.args)) as CycleReply
      forgetEnded(transitions, where)
      return verdictsOf(transitions.length, settling, unapplied, verdicts)
    },
  }
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
