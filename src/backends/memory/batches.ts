// Batches of the memory backend; their counters are moved by places.ts.
import { EMPTY_COUNTS } from '../../core/batch.ts'
import { LIMITS } from '../../core/limits.ts'
import type { BatchRecord, BatchStore } from '../../store/batch-store.ts'
import type { Page, PageRequest } from '../../store/job-query.ts'
import { completeBatch } from './settle.ts'
import { badCursor } from './query.ts'
import type { World } from './world.ts'

export function memoryBatches(world: World): BatchStore {
  return {
    create: (batch) =>
      world.run(() => {
        if (world.batches.has(batch.id)) return
        const fresh = { counts: EMPTY_COUNTS, sealed: false, cancelled: false, finishedAtMs: null }
        const record: BatchRecord = { ...batch, ...fresh, createdAtMs: world.nowMs() }
        world.batches.set(batch.id, { record, live: new Set(), kept: 0 })
      }),
    get: (id) => world.run(() => world.batches.get(id)?.record ?? null),
    list: (page) => world.run(() => listBatches(world, page)),
    seal: (id) =>
      world.run(() => {
        const batch = world.batches.get(id)
        if (batch === undefined) return false
        batch.record = { ...batch.record, sealed: true }
        completeBatch(world, batch)
        return true
      }),
    discard: (id) =>
      world.run(() => {
        const batch = world.batches.get(id)
        return batch !== undefined && batch.record.counts.total === 0 && world.batches.delete(id)
      }),
    cancel: (id) =>
      world.run(() => {
        const batch = world.batches.get(id)
        if (batch === undefined) return false
        if (batch.record.finishedAtMs !== null) return true
        // A cancelled batch takes no more jobs, so it is sealed too and finishes with its last one.
        batch.record = { ...batch.record, cancelled: true, sealed: true }
        world.cancelledBatches.add(batch)
        completeBatch(world, batch)
        return true
      }),
  }
}

// Newest first; the cursor is the number of batches already shown from the oldest end.
function listBatches(world: World, page: PageRequest): Page<BatchRecord> {
  const limit = Math.min(page.limit, LIMITS.pageSizeMax)
  if (page.cursor !== undefined && !/^\d{1,15}$/.test(page.cursor)) throw badCursor(page.cursor)
  const all = [...world.batches.values()]
  const end = page.cursor === undefined ? all.length : Math.min(Number(page.cursor), all.length)
  const start = Math.max(end - limit, 0)
  const items = all
    .slice(start, end)
    .map(({ record }) => record)
    .reverse()
  return start === 0 ? { items } : { items, nextCursor: String(start) }
}
