// Batches; their counters and callbacks are moved by the scripts that move jobs (lua/_batches.lua).
import { LIMITS } from '../../core/limits.ts'
import { MillraceError } from '../../core/errors.ts'
import type { BatchId } from '../../core/job.ts'
import type { BatchCallbacks, BatchRecord, BatchStore, NewBatch } from '../../store/batch-store.ts'
import { extrasOf } from './insert-args.ts'
import { contentOf, fieldsOf } from './record.ts'
import type { Fields } from './record.ts'
import { prepared } from './store.ts'
import type { RedisStore } from './store.ts'

export function redisBatches(store: RedisStore): BatchStore {
  const create = prepared(store, 'batches.create', 'batchCreate')
  const end = prepared(store, 'batches.seal', 'batchEnd')
  const list = prepared(store, 'batches.list', 'batchList')
  const { link, keys } = store
  const ended = async (what: string, id: BatchId): Promise<boolean> => Number(await end('', [what, id])) === 1
  return {
    async create(batch) {
      await create('', [batch.id, ...batchFields(batch)])
    },
    async get(id) {
      const flat = (await link.command('HGETALL', keys.batch(id))) as readonly string[]
      return flat.length === 0 ? null : parseBatch(id, fieldsOf(flat))
    },
    async list({ limit, cursor = '' }) {
      if (!/^\d{0,15}$/.test(cursor)) throw badCursor(cursor)
      const bound = Math.min(limit, LIMITS.pageSizeMax)
      const reply = (await list('', [cursor, bound])) as readonly (string | readonly string[])[]
      const items: BatchRecord[] = []
      for (let at = 0; at < reply.length && items.length < bound; at += 3) {
        items.push(parseBatch(String(reply[at]), fieldsOf(reply[at + 2] as readonly string[]))) // as lua/batch-list.lua answers
      }
      if (reply.length <= bound * 3 || items.length === 0) return { items }
      return { items, nextCursor: String(reply[(items.length - 1) * 3 + 1]) }
    },
    seal: (id) => ended('seal', id),
    discard: (id) => ended('discard', id),
    cancel: (id) => ended('cancel', id),
  }
}

/** Callbacks twice: as they were given, and as the script inserts them. */
function batchFields({ name, meta, callbacks }: NewBatch): readonly string[] {
  const fields = ['name', name, 'callbacks', JSON.stringify(callbacks)]
  if (meta !== null) fields.push('meta', meta)
  for (const [which, job] of Object.entries(callbacks)) {
    if (job === null) continue
    fields.push(`${which}:id`, job.id, `${which}:content`, contentOf(job), `${which}:extras`, extrasOf(job))
  }
  return fields
}

function parseBatch(id: string, fields: Fields): BatchRecord {
  const count = (name: string): number => Number(fields.get(name) ?? 0)
  const finished = fields.get('finished')
  return {
    id: id as BatchId, // as created
    name: fields.get('name') ?? '',
    meta: fields.get('meta') ?? null,
    callbacks: JSON.parse(fields.get('callbacks') ?? '{}') as BatchCallbacks, // written by batchFields
    counts: {
      total: count('total'),
      pending: count('pending'),
      completed: count('completed'),
      failed: count('failed'),
      cancelled: count('cancelled'),
    },
    sealed: fields.has('sealed'),
    cancelled: fields.has('asked'),
    createdAtMs: Number(fields.get('created')),
    finishedAtMs: finished === undefined ? null : Number(finished),
  }
}

function badCursor(cursor: string): MillraceError {
  const message = `${JSON.stringify(cursor.slice(0, 40))} is not a cursor of an earlier page: pass \`nextCursor\` as it was given`
  return new MillraceError('INVALID_OPTION', message, { details: { option: 'cursor' } })
}
