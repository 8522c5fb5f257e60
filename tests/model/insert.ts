// Inserting into the model: refusals first, then all records, then what they wait for, then the gates.
import { parentEnded } from '../../src/core/gate.ts'
import type { Dependency, JobId, NewJob } from '../../src/core/job.ts'
import type { InsertResult } from '../../src/store/ports.ts'
import { admit, leave } from './gates.ts'
import { batchCounts, findJob, hasEnded, holdKey, holdOf } from './state.ts'
import type { Model, ModelBatch, ModelJob } from './state.ts'

/** The code of the refusal, or what became of each request. */
export function insertJobs(model: Model, requests: readonly NewJob[]): string | readonly InsertResult[] {
  const ids = requests.map(({ id }) => id)
  for (const { batch: wanted, insideBatch = false, dependsOn = [] } of requests) {
    const batch = model.batches.find(({ id }) => id === wanted)
    if (wanted !== undefined && batch === undefined) return 'BATCH_NOT_FOUND'
    if (batch !== undefined && !takes(model, batch, insideBatch)) return 'BATCH_CLOSED'
    const unknown = dependsOn.find(({ parent }) => !ids.includes(parent) && findJob(model, parent) === undefined)
    if (unknown !== undefined) return 'DEPENDENCY_NOT_FOUND'
  }
  const results = requests.map((request) => write(model, request))
  const standsFor = new Map(ids.map((id, index) => [id, results[index]!.id]))
  const written = requests.filter((_, index) => results[index]!.outcome === 'inserted')
  for (const { id, dependsOn = [] } of written) {
    for (const { parent, onFailure } of dependsOn) {
      waitFor(model, findJob(model, id)!, standsFor.get(parent) ?? parent, onFailure)
    }
  }
  for (const { id } of written) admit(model, findJob(model, id)!)
  return results
}

function takes(model: Model, batch: ModelBatch, inside: boolean): boolean {
  if (batch.cancelled || batch.finished) return false
  return !batch.sealed || (inside && batchCounts(model, batch.id).pending > 0)
}

function write(model: Model, request: NewJob): InsertResult {
  const { id, queue } = request
  if (findJob(model, id) !== undefined) return { id, outcome: 'already' }
  const unique = request.unique ?? null
  const hold = holdOf(model, queue, unique)
  if (hold !== undefined) {
    return { id: hold.holder, outcome: replace(model, request, hold.holder) ? 'replaced' : 'duplicate' }
  }
  model.jobs.push({
    id,
    queue,
    payload: request.payload,
    priority: request.priority!, // the commands always name them
    maxAttempts: request.maxAttempts!,
    status: 'moving',
    waitsFor: null,
    isDispatched: false,
    place: 0,
    runAtMs: model.nowMs + (request.delayMs ?? 0),
    attemptCount: 0,
    crashCount: 0,
    lease: 0,
    leases: [],
    worker: null,
    cancelRequested: false,
    removeRequested: false,
    group: request.group ?? null,
    limitKey: request.limitKey ?? null,
    unique,
    batch: request.batch ?? null,
    dependsOn: [],
    leadsGroup: false,
    holdsKeySlot: false,
    holdsQueueSlot: false,
    applied: [],
    touched: false,
  })
  if (unique !== null) holdKey(model, id, queue, unique)
  return { id, outcome: 'inserted' }
}

function replace(model: Model, request: NewJob, holderId: JobId): boolean {
  const holder = findJob(model, holderId)
  const way = request.unique!.onDuplicate
  if (way === 'keep' || holder === undefined || hasEnded(holder) || holder.status === 'running') return false
  if (holder.isDispatched) return false
  holder.payload = request.payload
  holder.touched = true
  if (way === 'replace') return true
  holder.runAtMs = model.nowMs + (request.delayMs ?? 0)
  if (holder.status === 'moving' || holder.waitsFor === 'parents') return true
  leave(model, holder)
  admit(model, holder)
  return true
}

/** A parent that has ended counts at once. */
export function waitFor(model: Model, child: ModelJob, parentId: JobId, onFailure: Dependency['onFailure']): void {
  const parent = findJob(model, parentId)!
  const state = hasEnded(parent) ? ending(parent, onFailure) : 'open'
  child.dependsOn.push({ parent: parentId, onFailure, state, place: ++model.lastPlace })
}

/** A parent that was deleted before its end counts as cancelled. */
export function ending({ status }: ModelJob, onFailure: Dependency['onFailure']): 'met' | 'broken' {
  const ended = status === 'completed' || status === 'failed' ? status : 'cancelled'
  return parentEnded(ended, onFailure) === 'satisfied' ? 'met' : 'broken'
}
