// Is the system doing its work? Pure: facts in, a report out. The command line, the HTTP port and the alerts all ask here,
// and the thresholds are those of src/core/limits.ts.
import type { JobStatus } from '../core/job.ts'
import { JOB_STATUSES, readyIn } from '../core/job.ts'
import { LIMITS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import type { DispatchState, ServerState } from '../store/diagnosis.ts'
import type { QueueCounts } from '../store/job-query.ts'
import { crewOf } from './crew.ts'
import type { Crew, SeenWorker } from './crew.ts'
import {
  deadLetterProblems,
  dispatchProblems,
  downProblem,
  leaderProblems,
  queueProblems,
  serverProblems,
} from './health-problems.ts'
import { sumOfRecent } from './recent.ts'
import type { Recent } from './recent.ts'

interface Connected {
  readonly connection: string
}

export type SeenDispatch = DispatchState & Connected
export type SeenServer = ServerState & Connected
/** Who leads maintenance; null: nobody. */
export type SeenLeader = Connected & { readonly holder: string | null }

export interface QueueHealth extends Connected {
  readonly queue: string
  readonly paused: boolean
  readonly counts: Readonly<Record<JobStatus, number>>
  readonly oldestReadyAt: Date | null
  /** Live ones that serve it. */
  readonly workers: number
  /** Null until somebody has looked twice. */
  readonly recent: Recent | null
}

export type ProblemCode =
  | 'store-down'
  | 'store-refused'
  | 'redis-down'
  | 'no-worker'
  | 'behind'
  | 'no-leader'
  | 'deep'
  | 'dead-letters'
  | 'redis-memory'
  | 'slow-server'
  | 'relay-lag'

export interface Problem extends Connected {
  readonly code: ProblemCode
  /** `critical`: something does not work now, and the system is degraded. `warning`: it works, and will not stay so. */
  readonly severity: 'critical' | 'warning'
  /** Absent: it is not about one queue. */
  readonly queue?: string
  readonly message: string
}

export interface HealthFacts {
  readonly queues: readonly (Connected & { readonly name: string; readonly paused: boolean })[]
  readonly counts: readonly (QueueCounts & Connected)[]
  readonly workers: readonly SeenWorker[]
  /** The time of the store. */
  readonly nowMs: number
  readonly servers?: readonly SeenServer[]
  readonly dispatch?: readonly SeenDispatch[]
  /** A connection that cannot tell is not named. */
  readonly leaders?: readonly SeenLeader[]
  /** Connections whose store did not tell. `isAway` false: it answered, with a refusal. Default true. */
  readonly down?: readonly DownStore[]
  readonly recent?: ReadonlyMap<string, Recent> | null
  /** More than this many queues are left out, those without problems and with the fewest jobs first. */
  readonly queuesMax?: number
}

export type DownStore = Connected & { readonly message: string; readonly isAway?: boolean }

export interface HealthReport {
  /** `failed`: a store does not answer, or refuses to. `degraded`: something does not work. */
  readonly state: 'ok' | 'degraded' | 'failed'
  readonly at: Date
  readonly problems: readonly Problem[]
  readonly servers: readonly SeenServer[]
  readonly queues: readonly QueueHealth[]
  readonly queuesLeftOut: number
  readonly totals: Readonly<Record<JobStatus, number>>
  readonly recent: Recent | null
  readonly deadLetters: number
  readonly workers: Crew
  readonly leaders: readonly SeenLeader[]
  readonly dispatch: readonly SeenDispatch[]
}

export function decideHealth(facts: HealthFacts): HealthReport {
  const { servers = [], dispatch = [], leaders = [], down = [], recent = null, nowMs, workers } = facts
  const all = queuesOf(facts)
  const problems = [
    ...down.map(downProblem),
    ...servers.flatMap((server) => serverProblems(server, servers, down)),
    ...all.flatMap((queue) => queueProblems(queue, nowMs)),
    ...leaders.flatMap((leader) => leaderProblems(leader, workers, nowMs)),
    ...dispatch.flatMap(dispatchProblems),
    ...deadLetterProblems(all),
  ]
  const isDegraded = problems.some(({ severity }) => severity === 'critical')
  const queues = mostTelling(all, problems, facts.queuesMax ?? Infinity)
  return {
    state: down.length > 0 ? 'failed' : isDegraded ? 'degraded' : 'ok',
    at: new Date(nowMs),
    problems: problems.slice(0, LIMITS.healthProblemsMax),
    servers,
    queues,
    queuesLeftOut: all.length - queues.length,
    totals: totalsOf(all),
    recent: sumOfRecent(recent),
    deadLetters: all.reduce((sum, { counts }) => sum + counts.failed, 0),
    workers: crewOf(workers, nowMs),
    leaders,
    dispatch,
  }
}

/** Of one queue of one connection, in maps. */
export function queueKey(connection: string, queue: string): string {
  return `${connection}\n${queue}`
}

const NOTHING = Object.fromEntries(JOB_STATUSES.map((status) => [status, 0])) as Record<JobStatus, number>

/** A queue may have a record and no jobs yet, or the other way round. */
function queuesOf({ queues, counts, workers, nowMs, recent }: HealthFacts): readonly QueueHealth[] {
  const records = new Map(queues.map((queue) => [queueKey(queue.connection, queue.name), queue]))
  const numbers = new Map(counts.map((one) => [queueKey(one.connection, one.queue), one]))
  const serving = new Map<string, number>()
  for (const worker of workers.filter((one) => isLive(one, nowMs))) {
    for (const queue of worker.queues) {
      const key = queueKey(worker.connection, queue)
      serving.set(key, (serving.get(key) ?? 0) + 1)
    }
  }
  const keys = [...new Set([...records.keys(), ...numbers.keys()])].sort()
  return keys.map((key) => {
    const [connection = '', queue = ''] = key.split('\n')
    const ready = numbers.get(key)?.oldestReadyAtMs ?? null
    return {
      queue,
      connection,
      paused: records.get(key)?.paused ?? false,
      counts: numbers.get(key)?.counts ?? NOTHING,
      oldestReadyAt: ready === null ? null : new Date(ready),
      workers: serving.get(key) ?? 0,
      recent: recent?.get(key) ?? null,
    }
  })
}

function totalsOf(queues: readonly QueueHealth[]): Readonly<Record<JobStatus, number>> {
  const sum = (status: JobStatus): number => queues.reduce((all, { counts }) => all + counts[status], 0)
  return Object.fromEntries(JOB_STATUSES.map((status) => [status, sum(status)])) as Record<JobStatus, number>
}

function mostTelling(
  queues: readonly QueueHealth[],
  problems: readonly Problem[],
  most: number,
): readonly QueueHealth[] {
  if (queues.length <= most) return queues
  const bad = new Set(problems.map(({ connection, queue }) => queueKey(connection, queue ?? '')))
  const weight = ({ connection, queue, counts }: QueueHealth): number =>
    (bad.has(queueKey(connection, queue)) ? Number.MAX_SAFE_INTEGER / 2 : 0) + readyIn(counts) + counts.running
  const kept = new Set([...queues].sort((a, b) => weight(b) - weight(a)).slice(0, most))
  return queues.filter((queue) => kept.has(queue))
}
