// What `millrace top` reads at each look: a bounded number of bounded questions, all at once.
import { MillraceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { isLive } from '../core/liveness.ts'
import { queueKey } from '../observability/health.ts'
import type { HealthReport } from '../observability/health.ts'
import type { SeenWorker } from '../observability/crew.ts'
import { recentOf, sumOfRecent, withLook } from '../observability/recent.ts'
import type { Look } from '../observability/recent.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Clock } from '../runtime/clock.ts'
import type { ChildStatus, SupervisorRecord } from '../supervisor/fleet.ts'
import type { Session } from './session.ts'
import type { TopFacts, TopFailure, TopWorker } from './top-view.ts'

const RECENT_MS = 10_000

/** Rejects when the store does not answer. */
export function createTopReader(
  { mill, reads }: Pick<Session, 'mill' | 'reads'>,
  clock: Clock,
): () => Promise<TopFacts> {
  let looks: readonly Look[] = []

  async function failuresOf(): Promise<readonly TopFailure[]> {
    const { items } = await mill.jobs.list({ status: ['failed'] }, { limit: LIMITS.topFailuresMax })
    return items.map(({ id, queue, name, finishedAt, lastError }) => {
      const message = lastError === null ? '' : `${lastError.name}: ${lastError.message}`
      return { id, queue, name, message, at: finishedAt?.getTime() ?? 0 }
    })
  }

  /** The rates of the last seconds instead of those of the last minute. */
  function withRates(report: HealthReport): HealthReport {
    const counts = new Map(report.queues.map((one) => [queueKey(one.connection, one.queue), one.counts]))
    looks = withLook(looks, { atMs: clock.monoMs(), counts }, RECENT_MS)
    const recent = recentOf(looks)
    const queues = report.queues.map((one) => ({
      ...one,
      recent: recent?.get(queueKey(one.connection, one.queue)) ?? null,
    }))
    return { ...report, queues, recent: sumOfRecent(recent) }
  }

  return async () => {
    const asked = Promise.all([mill.health.report(), reads.workers(), failuresOf(), reads.supervisors()])
    const [report, workers, failures, supervisors] = await bounded(clock, LIMITS.healthMaxMs, 'the store', asked)
    if (report.state === 'failed') {
      // What is wrong with a store is told before everything else.
      const [down] = report.problems
      const code = down?.code === 'store-refused' ? 'STORE_REFUSED' : 'STORE_UNAVAILABLE'
      throw new MillraceError(code, down?.message ?? 'no answer', { retryable: true })
    }
    const nowMs = report.at.getTime()
    return {
      report: withRates(report),
      workers: workersOf(workers, supervisors, nowMs),
      failures: [...failures].sort((a, b) => b.at - a.at),
      nowMs,
    }
  }
}

/** Live ones and those that fell silent; the dead are history. */
function workersOf(
  workers: readonly SeenWorker[],
  supervisors: readonly SupervisorRecord[],
  nowMs: number,
): readonly TopWorker[] {
  const children = new Map<string, ChildStatus>()
  for (const { pools } of supervisors) {
    for (const child of pools.flatMap((pool) => pool.children))
      for (const id of child.workerIds) children.set(id, child)
  }
  const shown = workers.filter(({ state }) => state === 'alive').slice(0, LIMITS.topWorkersMax)
  return shown.map((worker) => {
    const child = children.get(worker.id)
    const lives = isLive(worker, nowMs)
    const { id, host, pid, queues, running, concurrency, blockedMs } = worker
    return {
      id,
      host,
      pid,
      queues,
      running,
      concurrency,
      blockedMs,
      isLive: lives,
      beatMs: nowMs - worker.lastBeatAtMs,
      rssBytes: child?.rssBytes ?? null,
      cpuPercent: child?.cpuPercent ?? null,
      state: lives ? (child?.state ?? 'running') : 'silent',
    }
  })
}
