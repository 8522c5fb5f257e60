// The gates of the model: where a job on its way to ready comes to stand, and who goes on when it leaves.
import { inLine, queueOf } from './state.ts'
import type { Model, ModelJob } from './state.ts'

/** Puts a job that is in no place into the place its gates allow. */
export function admit(model: Model, job: ModelJob): void {
  const { concurrency, perKey } = queueOf(model, job.queue)
  const others = model.jobs.filter((other) => other !== job && other.queue === job.queue)
  if (job.dependsOn.some(({ state }) => state !== 'met')) return block(model, job, 'parents')
  if (job.runAtMs > model.nowMs) {
    job.status = 'scheduled'
    job.waitsFor ??= 'delay'
    return
  }
  if (job.group !== null && others.some((other) => other.group === job.group && other.leadsGroup)) {
    return block(model, job, 'group')
  }
  job.leadsGroup = job.group !== null
  const keyUsed = others.filter((other) => other.limitKey === job.limitKey && other.holdsKeySlot).length
  if (job.limitKey !== null && perKey !== null && !job.holdsKeySlot && keyUsed >= perKey)
    return block(model, job, 'key-slot')
  job.holdsKeySlot = job.limitKey !== null
  const used = others.filter((other) => other.holdsQueueSlot).length
  if (concurrency !== null && used >= concurrency) return block(model, job, 'queue-slot')
  job.holdsQueueSlot = true
  job.status = 'queued'
  job.waitsFor = null
  job.place = ++model.lastPlace
}

function block(model: Model, job: ModelJob, gate: 'parents' | 'group' | 'key-slot' | 'queue-slot'): void {
  job.status = 'blocked'
  job.waitsFor = gate
  job.place = ++model.lastPlace
}

/** Out of its line and through the gates again. */
export function goOn(model: Model, job: ModelJob): void {
  job.status = 'moving'
  job.waitsFor = null
  admit(model, job)
}

/** Out of its place, slots given back, the key's first; after each, those who wait for it go on. */
export function leave(model: Model, job: ModelJob): void {
  job.status = 'moving'
  job.waitsFor = null
  if (job.holdsKeySlot) {
    job.holdsKeySlot = false
    openKeySlots(model, job.queue, job.limitKey!)
  }
  if (job.holdsQueueSlot) {
    job.holdsQueueSlot = false
    openQueueSlots(model, job.queue)
  }
}

function openKeySlots(model: Model, queue: string, key: string): void {
  const limit = queueOf(model, queue).perKey ?? Infinity
  for (;;) {
    const jobs = model.jobs.filter((job) => job.queue === queue && job.limitKey === key)
    const [next] = inLine(jobs.filter((job) => job.waitsFor === 'key-slot'))
    if (next === undefined || jobs.filter((job) => job.holdsKeySlot).length >= limit) return
    goOn(model, next)
  }
}

function openQueueSlots(model: Model, queue: string): void {
  const limit = queueOf(model, queue).concurrency ?? Infinity
  for (;;) {
    const jobs = model.jobs.filter((job) => job.queue === queue)
    const [next] = inLine(jobs.filter((job) => job.waitsFor === 'queue-slot'))
    if (next === undefined || jobs.filter((job) => job.holdsQueueSlot).length >= limit) return
    goOn(model, next)
  }
}

/** The group goes to whoever has stood longest before it. */
export function handOnGroup(model: Model, job: ModelJob): void {
  if (!job.leadsGroup) return
  job.leadsGroup = false
  const inGroup = model.jobs.filter((other) => other.queue === job.queue && other.group === job.group)
  const [next] = inGroup.filter((other) => other.waitsFor === 'group').sort((a, b) => a.place - b.place)
  if (next !== undefined) goOn(model, next)
}

/** After a change of limits whoever fits now goes on. */
export function openGates(model: Model, queue: string): void {
  for (const key of new Set(model.jobs.map((job) => job.limitKey))) if (key !== null) openKeySlots(model, queue, key)
  openQueueSlots(model, queue)
}

export function promoteDue(
  model: Model,
  limit: number,
): { readonly promoted: number; readonly nextDueInMs: number | null } {
  const scheduled = () => model.jobs.filter((job) => job.status === 'scheduled').sort((a, b) => a.runAtMs - b.runAtMs)
  const due = scheduled().filter((job) => job.runAtMs <= model.nowMs)
  for (const job of due.slice(0, limit)) goOn(model, job)
  const [next] = scheduled()
  const nextDueInMs = next === undefined ? null : Math.max(next.runAtMs - model.nowMs, 0)
  return { promoted: Math.min(due.length, limit), nextDueInMs }
}
