// Recurring jobs. A tick is fired by a compare-and-set on the next run, with its jobs in the same transaction.
import type { Recurrence } from '../../core/cron.ts'
import type { JobId } from '../../core/job.ts'
import type { MisfirePolicy, OverlapPolicy } from '../../core/schedule.ts'
import type { FireReply, ScheduleRecord, ScheduleSettings, ScheduleStore } from '../../store/schedule-store.ts'
import { jobsJson } from './insert-rows.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'
import { isAbsent, msOf } from './row.ts'
import type { Row } from './row.ts'

const COLUMNS = `s.name, s.recurrence::text, s.job_name, s.queue_name, s.payload::text, s.priority, s.max_attempts, s.timeout_ms,
  to_json(s.tags)::text, s.meta::text, s.group_key, s.limit_key, s.misfire::text, s.overlap, s.is_enabled,
  millrace.ms_of(s.next_run_at), millrace.ms_of(s.last_run_at), s.last_job_id, millrace.ms_of(s.created_at), s.version`

export function postgresSchedules(store: PostgresStore): ScheduleStore {
  const upsert = prepared(store, 'schedules.upsert', 'select millrace.upsert_schedules($1)')
  const get = prepared(store, 'schedules.get', `select ${COLUMNS} from millrace.schedules s where s.name = $1`)
  const list = prepared(
    store,
    'schedules.list',
    `select ${COLUMNS} from millrace.schedules s order by s.created_at, s.name`,
  )
  const remove = prepared(store, 'schedules.remove', 'delete from millrace.schedules where name = $1 returning 1')
  const setEnabled = prepared(
    store,
    'schedules.setEnabled',
    `update millrace.schedules set is_enabled = $2, next_run_at = millrace.at_ms($3), version = version + 1 where name = $1 returning 1`,
  )
  const due = prepared(
    store,
    'schedules.due',
    `select ${COLUMNS}, millrace.ms_of(c.now_at), null from (select millrace.now_at() as now_at) c
       join millrace.schedules s on s.is_enabled and s.next_run_at <= c.now_at order by s.next_run_at limit $1`,
  )
  const clock = prepared(
    store,
    'schedules.due',
    `select millrace.ms_of(c.now_at), millrace.ms_of((
       select min(s.next_run_at) from millrace.schedules s where s.is_enabled and s.next_run_at > c.now_at))
     from (select millrace.now_at() as now_at) c`,
  )
  const fire = prepared(
    store,
    'schedules.fire',
    `select millrace.fire_schedule($1, millrace.at_ms($2), millrace.at_ms($3), $4, $5, millrace.at_ms($6)), millrace.rung()`,
  )

  return {
    async upsert(schedules) {
      await upsert(JSON.stringify(schedules.map(scheduleRow)))
    },
    async get(name) {
      const [row] = await get(name)
      return row === undefined ? null : parseSchedule(row)
    },
    async list() {
      return (await list()).map(parseSchedule)
    },
    async remove(name) {
      return (await remove(name)).length > 0
    },
    async setEnabled(name, enabled, nextRunMs) {
      return (await setEnabled(name, enabled, nextRunMs)).length > 0
    },
    async due(limit) {
      const [time] = await clock()
      const nowMs = Number(time?.[0])
      const nextMs = msOf(time?.[1])
      const rows = limit === 0 ? [] : await due(limit)
      return { nowMs, schedules: rows.map(parseSchedule), nextDueInMs: nextMs === null ? null : nextMs - nowMs }
    },
    async fire({ schedule, expectedRunMs, nextRunMs, jobs, unlessLive }) {
      const ranMs = jobs.at(-1)?.schedule?.tickMs ?? expectedRunMs
      const [row] = await fire(schedule, expectedRunMs, nextRunMs, jobsJson(jobs), unlessLive, ranMs)
      store.doorbell.ringAll(row?.[1])
      return row?.[0] as FireReply // the words that the function gives
    },
  }
}

function scheduleRow(settings: ScheduleSettings): object {
  return {
    name: settings.name,
    recurrence: JSON.stringify(settings.recurrence),
    job_name: settings.job,
    queue_name: settings.queue,
    payload: settings.payload,
    priority: settings.priority,
    max_attempts: settings.maxAttempts,
    timeout_ms: settings.timeoutMs,
    tags: settings.tags,
    meta: settings.meta,
    group_key: settings.group,
    limit_key: settings.limitKey,
    misfire: JSON.stringify(settings.misfire),
    overlap: settings.overlap,
    is_enabled: settings.enabled,
    first_run_ms: settings.firstRunMs,
  }
}

function parseSchedule(row: Row): ScheduleRecord {
  return {
    name: row[0] ?? '',
    recurrence: JSON.parse(row[1] ?? 'null') as Recurrence, // written from one
    job: row[2] ?? '',
    queue: row[3] ?? '',
    payload: row[4] ?? 'null',
    priority: isAbsent(row[5]) ? null : Number(row[5]),
    maxAttempts: isAbsent(row[6]) ? null : Number(row[6]),
    timeoutMs: Number(row[7]),
    tags: JSON.parse(row[8] ?? '[]') as readonly string[], // text[] as JSON
    meta: row[9] ?? null,
    group: row[10] ?? null,
    limitKey: row[11] ?? null,
    misfire: JSON.parse(row[12] ?? 'null') as MisfirePolicy, // written from one
    overlap: row[13] as OverlapPolicy, // written from one
    enabled: row[14] === 't',
    nextRunMs: msOf(row[15]),
    lastRunMs: msOf(row[16]),
    lastJob: (row[17] ?? null) as JobId | null, // a job id by its column
    createdAtMs: msOf(row[18]) ?? 0,
    version: Number(row[19]),
  }
}
