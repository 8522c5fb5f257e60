// Who holds a unique key. A key is given back explicitly, at the start or at the end of its holder, and
// is not taken again by a retry.
import { isFinal } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import { holdsKey } from '../../core/unique.ts'
import type { UniqueHold } from '../../core/unique.ts'
import type { JobRecord } from './record.ts'
import { scoped } from './world.ts'
import type { UniqueEntry, World } from './world.ts'

export function holderOf(world: World, queue: string, unique: UniqueHold): UniqueEntry | null {
  if (isPlanted('unique-not-checked')) return null
  const entry = world.uniques.get(scoped(queue, unique.key))
  if (entry === undefined || (entry.mode === 'for-a-time' && entry.untilMs <= world.nowMs())) return null
  return entry
}

export function holdKey(world: World, record: JobRecord): void {
  const { unique } = record
  if (unique === null) return
  const untilMs = unique.mode === 'for-a-time' ? world.nowMs() + unique.windowMs : Infinity
  world.uniques.set(scoped(record.queue, unique.key), { holder: record.id, mode: unique.mode, untilMs })
}

/** Gives the key back if the status of its holder no longer holds it (core/unique.ts), or if the holder goes. */
export function freeKey(world: World, record: JobRecord, isGone = false): void {
  const { unique } = record
  if (unique === null || unique.mode === 'for-a-time') return
  if (!isGone && holdsKey(unique.mode, record.status)) return
  const key = scoped(record.queue, unique.key)
  if (world.uniques.get(key)?.holder === record.id) world.uniques.delete(key)
}

/** Could a replayed job have its key back? A key held for a time does not stand in the way of its own job. */
export function mayHoldAgain(world: World, record: JobRecord): boolean {
  if (record.unique === null) return true
  const entry = holderOf(world, record.queue, record.unique)
  if (entry === null || entry.holder === record.id) return true
  const holder = world.jobs.get(entry.holder)
  return holder === undefined || isFinal(holder.status)
}
