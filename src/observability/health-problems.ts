// The rules of health, one function each: pure. The thresholds are those of src/core/limits.ts.
import { readyIn } from '../core/job.ts'
import { formatDuration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import type { SeenWorker } from './crew.ts'
import type { DownStore, Problem, ProblemCode, QueueHealth, SeenDispatch, SeenLeader, SeenServer } from './health.ts'

export function downProblem({ connection, message, isAway = true }: DownStore): Problem {
  if (isAway) return problem('store-down', 'critical', connection, `no answer: ${message}`)
  return problem('store-refused', 'critical', connection, `it answers, and refuses: ${message}`)
}

export function queueProblems(health: QueueHealth, nowMs: number): readonly Problem[] {
  const { queue, connection, paused, counts, oldestReadyAt, workers } = health
  // A paused queue waits because somebody wants it to.
  if (paused) return []
  const problems: Problem[] = []
  const ready = readyIn(counts)
  const say = (code: ProblemCode, severity: Problem['severity'], message: string): void =>
    void problems.push(problem(code, severity, connection, `queue ${queue} ${message}`, queue))
  if (ready > 0 && workers === 0) {
    const jobs = ready === 1 ? '1 job' : `${ready} jobs`
    say('no-worker', 'critical', `has ${jobs} ready and no live worker: start one with millrace work --queue ${queue}`)
  }
  const waitedMs = oldestReadyAt === null ? 0 : nowMs - oldestReadyAt.getTime()
  if (waitedMs > DEFAULTS.alertOldestReadyMs) {
    const waited = formatDuration(waitedMs)
    const help = 'more workers or more concurrency would help'
    say('behind', 'critical', `is behind: its oldest ready job has waited ${waited}; ${help}`)
  }
  if (ready > DEFAULTS.alertDepth) say('deep', 'warning', `has ${ready} jobs ready`)
  return problems
}

export function serverProblems(
  server: SeenServer,
  servers: readonly SeenServer[],
  down: readonly Pick<SeenServer, 'connection'>[],
): readonly Problem[] {
  const { kind, name, connection, pingMs, memory } = server
  // Of a store that is down that has been said.
  if (pingMs === null) return down.some((one) => one.connection === connection) ? [] : [silentServer(server, servers)]
  if (kind !== 'redis' || memory === undefined || memory.maxBytes === null) return []
  const share = memory.usedBytes / memory.maxBytes
  if (share <= DEFAULTS.alertRedisMemoryShare) return []
  const message = `Redis ${name} uses ${Math.round(share * 100)} % of its maxmemory: at the limit it refuses writes`
  return [problem('redis-memory', 'warning', connection, message)]
}

/** The store answered all the same: a Redis before a PostgreSQL is away, or a server is at the end of its strength. */
function silentServer({ kind, name, connection, error }: SeenServer, servers: readonly SeenServer[]): Problem {
  const isBefore =
    kind === 'redis' && servers.some((other) => other.connection === connection && other.kind === 'postgres')
  const why = error ?? 'no reason given'
  if (isBefore) return problem('redis-down', 'critical', connection, `Redis ${name} does not answer: ${why}`)
  const title = kind === 'redis' ? 'Redis' : 'PostgreSQL'
  return problem('slow-server', 'warning', connection, `${title} ${name} answered the report, but not its ping: ${why}`)
}

export function leaderProblems(
  { connection, holder }: SeenLeader,
  workers: readonly SeenWorker[],
  nowMs: number,
): readonly Problem[] {
  const works = workers.some((worker) => worker.connection === connection && isLive(worker, nowMs))
  if (holder !== null || !works) return []
  const message =
    'nobody leads maintenance: delayed jobs, retries and schedules stand still; it runs in workers, unless `maintenance` is false'
  return [problem('no-leader', 'critical', connection, message)]
}

export function dispatchProblems({ connection, queue, relayLagMs }: SeenDispatch): readonly Problem[] {
  if (relayLagMs === null || relayLagMs <= DEFAULTS.alertRelayLagMs) return []
  const message = `a ready job of queue ${queue} has waited ${formatDuration(Math.round(relayLagMs))} for its token, with room in Redis`
  return [problem('relay-lag', 'warning', connection, message, queue)]
}

export function deadLetterProblems(queues: readonly QueueHealth[]): readonly Problem[] {
  const failed = queues.filter(({ counts }) => counts.failed > 0).sort((a, b) => b.counts.failed - a.counts.failed)
  const total = failed.reduce((sum, { counts }) => sum + counts.failed, 0)
  if (total <= DEFAULTS.alertDeadLetters) return []
  const where = failed.slice(0, 3).map(({ queue, counts }) => `${queue} ${counts.failed}`)
  const message = `${total} dead letters (${where.join(', ')}): millrace dead ls, then replay or prune them`
  return [problem('dead-letters', 'warning', failed[0]?.connection ?? 'default', message)]
}

export function problem(
  code: ProblemCode,
  severity: Problem['severity'],
  connection: string,
  message: string,
  queue?: string,
): Problem {
  return { code, severity, connection, ...(queue !== undefined && { queue }), message }
}
