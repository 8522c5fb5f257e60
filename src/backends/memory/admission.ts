// Gates and what is held at them: a job on its way to ready, and what it gives back when it leaves.
// The order of the gates is core/gate.ts's; here are only the lines in front of them.
import { admit } from '../../core/gate.ts'
import { LIMITS } from '../../core/limits.ts'
import { isPlanted } from '../../core/planted.ts'
import { reserveStart } from '../../core/rate.ts'
import type { RateLimit } from '../../core/rate.ts'
import { arrive, enterReady, enterScheduled, keySlotOf } from './places.ts'
import type { JobRecord } from './record.ts'
import { GroupLine, SlotGate, scoped } from './world.ts'
import type { QueueState, World } from './world.ts'

/** Puts a job that is in no place into the place its gates allow. */
export function admitJob(world: World, record: JobRecord): void {
  const queue = world.queue(record.queue)
  const nowMs = world.nowMs()
  const admission = admit({
    pendingParents: record.pendingParents,
    runAtMs: record.runAtMs,
    nowMs,
    rateWaitMs: reserveRate(world, queue, record, nowMs),
    groupBusy: isGroupBusy(world, record),
    keySlotsFree: record.holdsKeySlot ? Infinity : keySlotsFree(world, queue, record),
    queueSlotsFree: record.holdsQueueSlot ? Infinity : slotsFree(queue.config.limits.concurrency, queue.slots),
  })
  switch (admission.status) {
    case 'queued':
      takeGroup(world, record)
      takeSlots(world, queue, record)
      enterReady(world, record, false)
      break
    case 'scheduled':
      record.waitsFor = admission.waitsFor === 'delay' ? (record.waitsFor ?? 'delay') : admission.waitsFor
      record.runAtMs = admission.runAtMs
      enterScheduled(world, record)
      break
    case 'blocked':
      block(world, queue, record, admission.waitsFor)
      break
  }
}

function block(
  world: World,
  queue: QueueState,
  record: JobRecord,
  gate: 'parents' | 'group' | 'queue-slot' | 'key-slot',
): void {
  record.waitsFor = gate
  record.seq = ++world.lastSeq
  if (gate === 'queue-slot' || gate === 'key-slot') takeGroup(world, record)
  if (gate === 'queue-slot') takeKeySlot(world, queue, record)
  arrive(world, record, 'blocked')
  if (gate === 'parents' && record.orphaned !== null) world.orphans.add(record)
  if (gate === 'group') world.groups.get(scoped(record.queue, record.group ?? ''))?.waiting.append(record)
  else if (gate === 'queue-slot') queue.slots.waiting.add(record)
  else if (gate === 'key-slot') keyGate(world, record).waiting.add(record)
}

function isGroupBusy(world: World, record: JobRecord): boolean {
  if (record.group === null || record.holdsGroup) return false
  return world.groups.has(scoped(record.queue, record.group))
}

function takeGroup(world: World, record: JobRecord): void {
  if (record.group === null || record.holdsGroup) return
  const line = new GroupLine()
  line.holder = record
  record.holdsGroup = true
  world.groups.set(scoped(record.queue, record.group), line)
}

function takeSlots(world: World, queue: QueueState, record: JobRecord): void {
  takeKeySlot(world, queue, record)
  if (queue.config.limits.concurrency === null || record.holdsQueueSlot) return
  record.holdsQueueSlot = true
  queue.slots.used += 1
}

/** A job that was past the gate when a limit was set counts against it. */
export function countSlots(world: World, queue: QueueState, record: JobRecord): void {
  takeSlots(world, queue, record)
}

export function hasRoom(world: World, queue: QueueState, record: JobRecord): boolean {
  const ofQueue = record.holdsQueueSlot ? Infinity : slotsFree(queue.config.limits.concurrency, queue.slots)
  const ofKey = record.holdsKeySlot ? Infinity : keySlotsFree(world, queue, record)
  return ofQueue > 0 && ofKey > 0
}

function takeKeySlot(world: World, queue: QueueState, record: JobRecord): void {
  if (record.limitKey === null || queue.config.limits.perKeyConcurrency === null || record.holdsKeySlot) return
  record.holdsKeySlot = true
  keyGate(world, record).used += 1
}

export function keyGate(world: World, record: JobRecord): SlotGate {
  const key = keySlotOf(record)
  let gate = world.keySlots.get(key)
  if (gate === undefined) world.keySlots.set(key, (gate = new SlotGate()))
  return gate
}

function keySlotsFree(world: World, queue: QueueState, record: JobRecord): number {
  if (record.limitKey === null) return Infinity
  return slotsFree(queue.config.limits.perKeyConcurrency, world.keySlots.get(keySlotOf(record)))
}

function slotsFree(limit: number | null, gate: SlotGate | undefined): number {
  return limit === null ? Infinity : limit - (gate?.used ?? 0)
}

/** A place in the rate line, reserved once per job and only when nothing but the rate could hold it. */
function reserveRate(world: World, queue: QueueState, record: JobRecord, nowMs: number): number {
  if (record.rateReserved || record.pendingParents > 0 || record.runAtMs > nowMs) return 0
  let waitMs = 0
  for (const [key, limit] of ratesOf(queue, record)) {
    const reserved = reserveStart(world.rates.get(key), limit, nowMs)
    world.rates.set(key, reserved.state)
    waitMs = Math.max(waitMs, reserved.waitMs)
    record.rateReserved = true
  }
  return waitMs
}

/** The buckets that apply to a job, with their keys. */
export function ratesOf(
  queue: QueueState,
  job: { readonly queue: string; readonly limitKey: string | null },
): readonly (readonly [key: string, limit: RateLimit])[] {
  const { rate, perKeyRate } = queue.config.limits
  if (rate === null && perKeyRate === null) return []
  const buckets: [string, RateLimit][] = []
  if (rate !== null) buckets.push([scoped(job.queue, ''), rate])
  if (perKeyRate !== null && job.limitKey !== null) buckets.push([scoped(job.queue, job.limitKey), perKeyRate])
  return buckets
}

/** Gives back the slots; those who wait for them go on. */
export function releaseSlots(world: World, record: JobRecord): void {
  if (isPlanted('slot-kept-on-retry') && record.status === 'running' && record.lastEdge === 'retry') {
    record.holdsKeySlot = record.holdsQueueSlot = false
    return
  }
  const queue = world.queue(record.queue)
  if (record.holdsKeySlot) {
    record.holdsKeySlot = false
    const gate = keyGate(world, record)
    gate.used -= 1
    admitNext(world, record.queue, gate, queue.config.limits.perKeyConcurrency)
    if (gate.used === 0 && gate.waiting.isEmpty) world.keySlots.delete(keySlotOf(record))
  }
  if (record.holdsQueueSlot) {
    record.holdsQueueSlot = false
    queue.slots.used -= 1
    admitNext(world, record.queue, queue.slots, queue.config.limits.concurrency)
  }
}

// A waiter may stop at another gate, so one free slot may let several go on before one of them takes it.
function admitNext(world: World, queue: string, gate: SlotGate, slots: number | null): void {
  const admitted = admitWaiting(world, gate, slots, LIMITS.maintenanceBatchMax)
  if (admitted >= LIMITS.maintenanceBatchMax) world.relimited.add(queue)
}

/** Lets waiters of a gate go on while it has room, at most `limit` of them. Answers how many. */
export function admitWaiting(world: World, gate: SlotGate, slots: number | null, limit: number): number {
  let admitted = 0
  for (let next = gate.waiting.first(); next !== null && admitted < limit; next = gate.waiting.first()) {
    if (slotsFree(slots, gate) <= 0) break
    readmit(world, next)
    admitted += 1
  }
  return admitted
}

/** Takes a blocked job out of its line and sends it through the gates again. */
export function readmit(world: World, record: JobRecord): void {
  const queue = world.queue(record.queue)
  queue.counts[record.status] -= 1
  if (record.waitsFor === 'queue-slot') queue.slots.waiting.remove(record)
  else if (record.waitsFor === 'key-slot') world.keySlots.get(keySlotOf(record))?.waiting.remove(record)
  record.waitsFor = null
  admitJob(world, record)
  world.onChange?.(record)
}

/** Gives the group to the next in line. */
export function releaseGroup(world: World, record: JobRecord): void {
  if (!record.holdsGroup || record.group === null) return
  record.holdsGroup = false
  const key = scoped(record.queue, record.group)
  const line = world.groups.get(key)
  if (line === undefined || line.holder !== record) return
  const next = line.waiting.head
  if (next === null) {
    world.groups.delete(key)
    return
  }
  line.waiting.remove(next)
  line.holder = next
  next.holdsGroup = true
  world.queue(next.queue).counts[next.status] -= 1
  next.waitsFor = null
  admitJob(world, next)
  world.onChange?.(next)
}
