// Worker lives, leader leases, commands. A beat touches one row that no claim waits for.
import type { WorkerId } from '../../core/job.ts'
import { controlTopic } from '../../store/wakeups.ts'
import type { WorkerRecord, WorkerStore } from '../../store/worker-store.ts'
import { BEAT_SQL, beatValues, parseBeat } from './beat.ts'
import type { Cycle } from './cycle.ts'
import { prepared, statement } from './store.ts'
import type { PostgresStore } from './store.ts'
import { bigintArray, textArray } from './wire.ts'
import { msOf } from './row.ts'
import type { Row } from './row.ts'

/** The dead are told of for an hour, the latest of them. */
const DEAD_MAX = 1_000

export function postgresWorkers(store: PostgresStore, cycle: Cycle): WorkerStore {
  const register = prepared(store, 'workers.register', 'select millrace.register_worker($1, $2, $3, $4, $5)')
  const beat = statement(store, 'workers.beat', BEAT_SQL)
  const bury = prepared(store, 'workers.declareDead', 'select w from millrace.bury_workers($1, $2) as w')
  const list = prepared(
    store,
    'workers.list',
    `select w.id, w.host, w.pid, to_json(w.queues)::text, w.concurrency, w.is_alive, w.beat, w.running, w.blocked_ms,
       millrace.ms_of(w.started_at), millrace.ms_of(w.last_beat_at)
     from (
       select * from millrace.workers a where a.is_alive
       union all
       (select * from millrace.workers d where not d.is_alive order by d.no desc limit ${DEAD_MAX})
     ) w where w.is_alive or w.last_beat_at > millrace.now_at() - interval '1 hour' order by w.no`,
  )
  const lead = prepared(store, 'workers.lead', 'select held, holder, term from millrace.lead_role($1, $2, $3)')
  const resign = prepared(
    store,
    'workers.resign',
    `update millrace.leaders set until = '-infinity' where role = $1 and holder = $2`,
  )
  const leader = prepared(
    store,
    'workers.leader',
    'select l.holder, l.term from millrace.leaders l where l.role = $1 and l.until > millrace.now_at()',
  )
  const send = prepared(store, 'workers.send', 'select millrace.send_command($1, $2)')

  return {
    async register({ id, host, pid, queues, concurrency }) {
      await register(id, host, pid, textArray(queues), concurrency)
    },
    async beat(request) {
      const [row] = await store.connections.beat(beat, [...beatValues(request)])
      return parseBeat(row?.[0])
    },
    async retire(id) {
      try {
        await bury(textArray([id]), null)
      } finally {
        await cycle.forget(id)
      }
    },
    async list() {
      return (await list()).map(parseWorker)
    },
    async declareDead(seen) {
      if (seen.length === 0) return []
      const rows = await bury(textArray(seen.map(({ id }) => id)), bigintArray(seen.map((one) => one.beat)))
      return rows.map((row) => row[0] as WorkerId) // a worker id by its column
    },
    async lead({ role, holder, ttlMs }) {
      const [row] = await lead(role, holder, Math.ceil(ttlMs))
      return { held: row?.[0] === 't', holder: row?.[1] ?? '', term: Number(row?.[2]) }
    },
    async resign(role, holder) {
      await resign(role, holder)
    },
    async leader(role) {
      const [row] = await leader(role)
      return row === undefined ? null : { holder: row[0] ?? '', term: Number(row[1]) }
    },
    async send(target, command) {
      const [row] = await send(target, JSON.stringify(command))
      if (row?.[0] !== 't') return false
      store.doorbell.ring(controlTopic(target))
      return true
    },
  }
}

function parseWorker(row: Row): WorkerRecord {
  return {
    id: row[0] as WorkerId, // a worker id by its column
    host: row[1] ?? '',
    pid: Number(row[2]),
    queues: JSON.parse(row[3] ?? '[]') as readonly string[], // text[] as JSON
    concurrency: Number(row[4]),
    state: row[5] === 't' ? 'alive' : 'dead',
    beat: Number(row[6]),
    running: Number(row[7]),
    blockedMs: Number(row[8]),
    startedAtMs: msOf(row[9]) ?? 0,
    lastBeatAtMs: msOf(row[10]) ?? 0,
  }
}
