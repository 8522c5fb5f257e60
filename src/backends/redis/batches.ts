// Batches; their counters and callbacks are moved by the scripts that move jobs (lua/_batches.lua), on a Cluster by
// messages (outbox.ts).
import type { BatchId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { Page, PageRequest } from '../../store/job-query.ts'
import type { BatchRecord, BatchStore } from '../../store/batch-store.ts'
import { batchFields, batchRecord } from './batch-fields.ts'
import { badCursor } from './cursor.ts'
import { batchTag } from './keys.ts'
import type { Outbox } from './outbox.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

type Ending = 'seal' | 'cancel' | 'discard'

/** With an outbox: on a Cluster. */
export function redisBatches(store: RedisStore, outbox: Outbox | undefined): BatchStore {
  const create = prepared(store, 'batches.create', 'batchCreate')
  const { link, keys } = store
  const ended = outbox === undefined ? endHere(store) : endApart(store, outbox)
  return {
    async create(batch) {
      await create(batchTag(batch.id), [batch.id, ...batchFields(batch)])
      // Also for one that is there: whoever made it may have died, or lost the reply, before it was on the list.
      if (outbox === undefined || (await link.command('ZSCORE', keys.batches, batch.id)) !== null) return
      const number = Number(await link.command('INCR', `${keys.batches}:last`))
      await link.command('ZADD', keys.batches, 'NX', number, batch.id)
    },
    get: (id) => batchRecord(store, id),
    list: (page) => listBatches(store, page),
    seal: (id) => ended('seal', id),
    discard: (id) => ended('discard', id),
    cancel: (id) => ended('cancel', id),
  }
}

function endHere(store: RedisStore): (what: Ending, id: BatchId) => Promise<boolean> {
  const end = prepared(store, 'batches.seal', 'batchEnd')
  return async (what, id) => Number(await end(batchTag(id), [what, id])) === 1
}

function endApart(store: RedisStore, outbox: Outbox): (what: Ending, id: BatchId) => Promise<boolean> {
  const end = prepared(store, 'batches.seal', 'batchApart')
  const { link, keys } = store
  return async (what, id) => {
    const said = await end(batchTag(id), [what, id])
    if (said === 'missing' || said === 'no') return false
    if (what === 'discard') await link.command('ZREM', keys.batches, id)
    const record = what === 'cancel' ? await batchRecord(store, id) : null
    // Its live jobs are listed by `due` from now on; one that is finished has none.
    if (record !== null && record.finishedAtMs === null) await outbox.listCancelled(id)
    if (said === 'finished') await outbox.fire(id)
    return true
  }
}

/** Newest first; the cursor is the number of the last batch shown. */
async function listBatches(store: RedisStore, { limit, cursor = '' }: PageRequest): Promise<Page<BatchRecord>> {
  if (!/^\d{0,15}$/.test(cursor)) throw badCursor(cursor)
  const bound = Math.min(limit, LIMITS.pageSizeMax)
  const below = cursor === '' ? '+inf' : `(${cursor}`
  const found = (await store.link.command(
    ...(['ZREVRANGEBYSCORE', store.keys.batches, below, '-inf', 'WITHSCORES', 'LIMIT', 0, bound + 1] as const),
  )) as readonly string[]
  const ids = found.filter((_, index) => index % 2 === 0).slice(0, bound) as BatchId[] // names and scores in turn
  const items = (await Promise.all(ids.map((id) => batchRecord(store, id)))).filter((batch) => batch !== null)
  return found.length > bound * 2 ? { items, nextCursor: found[bound * 2 - 1]! } : { items }
}
