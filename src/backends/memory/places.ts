// Moving a job from one place to another, and keeping everything that counts places: the statuses of its
// queue and the counters of its batch. No other file changes `status`.
import { callbacksDue, countedAs, isDone, moveCount } from '../../core/batch.ts'
import { isFinal } from '../../core/job.ts'
import type { JobStatus, NewJob } from '../../core/job.ts'
import { SCHEDULED_TOPIC } from '../../store/wakeups.ts'
import type { JobRecord } from './record.ts'
import { scoped } from './world.ts'
import type { BatchState, QueueState, World } from './world.ts'

/** Takes the job out of the place its status names. The caller puts it somewhere else at once. */
export function leave(world: World, record: JobRecord): void {
  const queue = world.queue(record.queue)
  queue.counts[record.status] -= 1
  switch (record.status) {
    case 'queued':
      queue.ready.remove(record)
      break
    case 'scheduled':
      world.scheduled.remove(record)
      break
    case 'blocked':
      leaveGate(world, queue, record)
      break
    case 'running':
      world.workers.get(record.worker!)?.running.delete(record) // a running job has a worker
      if (record.heapIndex !== -1) world.visibility.remove(record)
      break
    case 'completed':
    case 'failed':
    case 'cancelled':
      record.list?.remove(record)
      break
    case 'dispatched':
      break // with the ledger of the hybrid alone, which keeps no line of them
  }
}

function leaveGate(world: World, queue: QueueState, record: JobRecord): void {
  world.orphans.delete(record)
  if (record.waitsFor === 'group') record.list?.remove(record)
  else if (record.waitsFor === 'queue-slot') queue.slots.waiting.remove(record)
  else if (record.waitsFor === 'key-slot') world.keySlots.get(keySlotOf(record))?.waiting.remove(record)
}

export function keySlotOf(record: JobRecord): string {
  return scoped(record.queue, record.limitKey ?? '')
}

/** Into the ready line: at its end, or, for a job that never started, back where it was. */
export function enterReady(world: World, record: JobRecord, keepPlace: boolean): void {
  if (!keepPlace) {
    record.seq = ++world.lastSeq
    record.readyAtMs = world.nowMs()
  }
  record.waitsFor = null
  const queue = arrive(world, record, 'queued')
  queue.ready.add(record)
  world.ring(queue.readyTopic)
}

export function enterScheduled(world: World, record: JobRecord): void {
  arrive(world, record, 'scheduled')
  world.scheduled.add(record, record.runAtMs)
  world.ring(SCHEDULED_TOPIC)
}

export function enterRunning(world: World, record: JobRecord): void {
  record.waitsFor = null
  arrive(world, record, 'running')
}

/** Hybrid: minted, and nobody has said yet that it runs. */
export function enterDispatched(world: World, record: JobRecord): void {
  record.waitsFor = null
  arrive(world, record, 'dispatched')
}

export function enterFinal(world: World, record: JobRecord, status: 'completed' | 'failed' | 'cancelled'): void {
  record.waitsFor = null
  arrive(world, record, status).finished[status].append(record)
  world.ringFinished(record.id)
}

/** Sets the status and moves the counters; the caller links the record into the place itself. */
export function arrive(world: World, record: JobRecord, status: JobStatus): QueueState {
  const queue = world.queue(record.queue)
  const before = record.status
  record.status = status
  queue.counts[status] += 1
  if (record.batch !== null && isFinal(before) !== isFinal(status)) {
    const batch = world.batches.get(record.batch)
    if (batch !== undefined) moveInBatch(batch, record, before, status)
  }
  return queue
}

function moveInBatch(batch: BatchState, record: JobRecord, from: JobStatus, to: JobStatus): void {
  batch.record = { ...batch.record, counts: moveCount(batch.record.counts, countedAs(from), countedAs(to)) }
  if (isFinal(to)) batch.live.delete(record)
  else batch.live.add(record)
}

/** When its last job has ended: marks a sealed batch finished, once. Answers the callbacks to insert. */
export function finishBatch(world: World, batch: BatchState): readonly NewJob[] {
  if (!isDone(batch.record)) return []
  batch.record = { ...batch.record, finishedAtMs: world.nowMs() }
  world.cancelledBatches.delete(batch)
  world.ringFinished(batch.record.id)
  return callbacksDue(batch.record)
    .map((name) => batch.record.callbacks[name])
    .filter((job) => job !== null)
}
