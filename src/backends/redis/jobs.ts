// The write path of the seam: one script per call.
import { LIMITS } from '../../core/limits.ts'
import type { JobId, LeaseNumber, LeaseRef } from '../../core/job.ts'
import type { DueJob, DueKind, JobStore, PruneRule } from '../../store/ports.ts'
import { createCycle } from './cycle.ts'
import { createInsert } from './insert.ts'
import type { RedisValue } from './link.ts'
import type { LiveRuns } from './live-runs.ts'
import { fieldsOf, parseJob } from './record.ts'
import type { JobReply } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'
import type { Whereabouts } from './whereabouts.ts'

export function redisJobs(store: RedisStore, runs: LiveRuns): JobStore {
  const extend = prepared(store, 'jobs.extend', 'extend')
  const holdings = prepared(store, 'jobs.holdings', 'holdings')
  const promote = prepared(store, 'jobs.promote', 'promote')
  const due = prepared(store, 'jobs.due', 'due')
  const prune = prepared(store, 'jobs.prune', 'prune')
  const cycle = createCycle(store, runs)
  const { where } = store
  return {
    insert: createInsert(store),
    claim: (request) => cycle.claim(request),
    apply: (transitions) => cycle.apply(transitions),
    async extend(leases, leaseMs) {
      if (leases.length === 0) return []
      const asked = leases.flatMap(({ jobId, lease }) => [jobId, where.of(jobId), lease])
      const lost = (await extend('', [Math.ceil(leaseMs), leases.length, ...asked])) as readonly number[]
      return lost.map((position) => leases[position - 1]!)
    },
    async holdings(worker, claimNo) {
      return leaseRefs((await holdings('', ['', worker, claimNo])) as readonly string[], where)
    },
    async promote(limit) {
      const bound = Math.min(limit, LIMITS.maintenanceBatchMax)
      const [promoted, nextMs] = (await promote('', ['', bound])) as readonly [number, number]
      return { promoted, nextDueInMs: nextMs < 0 ? null : nextMs }
    },
    async due(kind, limit) {
      if (limit < 1) return []
      const bound = Math.min(limit, LIMITS.maintenanceBatchMax)
      const replies = (await due('', ['', kind, bound])) as readonly JobReply[]
      return replies.map((reply) => {
        where.saw(reply[1], reply[0])
        return dueJob(reply, kind)
      })
    },
    async prune(rules, limit) {
      if (limit < 1 || rules.length === 0) return 0
      return Number(await prune('', ['', ...pruneArgs(rules, Math.min(limit, LIMITS.maintenanceBatchMax))]))
    },
  }
}

/** Queue, id and lease of each, one after the other, as lua/holdings.lua answers. */
export function leaseRefs(flat: readonly string[], where: Whereabouts): readonly LeaseRef[] {
  const held: LeaseRef[] = []
  for (let at = 0; at < flat.length; at += 3) {
    where.saw(flat[at + 1]!, flat[at]!)
    held.push({ jobId: flat[at + 1] as JobId, lease: Number(flat[at + 2]) as LeaseNumber }) // by their places
  }
  return held
}

export function pruneArgs(rules: readonly PruneRule[], limit: number): readonly RedisValue[] {
  const asked = rules.flatMap(({ queue, status, olderThanMs }) => [queue ?? '', status, Math.ceil(olderThanMs)])
  return [limit, rules.length, ...asked]
}

export function dueJob([queue, id, body, flat]: JobReply, kind: DueKind): DueJob {
  const fields = fieldsOf(flat)
  const job = parseJob(queue, id, body, fields)
  if (kind === 'expired') return fields.has('until') ? { job, visibilityLapsed: true } : { job }
  const [parent, parentStatus, policy] = (fields.get('orphan') ?? '').split(' ')
  if (kind !== 'orphaned' || parent === undefined) return { job }
  return {
    job,
    orphan: {
      parent: parent as JobId, // "parent status policy" of lua/_parents.lua
      parentStatus: parentStatus === 'failed' ? 'failed' : 'cancelled',
      policy: policy === 'fail' ? 'fail' : 'cancel',
    },
  }
}
