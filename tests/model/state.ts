// A store as docs/backend-contract.md describes it, in its plainest form: arrays, no indexes, every answer
// recomputed from them. Written from the contract and the same for all backends; slow and simple on purpose.
import type { BatchId, Dependency, JobId, JobStatus, NewJob, WaitReason, WorkerId } from '../../src/core/job.ts'
import { DEFAULT_LANES, laneOf, pickLane } from '../../src/core/priority.ts'
import type { PassedOver } from '../../src/core/priority.ts'
import type { UniqueHold } from '../../src/core/unique.ts'

export interface Model {
  nowMs: number
  jobs: ModelJob[]
  readonly queues: readonly ModelQueue[]
  readonly batches: ModelBatch[]
  holds: Hold[]
  /** The last number given out, for places in lines. */
  lastPlace: number
}

export interface ModelJob {
  readonly id: JobId
  readonly queue: string
  payload: string
  readonly priority: number
  readonly maxAttempts: number
  /** `moving`: between two places, inside one step. */
  status: JobStatus | 'moving'
  waitsFor: WaitReason | null
  /** Queued, and with its token elsewhere already: only a backend that dispatches has this. */
  isDispatched: boolean
  /** In whatever line it stands. */
  place: number
  runAtMs: number
  attemptCount: number
  crashCount: number
  lease: number
  readonly leases: number[]
  worker: WorkerId | null
  cancelRequested: boolean
  removeRequested: boolean
  readonly group: string | null
  readonly limitKey: string | null
  readonly unique: UniqueHold | null
  readonly batch: BatchId | null
  dependsOn: ModelDependency[]
  leadsGroup: boolean
  holdsKeySlot: boolean
  holdsQueueSlot: boolean
  /** Transitions that were applied, newest last, and whether the job was claimed or changed since. */
  readonly applied: { readonly edge: string; readonly lease: number }[]
  touched: boolean
}

export interface ModelDependency extends Dependency {
  state: 'open' | 'met' | 'broken'
  /** Children of one parent are told in the order in which they came to wait for it. */
  readonly place: number
}

export interface ModelQueue {
  readonly name: string
  readonly share: number
  readonly passed: PassedOver
  paused: boolean
  concurrency: number | null
  perKey: number | null
}

export interface ModelBatch {
  readonly id: BatchId
  readonly callbacks: Readonly<Record<'complete' | 'success' | 'failure', NewJob>>
  sealed: boolean
  cancelled: boolean
  finished: boolean
}

export interface Hold {
  readonly queue: string
  readonly key: string
  readonly holder: JobId
  readonly untilMs: number
}

const FINAL: readonly string[] = ['completed', 'failed', 'cancelled']

export function hasEnded({ status }: Pick<ModelJob, 'status'>): boolean {
  return FINAL.includes(status)
}

export function findJob(model: Model, id: JobId): ModelJob | undefined {
  return model.jobs.find((job) => job.id === id)
}

export function queueOf(model: Model, name: string): ModelQueue {
  return model.queues.find((queue) => queue.name === name)!
}

/** Who has this key now. */
export function holdOf(model: Model, queue: string, unique: UniqueHold | null): Hold | undefined {
  return model.holds.find((hold) => hold.queue === queue && hold.key === unique?.key && hold.untilMs > model.nowMs)
}

export function holdKey(model: Model, holder: JobId, queue: string, { key, mode, windowMs }: UniqueHold): void {
  model.holds = model.holds.filter((hold) => hold.queue !== queue || hold.key !== key)
  model.holds.push({ queue, key, holder, untilMs: mode === 'for-a-time' ? model.nowMs + windowMs : Infinity })
}

export function freeKey(model: Model, job: ModelJob): void {
  model.holds = model.holds.filter((hold) => hold.holder !== job.id)
}

export function batchCounts(model: Model, batch: BatchId) {
  const jobs = model.jobs.filter((job) => job.batch === batch)
  const of = (status: string): number => jobs.filter((job) => job.status === status).length
  const pending = jobs.filter((job) => !hasEnded(job)).length
  return { total: jobs.length, pending, completed: of('completed'), failed: of('failed'), cancelled: of('cancelled') }
}

/** By priority, then by place. */
export function inLine(jobs: readonly ModelJob[]): readonly ModelJob[] {
  return [...jobs].sort((a, b) => a.priority - b.priority || a.place - b.place)
}

export function readyJobs(model: Model, queue: string): readonly ModelJob[] {
  return inLine(model.jobs.filter((job) => job.queue === queue && job.status === 'queued'))
}

/** The ids a claim must hand out, in order. Brings the shares of the lanes up to date. */
export function nextJobs(model: Model, queues: readonly string[], limit: number): readonly JobId[] {
  const picked: ModelJob[] = []
  for (const name of queues) {
    const { paused, share, passed } = queueOf(model, name)
    while (!paused && picked.length < limit) {
      const ready = readyJobs(model, name).filter((job) => !picked.includes(job))
      const has = (lane: number): boolean => ready.some((job) => laneOf(job.priority, DEFAULT_LANES) === lane)
      const lane = pickLane([has(0), has(1), has(2)], passed, share)
      if (lane === null) break
      picked.push(ready.find((job) => laneOf(job.priority, DEFAULT_LANES) === lane)!)
    }
  }
  return picked.map(({ id }) => id)
}

export function startJob(model: Model, id: JobId, lease: number, worker: WorkerId): void {
  const job = findJob(model, id)!
  job.status = 'running'
  job.lease = lease
  job.leases.push(lease)
  job.worker = worker
  job.touched = true
  if (job.unique?.mode === 'until-started') freeKey(model, job)
}
