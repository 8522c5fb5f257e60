// jobs.claim and jobs.apply on a Cluster: settled queue by queue, then claimed queue by queue. A worker of one queue
// still needs one round trip for both.
import type { ClaimedJob, JobId } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { ClaimRequest } from '../../store/ports.ts'
import { groupBy } from './cluster-insert.ts'
import { createCycleIn } from './cycle.ts'
import type { Cycle } from './cycle.ts'
import type { LiveRuns } from './live-runs.ts'
import { findQueues } from './locate.ts'
import type { Outbox } from './outbox.ts'
import type { RedisStore } from './store.ts'

export function createClusterCycle(store: RedisStore, outbox: Outbox, runs: LiveRuns): Cycle {
  const { link, keys, where } = store
  const runIn = createCycleIn(store, outbox.call('jobs.claim', 'cycle'), runs)

  /** Positions by queue; those that are nowhere under ''. */
  async function locate(transitions: readonly Transition[]): Promise<ReadonlyMap<string, readonly number[]>> {
    const unknown = new Set(transitions.map(({ jobId }) => jobId).filter((id) => where.of(id) === ''))
    const found = unknown.size === 0 ? new Map<JobId, string>() : await findQueues(store, [...unknown])
    const queueOf = (id: JobId): string => found.get(id) ?? where.of(id)
    return groupBy(
      transitions.map((_, index) => index),
      (index) => queueOf(transitions[index]!.jobId),
    )
  }

  async function settle(transitions: readonly Transition[]): Promise<readonly Verdict[]> {
    const verdicts = transitions.map((): Verdict => 'missing')
    for (const [queue, positions] of await locate(transitions)) {
      if (queue === '') continue
      const own = positions.map((position) => transitions[position]!)
      const reply = await runIn(queue, own)
      for (const [at, position] of positions.entries()) verdicts[position] = reply.verdicts[at]!
    }
    return verdicts
  }

  async function claimFrom(request: ClaimRequest, settled: readonly Transition[]) {
    const jobs: ClaimedJob[] = []
    const paused: string[] = []
    let verdicts: readonly Verdict[] = []
    let refused: 'superseded' | undefined
    for (const queue of request.queues) {
      const limit = Math.max(request.limit - jobs.length, 0)
      const reply = await runIn(queue, settled, { ...request, limit, queues: [queue] })
      if (settled.length > 0) verdicts = reply.verdicts
      jobs.push(...reply.jobs)
      paused.push(...reply.paused)
      if (reply.refused !== undefined) refused = 'superseded'
    }
    return { jobs, paused, verdicts, ...(refused !== undefined && { refused }) }
  }

  return {
    async claim(request) {
      const { settle: brought = [], queues, worker } = request
      const isAlive = (await link.command('HGET', keys.worker(worker), 'state')) === 'alive'
      const [only] = queues
      const isTogether = isAlive && queues.length === 1 && brought.every(({ jobId }) => where.of(jobId) === only)
      const verdicts = isTogether ? [] : await settle(brought)
      if (!isAlive) return { jobs: [], verdicts, paused: [], refused: 'worker-dead' }
      const reply = await claimFrom(request, isTogether ? brought : [])
      return isTogether ? reply : { ...reply, verdicts }
    },
    apply: settle,
  }
}
