// The write path of the seam over the world.
import { isPlanted } from '../../core/planted.ts'
import type { DueJob, DueKind, JobStore, PromoteReply, PruneRule } from '../../store/ports.ts'
import { admitJob } from './admission.ts'
import { claimJobs, extendLeases, listHoldings } from './claim.ts'
import { handOver } from './hand-over.ts'
import { insertJobs } from './insert.ts'
import { applyLimits } from './limit-change.ts'
import { enterReady, leave } from './places.ts'
import { snapshot } from './record.ts'
import type { JobRecord } from './record.ts'
import { forget, settle } from './settle.ts'
import type { World } from './world.ts'

/** Looking is cheap beside deleting. */
const LOOKS_PER_PRUNED = 10

export function memoryJobs(world: World): JobStore {
  return {
    insert: (jobs) =>
      world.run(() => {
        const reply = insertJobs(world, jobs)
        if (reply.ok) for (const queue of new Set(jobs.map((job) => job.queue))) handOver(world, queue)
        return reply
      }),
    claim: (request) => world.run(() => claimJobs(world, request)),
    apply: (transitions) => world.run(() => transitions.map((transition) => settle(world, transition))),
    extend: (leases, leaseMs) => world.run(() => extendLeases(world, leases, leaseMs)),
    holdings: (worker, claimNo) => world.run(() => listHoldings(world, worker, claimNo)),
    promote: (limit) => world.run(() => promote(world, limit)),
    due: (kind, limit) => world.run(() => [...listDue(world, kind, limit)]),
    prune: (rules, limit) => world.run(() => prune(world, rules, limit)),
  }
}

function promote(world: World, limit: number): PromoteReply {
  const nowMs = world.nowMs() + (isPlanted('promote-too-early') ? 1_000 : 0)
  let promoted = 0
  for (let next = world.scheduled.first(); next !== null && promoted < limit; next = world.scheduled.first()) {
    if (next.runAtMs > nowMs) break
    leave(world, next)
    next.waitsFor = null
    if (isPlanted('promote-too-early')) enterReady(world, next, false)
    else admitJob(world, next)
    world.onChange?.(next)
    promoted += 1
  }
  promoted += applyLimits(world, limit - promoted)
  const first = world.scheduled.first()
  return { promoted, nextDueInMs: first === null ? null : Math.max(first.runAtMs - nowMs, 0) }
}

function* listDue(world: World, kind: DueKind, limit: number): Iterable<DueJob> {
  let left = limit
  for (const record of kind === 'expired' ? expired(world) : kind === 'orphaned' ? world.orphans : ofCancelled(world)) {
    if (left-- <= 0) return
    const { orphaned } = record
    yield {
      job: snapshot(record),
      ...(kind === 'orphaned' && orphaned !== null && { orphan: orphaned }),
      ...(kind === 'expired' && record.heapIndex !== -1 && { visibilityLapsed: true }),
    }
  }
}

function* expired(world: World): Iterable<JobRecord> {
  for (const worker of world.dead) {
    if (worker.running.size === 0) world.dead.delete(worker)
    // A claim with a visibility of its own outlives the worker that made it.
    for (const record of worker.running) if (record.heapIndex === -1) yield record
  }
  yield* world.visibility.until(world.nowMs())
}

function* ofCancelled(world: World): Iterable<JobRecord> {
  for (const { live } of world.cancelledBatches) {
    for (const record of live) if (record.status !== 'running' || !record.cancelRequested) yield record
  }
}

function prune(world: World, rules: readonly PruneRule[], limit: number): number {
  const nowMs = world.nowMs()
  const named = new Set(rules.map(({ queue, status }) => `${queue}\0${status}`))
  let pruned = 0
  for (const { queue, status, olderThanMs } of rules) {
    for (const [name, state] of world.queues) {
      if (queue === undefined ? named.has(`${name}\0${status}`) : queue !== name) continue
      for (let oldest = state.finished[status].head; oldest !== null; oldest = state.finished[status].head) {
        if (pruned >= limit || (oldest.finishedAtMs ?? nowMs) > nowMs - olderThanMs) break
        leave(world, oldest)
        forget(world, oldest)
        const batch = oldest.batch === null ? undefined : world.batches.get(oldest.batch)
        if (batch !== undefined) batch.kept -= 1
        pruned += 1
      }
    }
  }
  sweep(world, rules, nowMs, limit)
  return pruned
}

/** What is over by itself: keys held for a time, rate lines in the past, finished batches without jobs. */
function sweep(world: World, rules: readonly PruneRule[], nowMs: number, limit: number): void {
  const longestMs = Math.max(0, ...rules.map((rule) => rule.olderThanMs))
  const looks = limit * LOOKS_PER_PRUNED
  world.sweeps.uniques.run(looks, ({ untilMs }) => untilMs <= nowMs)
  world.sweeps.rates.run(looks, ({ startTatMs, admitTatMs }) => startTatMs < nowMs && admitTatMs < nowMs)
  world.sweeps.batches.run(looks, ({ record, kept }) => {
    return kept === 0 && record.finishedAtMs !== null && record.finishedAtMs <= nowMs - longestMs
  })
}
