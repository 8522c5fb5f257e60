// After the limits of a queue were changed: jobs that were past the gate without a slot get one or go back
// behind it, and waiters of a gate with more room go on. Bounded; what is left follows in the next pass.
import { admitJob, admitWaiting, countSlots, hasRoom, releaseSlots } from './admission.ts'
import { leave } from './places.ts'
import type { JobRecord } from './record.ts'
import type { QueueState, World } from './world.ts'

/** Answers how many jobs it moved. */
export function applyLimits(world: World, limit: number): number {
  let moved = 0
  for (const name of world.relimited) {
    const queue = world.queue(name)
    for (const worker of world.workers.values()) {
      for (const record of worker.running) if (record.queue === name) countSlots(world, queue, record)
    }
    // Only a hybrid has those: nobody's, and past the gate.
    for (const record of world.jobs.values()) {
      if (record.status === 'dispatched' && record.queue === name) countSlots(world, queue, record)
    }
    moved += withhold(world, queue, limit - moved)
    moved += admitWider(world, name, queue, limit - moved)
    if (moved >= limit) return moved
    world.relimited.delete(name)
  }
  return moved
}

/** Ready jobs without the slots that are needed now get them where they stand, in order, or go behind the gate. */
function withhold(world: World, queue: QueueState, limit: number): number {
  const { concurrency, perKeyConcurrency } = queue.config.limits
  if (concurrency === null && perKeyConcurrency === null) return 0
  const slotless: JobRecord[] = []
  for (const record of queue.ready.records()) {
    if (slotless.length >= limit) break
    const needsQueueSlot = concurrency !== null && !record.holdsQueueSlot
    const needsKeySlot = perKeyConcurrency !== null && record.limitKey !== null && !record.holdsKeySlot
    if (needsQueueSlot || needsKeySlot) slotless.push(record)
  }
  for (const record of slotless) {
    if (hasRoom(world, queue, record)) {
      countSlots(world, queue, record)
      continue
    }
    leave(world, record)
    // It was ready, so its rate line is behind it: only the slots may hold it now. Behind a gate it holds none.
    record.rateReserved = true
    releaseSlots(world, record)
    admitJob(world, record)
    world.onChange?.(record)
  }
  return slotless.length
}

function admitWider(world: World, name: string, { config, slots }: QueueState, limit: number): number {
  let admitted = 0
  for (const [key, gate] of world.keySlots) {
    if (!key.startsWith(`${name}\0`)) continue
    admitted += admitWaiting(world, gate, config.limits.perKeyConcurrency, limit - admitted)
  }
  return admitted + admitWaiting(world, slots, config.limits.concurrency, limit - admitted)
}
