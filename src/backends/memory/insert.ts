// Insert: all or none. Everything that could refuse is checked before anything is written; then records,
// then dependencies, then the gates, in the order of the call.
import { mayJoin, moveCount } from '../../core/batch.ts'
import { findCycle } from '../../core/flow.ts'
import { parentEnded } from '../../core/gate.ts'
import { isFinal } from '../../core/job.ts'
import type { Dependency, JobId, NewJob, ParentFailurePolicy } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import type { InsertRefusal, InsertReply, InsertResult } from '../../store/ports.ts'
import { admitJob } from './admission.ts'
import { JobRecord } from './record.ts'
import { replaceHolder } from './replace.ts'
import { holdKey, holderOf } from './unique.ts'
import { scoped } from './world.ts'
import type { World } from './world.ts'

export function insertJobs(world: World, jobs: readonly NewJob[]): InsertReply {
  const refusal = findRefusal(world, jobs)
  if (refusal !== null) return { ok: false, refusal }
  const results: InsertResult[] = []
  /** A duplicate in this call stands for its holder, also as a parent of others. */
  const standsFor = new Map<JobId, JobId>()
  const written = new Map<JobRecord, NewJob>()
  for (const job of jobs) {
    const result = writeOne(world, job, written)
    results.push(result)
    if (result.id !== job.id) standsFor.set(job.id, result.id)
  }
  for (const [record, { dependsOn }] of written) {
    if (dependsOn === undefined) continue
    record.dependsOn = resolveParents(dependsOn, standsFor)
    for (const { parent, onFailure } of record.dependsOn) {
      const parentRecord = world.jobs.get(parent)
      if (parentRecord !== undefined) dependOn(world, record, parentRecord, onFailure)
    }
  }
  for (const record of written.keys()) {
    admitJob(world, record)
    world.onChange?.(record)
  }
  return { ok: true, results }
}

function findRefusal(world: World, jobs: readonly NewJob[]): InsertRefusal | null {
  let ids: Set<JobId> | undefined
  for (const job of jobs) {
    if (job.batch !== undefined && !world.jobs.has(job.id)) {
      const batch = world.batches.get(job.batch)
      if (batch === undefined) return { code: 'BATCH_NOT_FOUND', jobId: job.id, batch: job.batch }
      if (!mayJoin(batch.record, job.insideBatch ?? false)) {
        return { code: 'BATCH_CLOSED', jobId: job.id, batch: job.batch }
      }
    }
    for (const { parent } of job.dependsOn ?? []) {
      ids ??= new Set(jobs.map(({ id }) => id))
      if (!ids.has(parent) && !world.jobs.has(parent) && !world.jobs.has(job.id)) {
        return { code: 'DEPENDENCY_NOT_FOUND', jobId: job.id, parent }
      }
    }
  }
  return ids === undefined ? null : findCircle(world, jobs)
}

/** Duplicates stand for their holders, and only then can jobs of one call turn out to wait for themselves. */
function findCircle(world: World, jobs: readonly NewJob[]): InsertRefusal | null {
  const holders = new Map<string, JobId>()
  const standsFor = new Map<JobId, JobId>()
  for (const { id, queue, unique } of jobs) {
    if (unique === undefined || world.jobs.has(id)) continue
    const key = scoped(queue, unique.key)
    const holder = holders.get(key) ?? holderOf(world, queue, unique)?.holder
    if (holder === undefined) holders.set(key, id)
    else standsFor.set(id, holder)
  }
  const nodes = jobs
    .filter(({ id }) => !standsFor.has(id) && !world.jobs.has(id))
    .map(({ id, dependsOn = [] }) => ({ id, dependsOn: resolveParents(dependsOn, standsFor) }))
  const circle = findCycle(nodes)
  return circle === null ? null : { code: 'DEPENDENCY_CYCLE', jobId: circle[0]!, circle }
}

/** Two duplicates may stand for one holder: it counts once, and a policy that asks for its success is kept. */
function resolveParents(dependsOn: readonly Dependency[], standsFor: ReadonlyMap<JobId, JobId>): readonly Dependency[] {
  const resolved = new Map<JobId, Dependency>()
  for (const { parent: asked, onFailure } of dependsOn) {
    const parent = standsFor.get(asked) ?? asked
    const known = resolved.get(parent)
    if (known === undefined || known.onFailure === 'continue') resolved.set(parent, { parent, onFailure })
  }
  return [...resolved.values()]
}

function writeOne(world: World, job: NewJob, written: Map<JobRecord, NewJob>): InsertResult {
  if (world.jobs.has(job.id)) return { id: job.id, outcome: 'already' }
  const held = job.unique === undefined ? null : holderOf(world, job.queue, job.unique)
  if (held !== null) {
    const replaced =
      job.unique?.onDuplicate !== 'keep' && replaceHolder(world, held.holder, job, (holder) => written.has(holder))
    return { id: held.holder, outcome: replaced ? 'replaced' : 'duplicate' }
  }
  const queue = world.queue(job.queue)
  const defaults = { priority: queue.config.defaultPriority, maxAttempts: queue.config.defaultAttempts }
  const record = new JobRecord(job, defaults, ++world.lastNo, world.nowMs())
  world.jobs.set(record.id, record)
  world.order.push(record)
  holdKey(world, record)
  joinBatch(world, record)
  written.set(record, job)
  return { id: record.id, outcome: 'inserted' }
}

function joinBatch(world: World, record: JobRecord): void {
  const batch = record.batch === null ? undefined : world.batches.get(record.batch)
  if (batch === undefined) return
  batch.record = { ...batch.record, counts: moveCount(batch.record.counts, null, 'pending') }
  batch.live.add(record)
  batch.kept += 1
}

export function dependOn(world: World, child: JobRecord, parent: JobRecord, policy: ParentFailurePolicy): void {
  if (!isFinal(parent.status)) {
    child.pendingParents += 1
    parent.children ??= []
    parent.children.push({ child, policy })
    return
  }
  const means = isPlanted('orphan-released') ? 'satisfied' : parentEnded(parent.status, policy)
  if (means !== 'satisfied' && parent.status !== 'completed') orphan(world, child, parent, parent.status, means)
}

/** The child stays blocked; maintenance settles it by its policy. */
export function orphan(
  world: World,
  child: JobRecord,
  parent: JobRecord,
  parentStatus: 'failed' | 'cancelled',
  policy: 'fail' | 'cancel',
): void {
  // Counted once for good: nothing will ever bring it down, so the gate stays shut.
  child.pendingParents += 1
  child.orphaned ??= { parent: parent.id, parentStatus, policy }
  world.orphans.add(child)
}
