// The write path on a Cluster: an atom per queue. Maintenance also carries what callers that died have left behind.
import type { BatchId, LeaseRef, WorkerId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { DueJob, DueKind, JobStore } from '../../store/ports.ts'
import { createBatchSweep } from './cluster-batches.ts'
import { createClusterCycle } from './cluster-cycle.ts'
import { createClusterInsert, groupBy } from './cluster-insert.ts'
import { dueJob, leaseRefs, pruneArgs } from './jobs.ts'
import type { LiveRuns } from './live-runs.ts'
import { findQueues, queueNames } from './locate.ts'
import type { Outbox } from './outbox.ts'
import type { JobReply } from './record.ts'
import { prepared, scriptOf } from './store.ts'
import type { RedisStore } from './store.ts'

export interface ClusterParts {
  readonly outbox: Outbox
  readonly register: (queues: Iterable<string>) => Promise<void>
  readonly runs: LiveRuns
}

/** A worker that holds nothing is forgotten by `due` a while after its end: claims may have been under way. */
const DEAD_GRACE_MS = 60_000
const FORGOTTEN_MAX = 100

export function clusterJobs(store: RedisStore, { outbox, register, runs }: ClusterParts): JobStore {
  const extend = prepared(store, 'jobs.extend', 'extend')
  const holdings = prepared(store, 'jobs.holdings', 'holdings')
  const promote = outbox.call('jobs.promote', 'promote')
  const prune = outbox.call('jobs.prune', 'prune')
  const cycle = createClusterCycle(store, outbox, runs)
  const listDue = createDue(store)
  const sweepBatches = createBatchSweep(store, outbox)
  const { link, keys, where } = store
  return {
    insert: createClusterInsert(store, outbox, register),
    claim: (request) => cycle.claim(request),
    apply: (transitions) => cycle.apply(transitions),
    async extend(leases, leaseMs) {
      await findQueues(
        store,
        leases.map(({ jobId }) => jobId).filter((id) => where.of(id) === ''),
      )
      const lost: LeaseRef[] = []
      for (const [queue, own] of groupBy(leases, ({ jobId }) => where.of(jobId))) {
        const asked = own.flatMap(({ jobId, lease }) => [jobId, queue, lease])
        const positions = (await extend(queue, [Math.ceil(leaseMs), own.length, ...asked])) as readonly number[]
        lost.push(...positions.map((position) => own[position - 1]!))
      }
      return lost
    },
    async holdings(worker, claimNo) {
      const names = await queueNames(store)
      const held = await Promise.all(names.map((queue) => holdings(queue, [queue, worker, claimNo])))
      return held.flatMap((flat) => leaseRefs(flat as readonly string[], where))
    },
    async promote(limit) {
      let [left, nextMs] = [Math.min(limit, LIMITS.maintenanceBatchMax), Infinity]
      const asked = left
      for (const queue of await queueNames(store)) {
        if (Number(await link.command('LLEN', keys.queue(queue, 'outbox'))) > 0) await outbox.deliver(queue)
        const [promoted, dueMs] = (await promote(queue, [queue, left])) as readonly [number, number]
        left -= promoted
        if (dueMs >= 0) nextMs = Math.min(nextMs, dueMs)
      }
      return { promoted: asked - left, nextDueInMs: nextMs === Infinity ? null : nextMs }
    },
    due: (kind, limit) => listDue(kind, Math.min(limit, LIMITS.maintenanceBatchMax)),
    async prune(rules, limit) {
      if (limit < 1 || rules.length === 0) return 0
      let deleted = 0
      for (const queue of await queueNames(store)) {
        const left = Math.min(limit, LIMITS.maintenanceBatchMax) - deleted
        if (left < 1) break
        deleted += Number(await prune(queue, [queue, ...pruneArgs(rules, left)]))
      }
      await sweepBatches(Math.max(...rules.map(({ olderThanMs }) => olderThanMs)))
      return deleted
    },
  }
}

function createDue(store: RedisStore): (kind: DueKind, limit: number) => Promise<readonly DueJob[]> {
  const due = prepared(store, 'jobs.due', 'due')
  const read = prepared(store, 'jobs.due', 'jobRead')
  const listOver = scriptOf(store, 'jobs.due', 'workerOver')
  const { link, keys, where } = store

  async function inQueues(kind: DueKind, limit: number, dead: readonly string[]): Promise<readonly DueJob[]> {
    const jobs: DueJob[] = []
    for (const queue of await queueNames(store)) {
      if (jobs.length >= limit) break
      const replies = (await due(queue, [queue, kind, limit - jobs.length, ...dead])) as readonly JobReply[]
      for (const reply of replies) {
        where.saw(reply[1], queue)
        jobs.push(dueJob(reply, kind))
      }
    }
    return jobs
  }

  async function expired(limit: number): Promise<readonly DueJob[]> {
    const dead = (await link.command('ZRANGE', keys.dead, 0, -1)) as readonly WorkerId[]
    const jobs = await inQueues('expired', limit, dead)
    if (jobs.length === 0 && dead.length > 0) await forgetDead()
    return jobs
  }

  /** With the numbers of their claims, which every queue keeps; these first, so that whoever dies here leaves none. */
  async function forgetDead(): Promise<void> {
    const over = (await link.run(
      listOver,
      [keys.dead],
      [keys.prefix, DEAD_GRACE_MS, FORGOTTEN_MAX],
    )) as readonly string[]
    if (over.length === 0) return
    const names = await queueNames(store)
    await Promise.all(names.map((queue) => link.command('HDEL', keys.queue(queue, 'claims'), ...over)))
    await link.command('ZREM', keys.dead, ...over)
  }

  /** Finished or gone: whoever put it on the list, or was to take it off, came too late or died. */
  async function isOver(batch: BatchId): Promise<boolean> {
    const fields = await link.command('HMGET', keys.batch(batch), 'asked', 'finished')
    const [asked, finished] = fields as readonly (string | null)[]
    return asked === null || finished !== null
  }

  async function ofCancelled(limit: number): Promise<readonly DueJob[]> {
    const jobs: DueJob[] = []
    for (const batch of (await link.command('SMEMBERS', keys.cancelledBatches)) as readonly BatchId[]) {
      if (await isOver(batch)) {
        await link.command('SREM', keys.cancelledBatches, batch)
        continue
      }
      const live = keys.batch(batch, 'live')
      const members = (await link.command('SRANDMEMBER', live, limit + 1_000)) as readonly string[]
      for (const [queue, own] of groupBy(members, (member) => member.split(' ')[0]!)) {
        const ids = own.map((member) => member.split(' ')[1]!)
        const asked = [0, ...ids.flatMap((id) => [queue, id])]
        const replies = (await read(queue, asked)) as readonly (JobReply | null)[]
        for (const reply of replies) {
          if (reply === null || jobs.length >= limit) continue
          const found = dueJob(reply, 'batch-cancelled')
          where.saw(reply[1], queue)
          if (!found.job.cancelRequested) jobs.push(found)
        }
      }
    }
    return jobs
  }

  return async (kind, limit) => {
    if (limit < 1) return []
    if (kind === 'expired') return expired(limit)
    return kind === 'orphaned' ? inQueues(kind, limit, []) : ofCancelled(limit)
  }
}
