// What `millrace doctor` and `status` ask the ledger of the hybrid beyond its port: reads, bounded, of no concern to its rules.
import type { LeaseRef, WorkerId } from '../../core/job.ts'
import { refsOf } from './ledger-rows.ts'
import { isAbsent } from './row.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { BLOCKS } from './unmarked.ts'

/** A live worker that may hold tokens. */
export interface SessionSeen {
  readonly id: WorkerId
  readonly host: string
  readonly pid: number
  readonly queues: readonly string[]
  readonly epochSeen: number
  /** Queues whose Redis it cannot use. */
  readonly failing: readonly string[]
  readonly silentMs: number
}

/** How long the oldest ready row of each lane has been ready; null: there is none. */
export type OldestReady = readonly [number | null, number | null, number | null]

export interface LedgerEye {
  sessions(): Promise<readonly SessionSeen[]>
  /** Of queues that have an epoch. */
  oldestReady(): Promise<ReadonlyMap<string, OldestReady>>
  /** Ready and unmarked rows of queues that have an epoch, as they are now: never from a replica, which may lag. */
  waiting(): Promise<ReadonlyMap<string, QueueWaiting>>
  /** Unmarked rows of the queue, oldest first, in the first part of the table that has some. */
  unmarked(queue: string, most: number): Promise<readonly LeaseRef[]>
}

export interface QueueWaiting {
  readonly ready: number
  readonly unmarked: number
}

/** Rows at the head of a lane: those that the relay takes next. */
const ROWS_LOOKED_AT = 1_000
/** Of the table of runs, 16 MiB each: as much as a million jobs need. */
const PARTS_MAX = 8

export function ledgerEye(store: PostgresStore): LedgerEye {
  const sessions = prepared(store, 'eye.sessions', SESSIONS_SQL)
  const oldest = prepared(store, 'eye.oldest', OLDEST_SQL)
  const waiting = prepared(store, 'eye.waiting', WAITING_SQL)
  const unmarked = prepared(store, 'eye.unmarked', UNMARKED_SQL)
  return {
    async sessions() {
      // One object per worker, as written below.
      return (await sessions()).map(([row]) => JSON.parse(row ?? '{}') as SessionSeen)
    },
    async oldestReady() {
      const ages = (value: string | null | undefined): number | null => (isAbsent(value) ? null : Number(value))
      const rows = await oldest()
      return new Map(rows.map(([queue, high, normal, low]) => [queue ?? '', [ages(high), ages(normal), ages(low)]]))
    },
    async waiting() {
      const rows = await waiting()
      return new Map(
        rows.map(([queue, ready, mine]) => [queue ?? '', { ready: Number(ready), unmarked: Number(mine) }]),
      )
    },
    async unmarked(queue, most) {
      for (let part = 0; part < PARTS_MAX; part++) {
        const [row] = await unmarked(queue, most, part * BLOCKS, BLOCKS)
        const refs = refsOf(row?.[0], row?.[1])
        if (refs.length > 0 || row?.[2] === '0') return refs
      }
      return []
    },
  }
}

const SESSIONS_SQL = `
  select json_build_object('id', w.id, 'host', w.host, 'pid', w.pid, 'queues', w.queues, 'epochSeen', w.epoch_seen,
    'failing', coalesce(w.failing, '{}'), 'silentMs', greatest(0, round(extract(epoch from millrace.now_at() - w.last_beat_at) * 1000)))::text
  from millrace.workers w where w.is_alive and w.epoch_seen is not null order by w.no limit 1000`

const laneAge = (above: string, upTo: string): string => `
  (select greatest(0, round(extract(epoch from millrace.now_at() - min(f.ready_at)) * 1000))::bigint from (
    select r.ready_at from millrace.ready r where r.queue_id = q.id and r.priority > ${above} and r.priority <= ${upTo}
    order by r.queue_id, r.priority, r.seq limit ${ROWS_LOOKED_AT}) f)`

const OLDEST_SQL = `select q.name, ${laneAge('-1', 'q.lane_high_max')}, ${laneAge('q.lane_high_max', 'q.lane_normal_max')},
  ${laneAge('q.lane_normal_max', '32767')}
  from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id order by q.id`

const WAITING_SQL = `
  with ready as (select r.queue_id, count(*) as n from millrace.ready r group by 1),
    unmarked as (select r.queue_id, count(*) as n from millrace.running r where r.worker_no = 0 group by 1)
  select q.name, coalesce(r.n, 0), coalesce(u.n, 0) from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id
  left join ready r on r.queue_id = q.id left join unmarked u on u.queue_id = q.id order by q.id`

const UNMARKED_SQL = `select ids, leases, next_block from millrace.unmarked_runs($1, 0, 9223372036854775807, $2, $3, $4)`
