// Settle and claim in one round trip over lua/cycle.lua.
import type { BatchId, ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import { isFinal } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { settleArgs, verdictsOf } from './change-args.ts'
import { textsOf } from './ids.ts'
import type { RedisValue } from './link.ts'
import type { LiveRuns } from './live-runs.ts'
import { parentsOf, parseBody } from './record.ts'
import type { Body } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore, ScriptCall } from './store.ts'
import type { Whereabouts } from './whereabouts.ts'

export interface Cycle {
  claim(request: ClaimRequest): Promise<ClaimReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
}

/** As lua/cycle.lua answers; texts are bytes. */
type CycleReply = readonly [unapplied: readonly (number | Buffer)[], verdicts: readonly Buffer[], claim?: Claimed]
type Claimed = readonly [
  refused: Buffer | '',
  paused: readonly Buffer[],
  claimed: readonly ClaimedQueue[],
  answered?: number,
]
type ClaimedQueue = readonly [
  queue: Buffer,
  hasRate: number,
  hasKeyRate: number,
  firstLease: number,
  /** From the lease of one job to that of the next. */
  step: number,
  ids: Buffer,
  /** Empty where a job was torn apart by hand. */
  bodies: readonly Buffer[],
  /** Of jobs that were claimed or gated before: position from 1, then seven facts. */
  histories: readonly (number | Buffer | null)[],
]

const NOTHING: Claimed = ['', [], []]
const NO_TRANSITIONS: readonly Transition[] = []

/** Settles, then claims if there is a request; on a Cluster all of it is about this queue. */
export type CycleIn = (queue: string, settle: readonly Transition[], request?: ClaimRequest) => Promise<ClaimReply>

export function createCycle(store: RedisStore, runs: LiveRuns): Cycle {
  const claim = createCycleIn(store, prepared(store, 'jobs.claim', 'cycle'), runs)
  const apply = createCycleIn(store, prepared(store, 'jobs.apply', 'cycle'), runs)
  return {
    claim: (request) => claim(request.queues[0] ?? '', request.settle ?? NO_TRANSITIONS, request),
    apply: async (transitions) => (transitions.length === 0 ? [] : (await apply('', transitions)).verdicts),
  }
}

export function createCycleIn({ where }: RedisStore, run: ScriptCall, runs: LiveRuns): CycleIn {
  return async (queue, settle, request) => {
    const settling = settleArgs(settle, where)
    const asked = request === undefined ? [] : claimArgs(request)
    const [unapplied, verdicts, claimed = NOTHING] = (await run(queue, [...settling.args, ...asked])) as CycleReply
    for (let index = 0; index < settle.length; index++) {
      const { jobId, to } = settle[index]!
      runs.settled(jobId)
      if (isFinal(to)) where.forget(jobId)
    }
    const [refused, paused, queues, answered = 0] = claimed
    const said = String(refused)
    return {
      jobs: queues.flatMap((one) => claimedJobs(fromBytes(one), where, runs)),
      verdicts: verdictsOf(settle.length, settling, unapplied, verdicts),
      paused: paused.map(String),
      answered,
      ...(said !== '' && { refused: said as 'worker-dead' | 'superseded' }), // the two words of lua/_claim.lua
    }
  }
}

function claimArgs({ worker, claimNo, leaseMs, queues, limit, stands }: ClaimRequest): readonly RedisValue[] {
  const bound = Math.min(limit, LIMITS.claimBatchMax)
  const lease = leaseMs === undefined ? '' : Math.ceil(leaseMs)
  return [worker, claimNo, bound, lease, stands === true ? '1' : '', queues.length, ...queues]
}

const HISTORY_WIDTH = 8
const NO_PARENTS: readonly JobId[] = []

/** What one queue gave, by a claim or by a hand-over. */
export interface Taken {
  readonly queue: string
  readonly hasRate: boolean
  readonly hasKeyRate: boolean
  readonly firstLease: number
  readonly step: number
  readonly ids: readonly JobId[]
  /** Empty where a job was torn apart by hand. */
  readonly bodyOf: (index: number) => string
  readonly histories: readonly (number | { toString(): string } | null)[]
}

function fromBytes([name, rate, keyRate, firstLease, step, ids, bodies, histories]: ClaimedQueue): Taken {
  return {
    queue: String(name),
    hasRate: rate === 1,
    hasKeyRate: keyRate === 1,
    firstLease,
    step,
    ids: textsOf(ids),
    bodyOf: (index) => bodies[index]!.toString(),
    histories,
  }
}

export function claimedJobs(taken: Taken, where: Whereabouts, runs: LiveRuns): readonly ClaimedJob[] {
  const { queue, hasRate, hasKeyRate, firstLease, step, ids, bodyOf, histories } = taken
  const jobs: ClaimedJob[] = []
  let areWhole = true
  for (let index = 0; index < ids.length; index++) {
    const id = ids[index]!
    const body = bodyOf(index)
    areWhole &&= body !== ''
    const lease = (firstLease + step * index) as LeaseNumber // minted by this claim
    jobs.push(plainJob(id, lease, queue, parseBody(body), hasRate))
    where.saw(id, queue)
  }
  if (histories.length === 0) runs.claimed(jobs)
  else addHistories(jobs, histories, hasKeyRate, runs)
  return areWhole ? jobs : jobs.filter(({ name: kind }) => kind !== '')
}

function plainJob(id: JobId, lease: LeaseNumber, queue: string, body: Body, rateLimited: boolean): ClaimedJob {
  return {
    id,
    lease,
    queue,
    name: body.name,
    payload: body.payload,
    timeoutMs: body.timeoutMs,
    tags: body.tags,
    meta: body.meta,
    priority: body.priority,
    maxAttempts: body.maxAttempts,
    attemptCount: 0,
    crashCount: 0,
    enqueuedAtMs: body.enqueuedAtMs,
    runAtMs: body.enqueuedAtMs,
    batch: null,
    parents: NO_PARENTS,
    group: null,
    limitKey: null,
    rateLimited,
  }
}

/** Jobs with a history have their hash; the others will get it if they last. */
function addHistories(jobs: ClaimedJob[], histories: Taken['histories'], hasKeyRate: boolean, runs: LiveRuns): void {
  const plain = new Set(jobs)
  for (let at = 0; at < histories.length; at += HISTORY_WIDTH) {
    const index = Number(histories[at]) - 1
    const texts = histories.slice(at + 1, at + HISTORY_WIDTH).map((fact) => (fact === null ? null : String(fact)))
    const [attempt, crashes, runAt, batch, group = null, limitKey = null, parents] = texts
    const job = jobs[index]!
    plain.delete(job)
    jobs[index] = {
      ...job,
      attemptCount: Number(attempt ?? 0),
      crashCount: Number(crashes ?? 0),
      runAtMs: Number(runAt ?? job.enqueuedAtMs),
      batch: (batch ?? null) as BatchId | null, // as inserted
      parents: parentsOf(parents ?? undefined),
      group,
      limitKey,
      rateLimited: job.rateLimited || (hasKeyRate && limitKey !== null),
    }
  }
  runs.claimed([...plain])
}
