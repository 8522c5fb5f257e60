// Batches; their counters move in the transaction that ends their jobs.
import type { BatchId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { BatchCallbacks, BatchRecord, BatchStore } from '../../store/batch-store.ts'
import { badCursor } from './cursor.ts'
import { jobRow } from './insert-rows.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { msOf } from './row.ts'
import type { Row } from './row.ts'

const COLUMNS = `b.id, b.name, b.meta::text, (b.callbacks->'asked')::text, b.total, b.pending, b.completed, b.failed, b.cancelled,
  b.is_sealed, b.is_cancelled, millrace.ms_of(b.created_at), millrace.ms_of(b.finished_at)`

export function postgresBatches(store: PostgresStore): BatchStore {
  const create = prepared(
    store,
    'batches.create',
    `insert into millrace.batches (id, name, meta, callbacks, created_at) values ($1, $2, $3, $4, millrace.now_at()) on conflict (id) do nothing`,
  )
  const get = prepared(store, 'batches.get', `select ${COLUMNS} from millrace.batches b where b.id = $1`)
  const list = prepared(
    store,
    'batches.list',
    `select ${COLUMNS} from millrace.batches b where $2::uuid is null or b.id < $2 order by b.id desc limit $1`,
  )
  const seal = prepared(store, 'batches.seal', 'select millrace.seal_batch($1, false), millrace.rung()')
  const cancel = prepared(store, 'batches.cancel', 'select millrace.seal_batch($1, true), millrace.rung()')
  const discard = prepared(
    store,
    'batches.discard',
    'delete from millrace.batches where id = $1 and total = 0 and kept = 0 returning 1',
  )

  async function sealed(call: typeof seal, id: BatchId): Promise<boolean> {
    const [row] = await call(id)
    store.doorbell.ringAll(row?.[1])
    return row?.[0] === 't'
  }

  return {
    async create({ id, name, meta, callbacks }) {
      await create(id, name, meta, callbacksJson(callbacks))
    },
    async get(id) {
      const [row] = await get(id)
      return row === undefined ? null : parseBatch(row)
    },
    async list(page) {
      const limit = Math.min(page.limit, LIMITS.pageSizeMax)
      const cursor = page.cursor === undefined ? null : checkCursor(page.cursor)
      const items = (await list(limit + 1, cursor)).map(parseBatch)
      if (items.length <= limit) return { items }
      return { items: items.slice(0, limit), nextCursor: items[limit - 1]!.id }
    },
    seal: (id) => sealed(seal, id),
    cancel: (id) => sealed(cancel, id),
    async discard(id) {
      return (await discard(id)).length > 0
    },
  }
}

function checkCursor(cursor: string): string {
  if (!/^[0-9a-f-]{36}$/i.test(cursor)) throw badCursor(cursor)
  return cursor
}

/** As rows for SQL to insert, and as they were asked for. */
function callbacksJson(callbacks: BatchCallbacks): string {
  const rows = Object.entries(callbacks).map(([name, job]) => [name, job === null ? null : jobRow(job)] as const)
  return JSON.stringify({ ...Object.fromEntries(rows), asked: callbacks })
}

function parseBatch(row: Row): BatchRecord {
  return {
    id: row[0] as BatchId, // a batch id by its column
    name: row[1] ?? '',
    meta: row[2] ?? null,
    callbacks: JSON.parse(row[3] ?? '{}') as BatchCallbacks, // written from them
    counts: {
      total: Number(row[4]),
      pending: Number(row[5]),
      completed: Number(row[6]),
      failed: Number(row[7]),
      cancelled: Number(row[8]),
    },
    sealed: row[9] === 't',
    cancelled: row[10] === 't',
    createdAtMs: msOf(row[11]) ?? 0,
    finishedAtMs: msOf(row[12]),
  }
}
