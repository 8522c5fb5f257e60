// A newer request with the same unique key: a holder that has not started takes its content and, with
// debounce, its time. Its place in whatever line it waits in stays, so repeating a request cannot starve it.
import { isFinal } from '../../core/job.ts'
import type { JobId, NewJob } from '../../core/job.ts'
import { admitJob, keyGate, releaseSlots } from './admission.ts'
import { leave } from './places.ts'
import type { JobRecord } from './record.ts'
import { scoped } from './world.ts'
import type { World } from './world.ts'

/** False: the holder has started, so the new request is only a duplicate. */
export function replaceHolder(
  world: World,
  id: JobId,
  job: NewJob,
  isUnplaced: (holder: JobRecord) => boolean,
): boolean {
  const holder = world.jobs.get(id)
  if (holder === undefined || isFinal(holder.status) || hasStarted(holder)) return false
  const samePriority = (job.priority ?? world.queue(job.queue).config.defaultPriority) === holder.priority
  if (isUnplaced(holder) || (samePriority && job.unique?.onDuplicate === 'replace')) {
    takeOver(world, holder, job)
    if (!isUnplaced(holder)) world.onChange?.(holder)
    return true
  }
  leave(world, holder)
  takeOver(world, holder, job)
  const postponed = holder.runAtMs > world.nowMs() && holder.status !== 'scheduled' && holder.waitsFor !== 'parents'
  if (postponed) {
    holder.waitsFor = null
    releaseSlots(world, holder)
    admitJob(world, holder)
  } else {
    comeBack(world, holder)
  }
  world.onChange?.(holder)
  return true
}

function takeOver(world: World, holder: JobRecord, job: NewJob): void {
  const { defaultPriority, defaultAttempts } = world.queue(job.queue).config
  const nowMs = world.nowMs()
  holder.name = job.name
  holder.payload = job.payload
  holder.timeoutMs = job.timeoutMs
  holder.priority = job.priority ?? defaultPriority
  // One that waits for a retry has used attempts up; the newer request gets at least one.
  holder.maxAttempts = Math.max(job.maxAttempts ?? defaultAttempts, holder.attemptCount + 1)
  holder.tags = job.tags ?? []
  holder.meta = job.meta ?? null
  holder.updatedAtMs = nowMs
  holder.lastEdge = 'replace'
  holder.lastEdgeLease = 0
  if (job.unique?.onDuplicate === 'debounce') {
    holder.runAtMs = Math.max(job.runAtMs ?? nowMs, nowMs + (job.delayMs ?? 0))
    if (holder.status === 'scheduled') holder.waitsFor = 'delay'
  }
}

/** Back to the place it was taken out of a moment ago, by its new priority and its old order. */
function comeBack(world: World, holder: JobRecord): void {
  const queue = world.queue(holder.queue)
  queue.counts[holder.status] += 1
  if (holder.status === 'queued') queue.ready.add(holder)
  else if (holder.status === 'scheduled') world.scheduled.add(holder, holder.runAtMs)
  else if (holder.waitsFor === 'queue-slot') queue.slots.waiting.add(holder)
  else if (holder.waitsFor === 'key-slot') keyGate(world, holder).waiting.add(holder)
  else if (holder.waitsFor === 'group') {
    world.groups.get(scoped(holder.queue, holder.group ?? ''))?.waiting.insertBySeq(holder)
  } else if (holder.orphaned !== null) world.orphans.add(holder)
}

/** Hybrid: its token may be in somebody's hands. */
function hasStarted({ status }: JobRecord): boolean {
  return status === 'running' || status === 'dispatched'
}
