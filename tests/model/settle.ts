// Applying transitions to the model: the verdicts the contract allows, and every consequence, in its order:
// slots, group, unique key, children, batch, deletion.
import type { BatchId } from '../../src/core/job.ts'
import type { Transition, Verdict } from '../../src/core/transition.ts'
import { admit, goOn, handOnGroup, leave } from './gates.ts'
import { ending, insertJobs, waitFor } from './insert.ts'
import { batchCounts, findJob, freeKey, hasEnded, holdKey, holdOf } from './state.ts'
import type { Model, ModelJob } from './state.ts'

const COUNTED: readonly string[] = ['complete', 'retry', 'fail', 'cancelRunning', 'expire', 'expireForGood']
const CRASHED: readonly string[] = ['expire', 'expireForGood']

/** The verdicts that are right; the change is made if there is one. */
export function settle(model: Model, transition: Transition): readonly Verdict[] {
  const job = findJob(model, transition.jobId)
  if (job === undefined) return ['missing']
  const { from, lease } = transition.guard
  const holds = from.some((status) => status === job.status) && (lease === undefined || lease === job.lease)
  if (!holds) return refusal(job, transition)
  if (transition.edge === 'replay' && isKeyTaken(model, job)) return ['conflict']
  const alternative = job.cancelRequested ? transition.ifCancelRequested : undefined
  change(model, job, alternative ?? transition)
  return [alternative === undefined ? 'applied' : 'alternative']
}

function refusal(job: ModelJob, { edge, guard, ifCancelRequested }: Transition): readonly Verdict[] {
  const lease = guard.lease ?? 0
  const last = job.applied.at(-1)
  if (last?.edge === edge && last.lease === lease && !job.touched) return ['already']
  // Long ago, or by way of the alternative: a store may remember it or not.
  const names = [edge, ifCancelRequested?.edge]
  const known = job.applied.some((one) => names.some((name) => name === one.edge) && one.lease === lease)
  return known ? ['already', 'stale'] : ['stale']
}

function isKeyTaken(model: Model, job: ModelJob): boolean {
  const hold = holdOf(model, job.queue, job.unique)
  const holder = hold === undefined ? undefined : findJob(model, hold.holder)
  return holder !== undefined && holder !== job && !hasEnded(holder)
}

function change(model: Model, job: ModelJob, settled: Transition): void {
  const { edge, to, guard } = settled
  job.touched = true
  if (edge === 'requestCancel') {
    job.cancelRequested = true
    if (settled.thenRemove === true) job.removeRequested = true
    return
  }
  if (edge === 'remove') return erase(model, job)
  job.applied.push({ edge, lease: guard.lease ?? 0 })
  job.touched = false
  job.cancelRequested = false
  if (COUNTED.includes(edge)) job.attemptCount += 1
  if (CRASHED.includes(edge)) job.crashCount += 1
  if (edge === 'return') {
    job.status = 'queued'
    return
  }
  if (edge === 'replay') revive(model, job)
  leave(model, job)
  if (hasEnded({ status: to })) {
    job.status = to
    return end(model, job)
  }
  job.runAtMs = model.nowMs + (settled.delayMs ?? 0)
  job.waitsFor = settled.waitsFor ?? null
  admit(model, job)
}

/** Fresh attempts, its key again, and it waits only for parents that are live now. */
function revive(model: Model, job: ModelJob): void {
  job.attemptCount = 0
  job.crashCount = 0
  if (job.unique?.mode === 'until-finished') holdKey(model, job.id, job.queue, job.unique)
  const before = job.dependsOn
  job.dependsOn = []
  for (const { parent, onFailure } of before) {
    const found = findJob(model, parent)
    if (found !== undefined && !hasEnded(found)) waitFor(model, job, parent, onFailure)
  }
}

function end(model: Model, job: ModelJob): void {
  giveBack(model, job)
  tellChildren(model, job)
  finishBatch(model, job.batch)
  if (job.removeRequested) erase(model, job)
}

function erase(model: Model, job: ModelJob): void {
  if (!hasEnded(job)) {
    leave(model, job)
    giveBack(model, job)
  }
  model.jobs = model.jobs.filter((other) => other !== job)
  tellChildren(model, job)
  finishBatch(model, job.batch)
}

function giveBack(model: Model, job: ModelJob): void {
  handOnGroup(model, job)
  if (job.unique?.mode !== 'for-a-time') freeKey(model, job)
}

function tellChildren(model: Model, parent: ModelJob): void {
  const waiting = model.jobs.flatMap((child) =>
    child.dependsOn.filter((one) => one.parent === parent.id && one.state === 'open').map((one) => ({ child, one })),
  )
  for (const { child, one } of waiting.sort((a, b) => a.one.place - b.one.place)) {
    if (hasEnded(child)) continue
    one.state = ending(parent, one.onFailure)
    if (child.waitsFor === 'parents' && child.dependsOn.every(({ state }) => state === 'met')) goOn(model, child)
  }
}

/** Sealed and nothing pending: finished once, with its callbacks. */
export function finishBatch(model: Model, id: BatchId | null): void {
  const batch = model.batches.find((one) => one.id === id)
  if (batch === undefined || !batch.sealed || batch.finished) return
  const { pending, completed, total } = batchCounts(model, batch.id)
  if (pending > 0) return
  batch.finished = true
  const { complete, success, failure } = batch.callbacks
  insertJobs(model, [complete, completed === total && !batch.cancelled ? success : failure])
}
