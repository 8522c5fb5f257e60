// Settle and claim in one round trip. Completions that nothing hangs on travel as arrays and are settled set by set;
// everything else travels as JSON, in order.
import { LIMITS } from '../../core/limits.ts'
import { DEFAULT_LANES } from '../../core/priority.ts'
import { isFinal } from '../../core/job.ts'
import type { ClaimedJob, WorkerId } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { finishedTopic } from '../../store/wakeups.ts'
import { changesJson, verdictOf } from './change-rows.ts'
import { parseClaimed, parseHead } from './claim-rows.ts'
import type { CycleHead } from './claim-rows.ts'
import type { Value } from './rows-query.ts'
import { Floors } from './floors.ts'
import { LaneShare } from './lanes.ts'
import type { LaneSettings } from './lanes.ts'
import { statement } from './store.ts'
import type { PostgresStore } from './store.ts'
import { bigintArray, intArray, textArray, uuidArray } from './wire.ts'

interface QueueView {
  readonly floors: Floors
  readonly share: LaneShare
}

export interface Cycle {
  claim(request: ClaimRequest): Promise<ClaimReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
  /** No claim of this worker up to this number takes anything any more. */
  fence(worker: WorkerId, claimNo: number): void
  /** The worker has ended. */
  forget(worker: WorkerId): Promise<void>
}

export function createCycle(store: PostgresStore): Cycle {
  const sql = 'select * from millrace.cycle($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)'
  const claiming = statement(store, 'jobs.claim', sql)
  const applying = statement(store, 'jobs.apply', 'select millrace.settle_jobs($1, $2, $3, $4, $5)')
  const views = new Map<string, QueueView>()
  // The store keeps the number of a claim that took something. Claims that found nothing write nothing at all, so
  // that an idle worker costs no commit; their numbers are kept here, where all claims of a worker come by.
  const claimNos = new Map<string, number>()

  function viewOf(queue: string): QueueView {
    let view = views.get(queue)
    if (view === undefined) views.set(queue, (view = { floors: new Floors(store.clock), share: new LaneShare() }))
    return view
  }

  function settled(transitions: readonly Transition[], parts: SettleParts, head: CycleHead): readonly Verdict[] {
    const verdicts = verdictsOf(transitions, parts, head)
    if (transitions.some(({ edge }) => edge === 'return')) for (const { floors } of views.values()) floors.forget()
    if (store.doorbell.hasWatchers) ringFinished(store, transitions, verdicts)
    return verdicts
  }

  return {
    async claim(request) {
      const { queues } = request
      const isUsedUp = request.claimNo <= (claimNos.get(request.worker) ?? 0)
      const limit = isUsedUp ? 0 : Math.min(request.limit, LIMITS.claimBatchMax)
      if (!isUsedUp) claimNos.set(request.worker, request.claimNo)
      const parts = splitSettle(request.settle ?? [])
      // A job that comes back with this very call is older than what the floors know.
      if (request.settle?.some(({ edge }) => edge === 'return')) for (const view of views.values()) view.floors.forget()
      const floors = queues.map((queue) => viewOf(queue).floors.get())
      const passed = queues.map((queue) => viewOf(queue).share.passed)
      const rows = await store.connections.runOrdered(request.worker, claiming, [
        request.worker,
        request.claimNo,
        textArray(queues),
        limit,
        request.leaseMs ?? null,
        ...floorValues(floors),
        intArray(passed.map(([normal]) => normal)),
        intArray(passed.map(([, low]) => low)),
        ...settleValues(parts),
      ])
      const head = parseHead(rows[0])
      const claimed = parseClaimed(rows, head, queues)
      const jobs: ClaimedJob[] = []
      const isFull = claimed.length >= limit
      for (const [index, queue] of queues.entries()) {
        const { floors: learned, share } = viewOf(queue)
        const own = queues.length === 1 ? claimed : claimed.filter(({ queueIndex }) => queueIndex === index)
        learned.learn(own, floors[index]!.length === 0, isFull)
        for (const { job } of share.order(own, lanesOf(head, index), isFull)) jobs.push(job)
      }
      store.doorbell.ringAll(head.rings)
      return {
        jobs,
        verdicts: settled(request.settle ?? [], parts, head),
        paused: head.paused ?? [],
        ...(head.refused && { refused: head.refused }),
        ...(isUsedUp && { refused: 'superseded' as const }),
      }
    },

    async apply(transitions) {
      if (transitions.length === 0) return []
      const parts = splitSettle(transitions)
      const rows = await store.connections.run(applying, settleValues(parts))
      const head = parseHead(rows[0])
      store.doorbell.ringAll(head.rings)
      return settled(transitions, parts, head)
    },

    fence: (worker, claimNo) => void claimNos.set(worker, Math.max(claimNos.get(worker) ?? 0, claimNo)),
    async forget(worker) {
      claimNos.delete(worker)
      await store.connections.endOrdered(worker)
    },
  }
}

/** The settings of a queue at the moment of the claim; one that nothing was claimed from does not need them. */
function lanesOf({ queues = [] }: CycleHead, index: number): LaneSettings {
  const found = queues.find(([position]) => position === index + 1)
  if (found === undefined) return { lanes: DEFAULT_LANES, lowerLaneShare: 0 }
  const [, , lowerLaneShare, laneHighMax, laneNormalMax] = found
  return { lanes: [laneHighMax, laneNormalMax], lowerLaneShare }
}

export interface SettleParts {
  /** Positions in the call. */
  readonly done: readonly number[]
  readonly rest: readonly number[]
  readonly transitions: readonly Transition[]
}

/**
 * A plain completion of a job that appears once goes the quick way. In the order of ids: those that go the long way after
 * all are locked one by one.
 */
export function splitSettle(transitions: readonly Transition[]): SettleParts {
  const byId = transitions.map((_, position) => position)
  byId.sort((a, b) => compare(transitions[a]!.jobId, transitions[b]!.jobId))
  const done: number[] = []
  const rest: number[] = []
  for (let at = 0; at < byId.length; at++) {
    const transition = transitions[byId[at]!]!
    const { jobId } = transition
    const isTwice =
      (at > 0 && transitions[byId[at - 1]!]!.jobId === jobId) ||
      (at + 1 < byId.length && transitions[byId[at + 1]!]!.jobId === jobId)
    if (!isTwice && isPlainCompletion(transition)) done.push(byId[at]!)
    else rest.push(byId[at]!)
  }
  rest.sort((a, b) => a - b)
  return { done, rest, transitions }
}

function compare(a: string, b: string): number {
  if (a === b) return 0
  return a < b ? -1 : 1
}

function isPlainCompletion({
  edge,
  guard,
  ranMs,
  attempt,
  progress,
  ifCancelRequested,
  logLines,
}: Transition): boolean {
  return (
    edge === 'complete' &&
    guard.lease !== undefined &&
    ranMs !== undefined &&
    attempt === 'count' &&
    progress === undefined &&
    logLines === undefined &&
    ifCancelRequested === undefined
  )
}

export function settleValues(
  { done, rest, transitions }: SettleParts,
  workerOf?: (transition: Transition) => string | null,
): readonly Value[] {
  const changes =
    rest.length === 0
      ? null
      : changesJson(
          rest.map((position) => transitions[position]!),
          workerOf,
        )
  if (done.length === 0) return [null, null, null, null, changes]
  const ids: string[] = []
  const leases: number[] = []
  const ran: number[] = []
  const results: (string | null)[] = []
  for (const position of done) {
    const { jobId, guard, ranMs = 0, result } = transitions[position]!
    ids.push(jobId)
    leases.push(guard.lease ?? 0)
    ran.push(Math.round(ranMs))
    results.push(result ?? null)
  }
  return [uuidArray(ids), bigintArray(leases), intArray(ran), textArray(results), changes]
}

export function verdictsOf(
  transitions: readonly Transition[],
  { done, rest }: SettleParts,
  head: CycleHead,
): readonly Verdict[] {
  const verdicts = transitions.map((): Verdict => 'applied')
  for (const [index, verdict] of head.unapplied ?? []) verdicts[done[index]!] = verdictOf(verdict)
  for (const [index, verdict] of (head.verdicts ?? []).entries()) verdicts[rest[index]!] = verdictOf(verdict)
  return verdicts
}

/** The long way rings by itself; completions of the quick way are known here. */
export function ringFinished(
  store: PostgresStore,
  transitions: readonly Transition[],
  verdicts: readonly Verdict[],
): void {
  for (const [index, { jobId, to }] of transitions.entries()) {
    if (verdicts[index] === 'applied' && isFinal(to)) store.doorbell.ring(finishedTopic(jobId))
  }
}

function floorValues(floors: readonly (readonly (readonly [number, number])[])[]): readonly [Value, Value, Value] {
  if (floors.every((own) => own.length === 0)) return [null, null, null]
  const flat = floors.flatMap((own, index) => own.map(([priority, seq]) => [index + 1, priority, seq] as const))
  return [
    intArray(flat.map(([queue]) => queue)),
    intArray(flat.map(([, priority]) => priority)),
    bigintArray(flat.map(([, , seq]) => seq)),
  ]
}
