// Is the system doing its work? Pure: facts in, sentences out. The thresholds are those of the alerts.
import type { Queue } from '../client/queues.ts'
import { formatDuration } from '../core/duration.ts'
import type { JobStatus } from '../core/job.ts'
import { JOB_STATUSES } from '../core/job.ts'
import type { QueueCounts } from '../store/job-query.ts'
import { isLive } from './reads.ts'
import type { SeenWorker } from './reads.ts'
import { counted } from './text.ts'

export const OLDEST_READY_MAX_MS = 60 * 60_000

export interface QueueHealth {
  readonly queue: string
  readonly connection: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobStatus, number>>
  readonly oldestReadyAt: Date | null
  /** Live ones that serve it. */
  readonly workers: number
}

export interface Problem {
  readonly code: 'no-worker' | 'behind'
  readonly queue: string
  readonly message: string
}

export interface HealthFacts {
  readonly queues: readonly Queue[]
  readonly counts: readonly (QueueCounts & { readonly connection: string })[]
  readonly workers: readonly SeenWorker[]
  readonly nowMs: number
}

export interface Health {
  readonly state: 'ok' | 'degraded'
  readonly problems: readonly Problem[]
  readonly queues: readonly QueueHealth[]
}

export function decideHealth(facts: HealthFacts): Health {
  const queues = queuesOf(facts)
  const problems = queues.flatMap((queue) => problemsOf(queue, facts.nowMs))
  return { state: problems.length === 0 ? 'ok' : 'degraded', problems, queues }
}

const NOTHING = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>

/** A queue may have a record and no jobs yet, or the other way round. */
function queuesOf({ queues, counts, workers, nowMs }: HealthFacts): readonly QueueHealth[] {
  const keyOf = (connection: string, queue: string): string => `${connection}\n${queue}`
  const records = new Map(queues.map((queue) => [keyOf(queue.connection, queue.name), queue]))
  const numbers = new Map(counts.map((one) => [keyOf(one.connection, one.queue), one]))
  const keys = [...new Set([...records.keys(), ...numbers.keys()])].sort()
  return keys.map((key) => {
    const [connection = '', queue = ''] = key.split('\n')
    const ready = numbers.get(key)?.oldestReadyAtMs ?? null
    const serving = workers.filter(
      (worker) => worker.connection === connection && worker.queues.includes(queue) && isLive(worker, nowMs),
    )
    return {
      queue,
      connection,
      paused: records.get(key)?.paused ?? false,
      counts: numbers.get(key)?.counts ?? NOTHING,
      oldestReadyAt: ready === null ? null : new Date(ready),
      workers: serving.length,
    }
  })
}

function problemsOf({ queue, paused, counts, oldestReadyAt, workers }: QueueHealth, nowMs: number): readonly Problem[] {
  // A paused queue waits because somebody wants it to.
  if (paused) return []
  const problems: Problem[] = []
  if (counts.queued > 0 && workers === 0) {
    const message = `queue ${queue} has ${counted(counts.queued, 'job')} ready and no live worker: start one with millrace work --queue ${queue}`
    problems.push({ code: 'no-worker', queue, message })
  }
  const waitedMs = oldestReadyAt === null ? 0 : nowMs - oldestReadyAt.getTime()
  if (waitedMs > OLDEST_READY_MAX_MS) {
    const message = `queue ${queue} is behind: its oldest ready job has waited ${formatDuration(waitedMs)}; more workers or more concurrency would help`
    problems.push({ code: 'behind', queue, message })
  }
  return problems
}
