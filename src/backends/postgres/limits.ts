// Tokens at the start of rate-limited jobs, and the use of limits.
import type { LimitStore, RateReply } from '../../store/limit-store.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { textArray } from './wire.ts'
import { isAbsent, msOf } from './row.ts'

export function postgresLimits(store: PostgresStore): LimitStore {
  const take = prepared(store, 'limits.take', 'select millrace.take_starts($1, $2)')
  const inspect = prepared(
    store,
    'limits.inspect',
    `select coalesce((select c.used from millrace.slot_counts c where c.queue_id = q.id and c.key = coalesce($2::text, '')), 0),
       case when $2::text is null then q.concurrency else q.per_key_concurrency end,
       (select count(*) from millrace.blocked b where b.queue_id = q.id and b.gate = case when $2::text is null then 4 else 3 end
          and b.line = coalesce($2::text, '')),
       case when l.rate is null then null else greatest(0, coalesce((
         select r.start_tat_ms - ((l.rate->>'burst')::int - 1) * l.interval_ms - millrace.ms_of(millrace.now_at())
         from millrace.rate_lines r where r.queue_id = q.id and r.key = coalesce($2::text, '')), 0)) end
     from millrace.job_queues q, lateral (
       select case when $2::text is null then q.rate else q.per_key_rate end as rate,
              case when $2::text is null then q.rate_interval_ms else q.per_key_rate_interval_ms end as interval_ms) l
     where q.name = $1`,
  )

  return {
    async take(requests) {
      if (requests.length === 0) return []
      const [row] = await take(textArray(requests.map(({ queue }) => queue)), textArray(requests.map(({ key }) => key)))
      const waits = JSON.parse(row?.[0] ?? '[]') as readonly (number | null)[] // written by our own function
      return waits.map((waitMs): RateReply => (waitMs === null ? { ok: true } : { ok: false, waitMs }))
    },
    async inspect(queue, key) {
      const [row] = await inspect(queue, key ?? null)
      if (row === undefined) return { slotsUsed: 0, slotsLimit: null, waiting: 0, nextTokenInMs: null }
      return {
        slotsUsed: Number(row[0]),
        slotsLimit: isAbsent(row[1]) ? null : Number(row[1]),
        waiting: Number(row[2]),
        nextTokenInMs: msOf(row[3]),
      }
    },
  }
}
