// A batch as the fields of its hash (lua/_batches.lua).
import type { BatchId } from '../../core/job.ts'
import type { BatchCallbacks, BatchRecord, NewBatch } from '../../store/batch-store.ts'
import { extrasOf } from './insert-args.ts'
import { contentOf, fieldsOf } from './record.ts'
import type { Fields } from './record.ts'
import type { RedisStore } from './store.ts'

export async function batchRecord({ link, keys }: RedisStore, id: BatchId): Promise<BatchRecord | null> {
  const flat = (await link.command('HGETALL', keys.batch(id))) as readonly string[]
  return flat.length === 0 ? null : parseBatch(id, fieldsOf(flat))
}

/** Callbacks twice: as they were given, and as the script inserts them. */
export function batchFields({ name, meta, callbacks }: NewBatch): readonly string[] {
  const fields = ['name', name, 'callbacks', JSON.stringify(callbacks)]
  if (meta !== null) fields.push('meta', meta)
  for (const [which, job] of Object.entries(callbacks)) {
    if (job === null) continue
    fields.push(`${which}:id`, job.id, `${which}:content`, contentOf(job), `${which}:extras`, extrasOf(job))
  }
  return fields
}

function parseBatch(id: BatchId, fields: Fields): BatchRecord {
  const count = (name: string): number => Number(fields.get(name) ?? 0)
  const finished = fields.get('finished')
  return {
    id,
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
