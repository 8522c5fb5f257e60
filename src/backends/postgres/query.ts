// Reading: pages by id, newest first, from the tables the filter allows, with a time limit of their own. Never on the
// hot path: no index serves a filter alone but those that retention and dead letters need anyway. What people look at comes
// from the replica, where there is one; `get`, by which callers decide, never does.
import type { PoolClient } from 'pg'
import type { AttemptError } from '../../core/attempt-error.ts'
import { JOB_STATUSES } from '../../core/job.ts'
import type { AttemptRow, AttemptStatus, JobId, JobStatus, LeaseNumber, LogLine, WorkerId } from '../../core/job.ts'
import { LIMITS } from '../../core/limits.ts'
import type { JobFilter, JobQuery, QueueCounts } from '../../store/job-query.ts'
import type { Connections } from './connections.ts'
import type { Value } from './rows-query.ts'
import { badCursor } from './cursor.ts'
import { parseRecord, RECORD_COLUMNS } from './records.ts'
import { createArchived } from './retention.ts'
import { sqlText } from './sql-text.ts'
import { prepared, reporting } from './store.ts'
import type { PostgresStore } from './store.ts'
import { uuidArray } from './wire.ts'
import { AUDIT, wordOf } from './words.ts'
import { isAbsent, msOf } from './row.ts'
import type { Row } from './row.ts'

const LIST_TIMEOUT_MS = 10_000

export function postgresQuery(store: PostgresStore): JobQuery {
  const get = prepared(store, 'query.get', `select ${RECORD_COLUMNS} from millrace.records_of($1) r`)
  const counts = reporting(store, 'query.counts', countsSql('all'))
  const countsOfOne = reporting(store, 'query.counts', countsSql('one'))
  const lanes = reporting(store, 'query.lanes', LANES_SQL)
  const attempts = reporting(store, 'query.attempts', ATTEMPTS_SQL)
  const logs = reporting(
    store,
    'query.logs',
    `select millrace.ms_of(l.at), l.attempt, l.level, l.message from millrace.job_lines l where l.job_id = $1 order by l.lease, l.line_no`,
  )

  return {
    async get(ids) {
      if (ids.length === 0) return []
      const found = new Map((await get(uuidArray(ids))).map((row) => [row[0], parseRecord(row)] as const))
      return ids.map((id) => found.get(id) ?? null)
    },
    async list(filter, page) {
      const limit = Math.min(page.limit, LIMITS.pageSizeMax)
      if (page.cursor !== undefined && !/^[0-9a-f-]{36}$/i.test(page.cursor)) throw badCursor(page.cursor)
      const { text, values } = listQuery(filter, limit + 1, page.cursor)
      const read = (connections: Connections) =>
        connections.with('query.list', (client) => readOnly(client, sqlText(text, store.schema), values))
      const rows = await (page.isFresh ? read(store.connections) : store.reads.from(read))
      const items = rows.map(parseRecord)
      if (items.length <= limit) return { items }
      return { items: items.slice(0, limit), nextCursor: items[limit - 1]!.id }
    },
    async counts(queue) {
      return (await (queue === undefined ? counts() : countsOfOne(queue))).map(parseCounts)
    },
    async lanes(queue) {
      const [row] = await lanes(queue)
      return [Number(row?.[0] ?? 0), Number(row?.[1] ?? 0), Number(row?.[2] ?? 0)]
    },
    async attempts(id) {
      return (await attempts(id)).map((row) => parseAttempt(row, id))
    },
    async logs(id) {
      return (await logs(id)).map(parseLine)
    },
    archived: createArchived(store),
  }
}

/** Planner settings for a few rows by id out of many; they end with the transaction, so a pooler is no matter. */
async function readOnly(client: PoolClient, text: string, values: readonly Value[]): Promise<readonly Row[]> {
  await client.query(
    // With the usual limits the planner would join the whole view before it looks at the candidates (8 s instead of 4 ms).
    `begin read only; set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off;
     set local join_collapse_limit = 16; set local from_collapse_limit = 16;
     set local statement_timeout = ${LIST_TIMEOUT_MS}`,
  )
  try {
    const query = {
      text,
      values: [...values],
      rowMode: 'array' as const,
      types: { getTypeParser: () => (value: unknown) => value },
    }
    const { rows } = await client.query<(string | null)[]>(query)
    await client.query('commit')
    return rows
  } catch (error) {
    await client.query('rollback').catch(() => undefined)
    throw error
  }
}

/** Where jobs of a status are found by id. */
const SOURCES: Readonly<Record<JobStatus, string | null>> = {
  scheduled: 'select id from millrace.scheduled',
  queued: 'select id from millrace.ready',
  blocked: 'select id from millrace.blocked',
  dispatched: 'select id from millrace.running where worker_no = 0',
  running: 'select id from millrace.running where worker_no <> 0',
  completed: 'select job_id as id from millrace.job_attempts where ended = 1',
  failed: 'select job_id as id from millrace.job_attempts where ended > 1 and ended = 2',
  cancelled: 'select job_id as id from millrace.job_attempts where ended > 1 and ended = 3',
}

function listQuery(filter: JobFilter, limit: number, cursor: string | undefined) {
  const values: Value[] = [limit]
  const conditions: string[] = []
  const where = (condition: (parameter: string) => string, value: Value | undefined): void => {
    if (value === undefined) return
    values.push(value)
    conditions.push(condition(`$${values.length}`))
  }
  if (cursor !== undefined) values.push(cursor)
  const before = cursor === undefined ? '' : 'where c.id < $2::uuid'
  where((name) => `r.queue_name = ${name}`, filter.queue)
  where((name) => `r.name = ${name}`, filter.name)
  where((tag) => `${tag} = any(r.tags)`, filter.tag)
  where((batch) => `r.batch_id = ${batch}::uuid`, filter.batch)
  where((worker) => `r.worker_no = (select w.no from millrace.workers w where w.id = ${worker})`, filter.worker)
  where((schedule) => `r.schedule_name = ${schedule}`, filter.schedule)
  where((group) => `r.group_key = ${group}`, filter.group)
  where((ms) => `r.enqueued_at >= millrace.at_ms(${ms})`, filter.enqueuedFromMs)
  where((ms) => `r.enqueued_at < millrace.at_ms(${ms})`, filter.enqueuedUntilMs)
  where((ms) => `r.finished_at >= millrace.at_ms(${ms})`, filter.finishedFromMs)
  where((ms) => `r.finished_at < millrace.at_ms(${ms})`, filter.finishedUntilMs)
  where(
    (text) =>
      `position(lower(${text}) in lower(concat_ws(chr(10), r.last_error->>'name', r.last_error->>'message', r.last_error->>'code'))) > 0`,
    filter.errorText,
  )
  if (filter.payload !== undefined) {
    values.push(JSON.stringify(filter.payload.path), JSON.stringify(filter.payload.equals))
    conditions.push(`millrace.payload_has(r.payload, $${values.length - 1}::json, $${values.length})`)
  }
  const candidates = filter.status === undefined ? 'select id from millrace.job_bodies' : sourcesOf(filter.status)
  return {
    values,
    // `offset 0` keeps the planner, whose statistics of these tables are always old, from turning this around: walk the
    // candidates from the newest, look each one up, stop when the page is full.
    text: `select ${RECORD_COLUMNS}
      from (select c.id from (${candidates}) c ${before} order by c.id desc offset 0) c
      cross join lateral (select * from millrace.job_records r where r.id = c.id offset 0) r
      where r.status is not null ${conditions.map((condition) => `and ${condition}`).join(' ')} order by c.id desc limit $1`,
  }
}

function sourcesOf(statuses: readonly JobStatus[]): string {
  const sources = [...new Set(statuses)].map((status) => SOURCES[status]).filter((source) => source !== null)
  return sources.length === 0 ? 'select id from millrace.ready where false' : sources.join(' union all ')
}

/** Of all queues in one pass, or of one of them alone: a scaler that asks for a small queue does not pay for a deep one. */
function countsSql(which: 'all' | 'one'): string {
  const own = which === 'all' ? 'true' : 'r.queue_id = (select q.id from millrace.job_queues q where q.name = $1)'
  return `
  with live as (
    select r.queue_id, 'queued' as status, count(*) as n, min(r.ready_at) as oldest from millrace.ready r where ${own} group by 1
    union all select r.queue_id, 'scheduled', count(*), null from millrace.scheduled r where ${own} group by 1
    union all select r.queue_id, 'blocked', count(*), null from millrace.blocked r where ${own} group by 1
    union all select r.queue_id, 'running', count(*), null from millrace.running r where r.worker_no <> 0 and ${own} group by 1
    union all select r.queue_id, 'dispatched', count(*), min(r.ready_at) from millrace.running r where r.worker_no = 0 and ${own} group by 1
    union all select r.queue_id, case r.ended when 1 then 'completed' when 2 then 'failed' else 'cancelled' end, sum(r.n), null
      from millrace.final_counts r where ${own} group by 1, 2
  )
  select q.name, coalesce(json_object_agg(l.status, l.n) filter (where l.status is not null), '{}')::text, millrace.ms_of(min(l.oldest))
  from millrace.job_queues q left join live l on l.queue_id = q.id
  where ${which === 'all' ? 'true' : 'q.name = $1'} group by q.id, q.name order by q.id`
}

const LANES_SQL = `
  select count(*) filter (where w.priority <= q.lane_high_max),
    count(*) filter (where w.priority > q.lane_high_max and w.priority <= q.lane_normal_max),
    count(*) filter (where w.priority > q.lane_normal_max)
  from millrace.job_queues q cross join lateral (
    select r.priority from millrace.ready r where r.queue_id = q.id
    union all select r.priority from millrace.running r where r.queue_id = q.id and r.worker_no = 0) w
  where q.name = $1`

function parseCounts(row: Row): QueueCounts {
  const found = JSON.parse(row[1] ?? '{}') as Partial<Record<JobStatus, number>> // by the words above
  const counts = Object.fromEntries(JOB_STATUSES.map((status) => [status, found[status] ?? 0]))
  return {
    queue: row[0] ?? '',
    counts: counts as Record<JobStatus, number>, // one entry for each status
    oldestReadyAtMs: msOf(row[2]),
  }
}

const ATTEMPTS_SQL = `
  select a.attempt, case when a.started_at is null and a.worker_no is null then 0 else a.no end, a.status,
    (select w.id from millrace.workers w where w.no = a.worker_no), millrace.ms_of(a.started_at), millrace.ms_of(a.finished_at),
    a.error::text, a.note, a.no
  from millrace.job_attempts a where a.job_id = $1
  union all
  select r.attempts + 1, r.lease, 0, (select w.id from millrace.workers w where w.no = r.worker_no), millrace.ms_of(r.started_at), null, null, null, r.lease
  from millrace.running r where r.id = $1 and r.worker_no <> 0
  union all
  select a.attempt, case when a.started_at is null and a.worker_no is null then 0 else a.no end, a.status,
    (select w.id from millrace.workers w where w.no = a.worker_no), millrace.ms_of(a.started_at), millrace.ms_of(a.finished_at),
    a.error::text, a.note, a.no
  from millrace.archived_attempts a where a.job_id = $1
  order by 9`

function parseAttempt(row: Row, jobId: JobId): AttemptRow {
  const startedAtMs = msOf(row[4])
  const finishedAtMs = msOf(row[5])
  const status: AttemptStatus = row[2] === '0' ? 'attempting' : wordOf(AUDIT, Number(row[2]))
  return {
    jobId,
    attempt: Number(row[0]),
    lease: Number(row[1]) as LeaseNumber, // 0 names no run
    status,
    worker: (row[3] ?? null) as WorkerId | null, // a worker id by its column
    startedAtMs,
    finishedAtMs,
    durationMs: startedAtMs === null || finishedAtMs === null ? null : finishedAtMs - startedAtMs,
    error: isAbsent(row[6]) ? null : (JSON.parse(row[6]) as AttemptError), // written from one
    note: row[7] ?? null,
  }
}

function parseLine(row: Row): LogLine {
  return {
    atMs: Number(row[0]),
    attempt: Number(row[1]),
    level: row[2] as LogLine['level'], // written from one
    message: row[3] ?? '',
  }
}
