// Claim: settle what the worker brings, then pop the next ready jobs and give each a new lease.
import type { ClaimedJob, LeaseNumber, LeaseRef, WorkerId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { isPlanted } from '../../core/planted.ts'
import type { Verdict } from '../../core/transition.ts'
import type { ClaimReply, ClaimRequest } from '../../store/ports.ts'
import { ratesOf } from './admission.ts'
import { enterRunning, leave } from './places.ts'
import type { JobRecord } from './record.ts'
import { settle } from './settle.ts'
import { freeKey } from './unique.ts'
import type { QueueState, World, WorkerState } from './world.ts'

const NO_VERDICTS: readonly Verdict[] = []

export function claimJobs(world: World, request: ClaimRequest): ClaimReply {
  const verdicts = request.settle === undefined ? NO_VERDICTS : request.settle.map((change) => settle(world, change))
  const worker = world.workers.get(request.worker)
  if (worker === undefined || worker.record.state === 'dead') {
    return { jobs: [], verdicts, paused: [], refused: 'worker-dead' }
  }
  if (request.claimNo <= worker.lastClaimNo) return { jobs: [], verdicts, paused: [], refused: 'superseded' }
  worker.lastClaimNo = request.claimNo
  const limit = Math.min(request.limit, LIMITS.claimBatchMax)
  const jobs: ClaimedJob[] = []
  const paused: string[] = []
  for (const name of request.queues) {
    const queue = world.queues.get(name)
    if (queue === undefined) continue
    if (queue.config.paused) {
      paused.push(name)
      continue
    }
    take(world, worker, queue, { jobs, limit, leaseMs: request.leaseMs })
  }
  // Who got something is busy: what is handed over might wait behind it.
  if (request.stands === true && request.leaseMs === undefined && jobs.length === 0) stand(world, request, limit)
  return { jobs, verdicts, paused, answered: worker.lastAnswered }
}

/** Notes that this claim may get so many later, in one queue of it (hand-over.ts). */
function stand(world: World, { worker, claimNo, queues }: ClaimRequest, limit: number): void {
  for (const name of queues) world.standing.set(name, { worker, claimNo, limit })
}

/** Adds to the jobs, up to the limit. */
export function take(
  world: World,
  worker: WorkerState,
  queue: QueueState,
  basket: { readonly jobs: ClaimedJob[]; readonly limit: number; readonly leaseMs?: number | undefined },
): void {
  const { jobs, limit, leaseMs } = basket
  while (jobs.length < limit) {
    const record = queue.ready.take(queue.config.lowerLaneShare) ?? takeUnmarked(world, queue.config.name)
    if (record === null) return
    start(world, worker, queue, record, leaseMs)
    jobs.push(claimed(record, queue))
  }
}

function takeUnmarked(world: World, queue: string): JobRecord | null {
  if (!isPlanted('hybrid-claims-unmarked')) return null
  const found = [...world.jobs.values()].find((record) => record.queue === queue && record.status === 'dispatched')
  if (found === undefined) return null
  leave(world, found)
  world.queue(queue).counts.queued += 1
  return found
}

function start(
  world: World,
  worker: WorkerState,
  queue: QueueState,
  record: JobRecord,
  leaseMs: number | undefined,
): void {
  const nowMs = world.nowMs()
  queue.counts.queued -= 1
  record.lease = (isPlanted('claim-reuses-lease') ? record.attemptCount + 1 : ++world.lastLease) as LeaseNumber // minted here
  record.worker = worker.record.id
  record.startedAtMs = nowMs
  record.updatedAtMs = nowMs
  record.progress = null
  enterRunning(world, record)
  worker.running.add(record)
  if (leaseMs !== undefined) world.visibility.add(record, nowMs + leaseMs)
  freeKey(world, record)
  world.onChange?.(record)
}

/** What a worker is given of a job. */
export function claimed(record: JobRecord, queue: QueueState): ClaimedJob {
  return {
    id: record.id,
    lease: record.lease,
    queue: record.queue,
    name: record.name,
    payload: record.payload,
    priority: record.priority,
    attemptCount: record.attemptCount,
    maxAttempts: record.maxAttempts,
    crashCount: record.crashCount,
    timeoutMs: record.timeoutMs,
    enqueuedAtMs: record.enqueuedAtMs,
    runAtMs: record.runAtMs,
    tags: record.tags,
    meta: record.meta,
    batch: record.batch,
    parents: record.parents,
    group: record.group,
    limitKey: record.limitKey,
    rateLimited: ratesOf(queue, record).length > 0,
  }
}

export function listHoldings(world: World, id: WorkerId, claimNo: number): readonly LeaseRef[] {
  const worker = world.workers.get(id)
  if (worker === undefined) return []
  worker.lastClaimNo = Math.max(worker.lastClaimNo, claimNo)
  worker.lastLookNo = Math.max(worker.lastLookNo, claimNo)
  return [...worker.running].map(({ id: jobId, lease }) => ({ jobId, lease }))
}

/** Moves visibilities; answers the leases that are no longer held. */
export function extendLeases(world: World, leases: readonly LeaseRef[], leaseMs: number): readonly LeaseRef[] {
  const untilMs = world.nowMs() + leaseMs
  return leases.filter(({ jobId, lease }) => {
    const record = world.jobs.get(jobId)
    if (record === undefined || record.status !== 'running' || record.lease !== lease) return true
    if (record.heapIndex !== -1) {
      world.visibility.remove(record)
      world.visibility.add(record, untilMs)
    }
    return false
  })
}
