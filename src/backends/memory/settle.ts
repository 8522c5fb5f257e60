// Apply: one transition with all its consequences. Verdict and field changes are core/apply.ts's; here the
// job moves to its new place and everyone who waited for it goes on.
import { auditRow, chooses, judge, patch } from '../../core/apply.ts'
import { moveCount, countedAs } from '../../core/batch.ts'
import { parentEnded } from '../../core/gate.ts'
import { isFinal } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import { isPlanted } from '../../core/planted.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { controlTopic } from '../../store/wakeups.ts'
import { admitJob, releaseGroup, releaseSlots } from './admission.ts'
import { dependOn, insertJobs, orphan } from './insert.ts'
import { enterFinal, enterReady, finishBatch, leave } from './places.ts'
import type { JobRecord } from './record.ts'
import { freeKey, holdKey, mayHoldAgain } from './unique.ts'
import type { BatchState, World } from './world.ts'

export function settle(world: World, transition: Transition): Verdict {
  const record = world.jobs.get(transition.jobId)
  const verdict = judge(record, transition)
  if (record === undefined || (verdict !== 'applied' && verdict !== 'alternative')) {
    if (verdict === 'already' && isPlanted('batch-counts-twice')) countAgain(world, record)
    return verdict
  }
  const settled = chooses(record, transition)
  if (settled.edge === 'replay' && !mayHoldAgain(world, record)) return 'conflict'
  change(world, record, settled)
  world.onChange?.(record)
  return verdict
}

function change(world: World, record: JobRecord, settled: Transition): void {
  const nowMs = world.nowMs()
  switch (settled.edge) {
    case 'report':
      patch(record, settled, nowMs)
      appendLogs(record, settled)
      return
    case 'requestCancel':
      patch(record, settled, nowMs)
      if (record.worker !== null) world.ring(controlTopic(record.worker))
      return
    case 'markReplayed':
      patch(record, settled, nowMs)
      appendAudit(record, settled, nowMs)
      return
    case 'remove':
      leave(world, record)
      erase(world, record)
      return
    default:
      move(world, record, settled, nowMs)
  }
}

function move(world: World, record: JobRecord, settled: Transition, nowMs: number): void {
  leave(world, record)
  patch(record, settled, nowMs)
  appendAudit(record, settled, nowMs)
  if (settled.edge === 'return') {
    enterReady(world, record, true)
    return
  }
  if (settled.edge === 'replay') reviveGates(world, record)
  releaseSlots(world, record)
  if (isFinal(settled.to)) {
    enterFinal(world, record, settled.to)
    endJob(world, record)
    return
  }
  if (settled.edge === 'retry' && isPlanted('group-freed-on-retry')) releaseGroup(world, record)
  record.waitsFor = settled.waitsFor ?? null
  // A deferred job has its place in the rate line already.
  if (settled.edge === 'defer') record.rateReserved = true
  if (settled.delayMs === undefined) record.runAtMs = nowMs
  admitJob(world, record)
}

/** Everything that hangs on the end of a job. */
function endJob(world: World, record: JobRecord): void {
  releaseGroup(world, record)
  freeKey(world, record)
  tellChildren(world, record)
  const batch = record.batch === null ? undefined : world.batches.get(record.batch)
  if (batch !== undefined) completeBatch(world, batch)
  if (record.removeRequested) {
    leave(world, record)
    erase(world, record)
  }
}

export function completeBatch(world: World, batch: BatchState): void {
  const callbacks = finishBatch(world, batch)
  if (callbacks.length > 0) insertJobs(world, callbacks)
}

function tellChildren(world: World, record: JobRecord): void {
  const { children } = record
  if (children === null) return
  record.children = null
  const ended = isFinal(record.status) ? record.status : 'cancelled' // a removed parent counts as cancelled
  for (const { child, policy } of children) {
    // An erased child may have a namesake: a late copy of its insert. That one knows its own parents.
    if (isFinal(child.status) || child.erased) continue
    const means = isPlanted('orphan-released') ? 'satisfied' : parentEnded(ended, policy)
    child.pendingParents -= 1
    if (means !== 'satisfied' && ended !== 'completed') {
      orphan(world, child, record, ended, means)
    } else if (child.pendingParents === 0 && child.status === 'blocked' && child.waitsFor === 'parents') {
      leave(world, child)
      child.waitsFor = null
      admitJob(world, child)
    }
    world.onChange?.(child)
  }
}

/** A replayed job has its key again and waits only for parents that are live again. */
function reviveGates(world: World, record: JobRecord): void {
  if (record.unique?.mode === 'until-finished') holdKey(world, record)
  record.orphaned = null
  record.pendingParents = 0
  for (const { parent: id, onFailure } of record.dependsOn) {
    const parent = world.jobs.get(id)
    if (parent === undefined || isFinal(parent.status)) continue
    // It may still be in the list of this parent, from its earlier life.
    parent.children = parent.children?.filter(({ child }) => child !== record) ?? null
    dependOn(world, record, parent, onFailure)
  }
}

/** Deletes a job that has left its place. */
function erase(world: World, record: JobRecord): void {
  releaseSlots(world, record)
  releaseGroup(world, record)
  freeKey(world, record, true)
  forget(world, record)
  const batch = record.batch === null ? undefined : world.batches.get(record.batch)
  if (batch !== undefined) {
    batch.record = { ...batch.record, counts: moveCount(batch.record.counts, countedAs(record.status), null) }
    batch.live.delete(record)
    batch.kept -= 1
  }
  tellChildren(world, record)
  if (batch !== undefined) completeBatch(world, batch)
  world.ringFinished(record.id)
}

/** Takes the record out of the main index; erased ones are swept from the order when they are the majority. */
export function forget(world: World, record: JobRecord): void {
  world.jobs.delete(record.id)
  record.erased = true
  record.payload = ''
  world.erased += 1
  if (world.erased < 1024 || world.erased * 2 <= world.order.length) return
  world.order = world.order.filter((kept) => !kept.erased)
  world.erased = 0
}

function appendAudit(record: JobRecord, settled: Transition, nowMs: number): void {
  const row = auditRow(record, settled, nowMs)
  if (row === null) return
  record.attempts ??= []
  record.attempts.push(row)
  // A job that snoozes for ever must not grow for ever; the newest rows tell most.
  if (record.attempts.length > LIMITS.auditRowsMax) record.attempts.shift()
}

// Lines carry their index within the run, so a report that is repeated after a lost reply adds nothing.
function appendLogs(record: JobRecord, { logLines, logFrom = 0, guard }: Transition): void {
  if (logLines === undefined) return
  if (record.logLease !== guard.lease) {
    record.logLease = guard.lease ?? 0
    record.logCount = 0
  }
  const fresh = logLines.slice(Math.max(record.logCount - logFrom, 0))
  const room = LIMITS.logLinesMax - record.logCount
  record.logs ??= []
  record.logs.push(...fresh.slice(0, Math.max(room, 0)))
  record.logCount = Math.max(record.logCount, logFrom + logLines.length)
  if (record.logs.length > LIMITS.jobLogLinesMax) record.logs.splice(0, record.logs.length - LIMITS.jobLogLinesMax)
}

function countAgain(world: World, record: JobRecord | undefined): void {
  const batch = record?.batch === null || record === undefined ? undefined : world.batches.get(record.batch)
  if (record === undefined || batch === undefined) return
  batch.record = { ...batch.record, counts: moveCount(batch.record.counts, 'pending', countedAs(record.status)) }
}
