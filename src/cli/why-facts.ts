// The facts behind `millrace why`, read through the client. Every read is bounded: an answer that is late
// because it counted a million jobs is no answer.
import type { Attempt, Job } from '../client/job-view.ts'
import type { Queue } from '../client/queues.ts'
import { FINAL_STATUSES, JOB_STATUSES, isFinal } from '../core/job.ts'
import type { JobId, JobStatus } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import type { LimitUse } from '../store/limit-store.ts'
import { pickJobs } from './job-filter-flags.ts'
import type { SeenWorker } from '../observability/crew.ts'
import type { Session } from './session.ts'

export interface ParentFact {
  readonly id: JobId
  readonly name: string | null
  readonly status: JobStatus | 'removed'
}

export interface WhyFacts {
  readonly nowMs: number
  readonly job: Job
  readonly queue: Queue | null
  readonly workers: readonly SeenWorker[]
  /** Parents that have not ended, and how many more were not looked at. */
  readonly parents: { readonly open: readonly ParentFact[]; readonly unseen: number }
  /** The job of its group that goes ahead of it. */
  readonly groupAhead: Job | null
  readonly queueUse: LimitUse | null
  readonly keyUse: LimitUse | null
  /** Ready jobs of its queue that come first; `atLeast` when counting stopped there. */
  readonly ahead: { readonly count: number; readonly atLeast: boolean } | null
  readonly attempts: readonly Attempt[]
}

export interface Reason {
  /** Stable, for scripts. */
  readonly code: string
  readonly says: string
  readonly fix?: string
}

const PARENTS_MAX = 50
const AHEAD_MAX = 1_000
const GROUP_MAX = 1_000
const LIVE = JOB_STATUSES.filter((status) => !(FINAL_STATUSES as readonly JobStatus[]).includes(status))

export async function gatherFacts(session: Session, job: Job, localNowMs: number): Promise<WhyFacts> {
  const { mill, reads } = session
  const { connection, queue, limitKey } = job
  const waits = !isFinal(job.status) && job.status !== 'running'
  const [clock, record, workers, queueUse, keyUse, parents, groupAhead, ahead, attempts] = await Promise.all([
    reads.clock(connection),
    mill.queues.get(queue),
    reads.workers(),
    waits ? reads.limitUse(connection, queue) : null,
    waits && limitKey !== null ? reads.limitUse(connection, queue, limitKey) : null,
    job.waitsFor === 'parents' ? openParents(session, job) : { open: [], unseen: 0 },
    job.waitsFor === 'group' ? aheadInGroup(session, job) : null,
    job.status === 'queued' ? aheadInQueue(session, job) : null,
    mill.jobs.attempts(job),
  ])
  const nowMs = clock?.nowMs ?? localNowMs
  return { nowMs, job, queue: record, workers, parents, groupAhead, queueUse, keyUse, ahead, attempts }
}

async function openParents({ mill }: Session, { parents, connection }: Job): Promise<WhyFacts['parents']> {
  const looked = await Promise.all(
    parents.slice(0, PARENTS_MAX).map(async (id): Promise<ParentFact> => {
      const parent = await mill.jobs.get({ id, connection })
      return { id, name: parent?.name ?? null, status: parent?.status ?? 'removed' }
    }),
  )
  const open = looked.filter(({ status }) => status !== 'completed' && status !== 'removed')
  return { open, unseen: Math.max(0, parents.length - PARENTS_MAX) }
}

/** The one that runs, else the oldest: a group goes in the order of its jobs. */
async function aheadInGroup({ mill }: Session, { id, group, queue, connection }: Job): Promise<Job | null> {
  if (group === null) return null
  const filter = { queue, connection, group, status: LIVE }
  const { jobs } = await pickJobs((page) => mill.jobs.list(filter, page), GROUP_MAX)
  const others = jobs.filter((other) => other.id !== id)
  return others.find(({ status }) => status === 'running') ?? others.at(-1) ?? null
}

/** Which of two entered first is not shown by the store; when a job last changed is close to it. */
async function aheadInQueue({ mill }: Session, job: Job): Promise<WhyFacts['ahead']> {
  const filter = { queue: job.queue, connection: job.connection, status: 'queued' } as const
  const { jobs, more } = await pickJobs((page) => mill.jobs.list(filter, page), Math.min(AHEAD_MAX, LIMITS.bulkJobsMax))
  const count = jobs.filter((other) => isAhead(other, job)).length
  return { count, atLeast: more }
}

function isAhead(other: Job, job: Job): boolean {
  if (other.id === job.id || other.priority > job.priority) return false
  if (other.priority < job.priority) return true
  const [theirs, own] = [other.updatedAt.getTime(), job.updatedAt.getTime()]
  return theirs < own || (theirs === own && other.id < job.id)
}
