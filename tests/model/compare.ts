// After every command: does the store show what the model says?
import { expect } from 'vitest'
import { JOB_STATUSES } from '../../src/core/job.ts'
import type { StoredJob } from '../../src/core/job.ts'
import type { Backend } from '../../src/store/ports.ts'
import { allPages } from '../conformance/dump.ts'
import { place } from '../conformance/world.ts'
import { batchCounts, freeKey, hasEnded } from './state.ts'
import type { Model, ModelJob } from './state.ts'

export async function compare(model: Model, backend: Backend): Promise<void> {
  const stored = await allPages((page) => backend.query.list({}, page))
  const shown = stored.map((job) => ({
    id: job.id,
    queue: job.queue,
    payload: job.payload,
    priority: job.priority,
    status: place(job.status),
    waitsFor: job.waitsFor,
    attemptCount: job.attemptCount,
    crashCount: job.crashCount,
    cancelRequested: job.cancelRequested,
    ...(job.status === 'running' && { lease: job.lease, worker: job.worker }),
    ...(job.status === 'scheduled' && { runAtMs: job.runAtMs }),
  }))
  // Newest first is checked by the conformance suite: a store may go by insert or by id.
  expect(shown.toSorted(byId)).toEqual(model.jobs.map(expected).toSorted(byId))
  noteDispatched(model, stored)
  for (const batch of model.batches) {
    const record = await backend.batches.get(batch.id)
    expect(record?.counts).toEqual(batchCounts(model, batch.id))
    expect([record?.sealed, record?.cancelled, record?.finishedAtMs !== null]).toEqual([
      batch.sealed,
      batch.cancelled,
      batch.finished,
    ])
  }
  for (const { queue, counts } of await backend.query.counts()) {
    const jobs = model.jobs.filter((job) => job.queue === queue)
    const recount = JOB_STATUSES.map((status) => jobs.filter((job) => job.status === status).length)
    const told = { ...counts, queued: counts.queued + counts.dispatched, dispatched: 0 }
    expect(JOB_STATUSES.map((status) => told[status])).toEqual(recount)
  }
  await compareDue(model, backend)
}

/**
 * Where a backend dispatches (docs/backend-contract.md §10) it decides itself when: from then on a job cannot be replaced, as if
 * it ran, and a key `until-started` is free. Everything else is as for a job that is queued.
 */
function noteDispatched(model: Model, stored: readonly Pick<StoredJob, 'id' | 'status'>[]): void {
  const dispatched = new Set(stored.filter(({ status }) => status === 'dispatched').map(({ id }) => id))
  for (const job of model.jobs) {
    job.isDispatched = dispatched.has(job.id)
    if (job.isDispatched && job.unique?.mode === 'until-started') freeKey(model, job)
  }
}

function byId(a: { readonly id: string }, b: { readonly id: string }): number {
  return a.id < b.id ? -1 : 1
}

function expected(job: ModelJob) {
  return {
    id: job.id,
    queue: job.queue,
    payload: job.payload,
    priority: job.priority,
    status: job.status,
    waitsFor: hasEnded(job) || job.status === 'running' ? null : job.waitsFor,
    attemptCount: job.attemptCount,
    crashCount: job.crashCount,
    cancelRequested: job.cancelRequested,
    ...(job.status === 'running' && { lease: job.lease, worker: job.worker }),
    ...(job.status === 'scheduled' && { runAtMs: job.runAtMs }),
  }
}

async function compareDue(model: Model, backend: Backend): Promise<void> {
  const orphans = await backend.jobs.due('orphaned', 1_000)
  expect(orphans.map(({ job }) => job.id).sort()).toEqual(
    model.jobs
      .filter((job) => job.status === 'blocked' && job.dependsOn.some(({ state }) => state === 'broken'))
      .map(({ id }) => id)
      .sort(),
  )
  for (const { job, orphan } of orphans) {
    const broken = model.jobs.find(({ id }) => id === job.id)!.dependsOn.filter(({ state }) => state === 'broken')
    expect(broken.map(({ parent }) => parent)).toContain(orphan?.parent)
  }
  const cancelled = model.batches.filter((batch) => batch.cancelled && !batch.finished).map(({ id }) => id)
  const toCancel = model.jobs.filter((job) => !hasEnded(job) && job.batch !== null && cancelled.includes(job.batch))
  expect((await backend.jobs.due('batch-cancelled', 1_000)).map(({ job }) => job.id).sort()).toEqual(
    toCancel
      .filter((job) => job.status !== 'running' || !job.cancelRequested)
      .map(({ id }) => id)
      .sort(),
  )
}
