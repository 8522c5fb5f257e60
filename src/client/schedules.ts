// Recurring jobs from code: upsert, pause, resume, run now, remove, look ahead. The scheduler in
// src/maintenance fires them; this side only writes what is to be fired.
import { cronRecurrence, everyRecurrence, nextTickMs, ticksBetween } from '../core/cron.ts'
import type { Recurrence } from '../core/cron.ts'
import type { Duration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { decodePayload } from '../core/payload.ts'
import type { Priority } from '../core/priority.ts'
import { firstRunMs } from '../core/schedule.ts'
import type { MisfirePolicy, OverlapPolicy } from '../core/schedule.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { ScheduleRecord, ScheduleSettings } from '../store/schedule-store.ts'
import type { Connections } from './connections.ts'
import type { Enqueuer, JobName } from './enqueue.ts'
import type { JobHandle } from './handle.ts'
import { dateOrNull } from './job-view.ts'
import { retryStore } from './store-retry.ts'

/** The types of job and input are given by `client.ts`. */
export interface ScheduleOptions {
  readonly job: JobName
  readonly input?: unknown
  /** 5 fields, or 6 with seconds first. Exactly one of `cron` and `every`. */
  readonly cron?: string
  /** At least a second. The first run is at once if it never ran. */
  readonly every?: Duration
  /** Of `cron`. Default UTC. */
  readonly timeZone?: string
  readonly priority?: Priority
  readonly attempts?: number
  readonly timeout?: Duration
  /** Ticks that nobody fired in time. Default `fire-once`. */
  readonly misfire?: MisfirePolicy
  /** A tick while the job of an earlier one is not finished. Default `allow`. */
  readonly overlap?: OverlapPolicy
  /** Default true. */
  readonly enabled?: boolean
}

export interface Schedule {
  readonly name: string
  readonly connection: string
  readonly recurrence: Recurrence
  readonly job: string
  readonly queue: string
  readonly payload: Json
  readonly priority: number | null
  readonly maxAttempts: number | null
  readonly timeoutMs: number
  readonly misfire: MisfirePolicy
  readonly overlap: OverlapPolicy
  readonly enabled: boolean
  readonly nextRunAt: Date | null
  readonly lastRunAt: Date | null
  readonly lastJob: JobId | null
  readonly createdAt: Date
}

export interface Schedules {
  upsert(name: string, options: ScheduleOptions): Promise<Schedule>
  pause(name: string): Promise<void>
  /** Goes on with the next tick; those missed while it was paused are not made up for. */
  resume(name: string): Promise<void>
  remove(name: string): Promise<boolean>
  /** An extra job now; the rhythm is not touched. */
  runNow(name: string): Promise<JobHandle>
  get(name: string): Promise<Schedule | null>
  list(): Promise<readonly Schedule[]>
  /** The next ticks, as if it were enabled. */
  preview(name: string, count?: number): Promise<readonly Date[]>
}

const OPTIONS = [
  'job',
  'input',
  'cron',
  'every',
  'timeZone',
  'priority',
  'attempts',
  'timeout',
  'misfire',
  'overlap',
  'enabled',
] as const satisfies readonly (keyof ScheduleOptions)[]

const PREVIEW_DEFAULT = 5
const PREVIEW_MAX = 100

export function createSchedules(connections: Connections, runtime: Runtime, enqueuer: Enqueuer): Schedules {
  const schedulesOn = (connection: string) => connections.backend(connection).schedules

  async function find(name: string): Promise<{ readonly connection: string; readonly record: ScheduleRecord } | null> {
    checkName(name, 'schedule')
    for (const connection of connections.names) {
      const record = await retryStore(runtime, () => schedulesOn(connection).get(name))
      if (record !== null) return { connection, record }
    }
    return null
  }

  async function known(name: string) {
    const found = await find(name)
    if (found !== null) return found
    const message = `there is no schedule ${JSON.stringify(name)}: create it with upsert(), or correct the name`
    throw new MillraceError('SCHEDULE_NOT_FOUND', message, { details: { schedule: name } })
  }

  return {
    async upsert(name, options) {
      checkName(name, 'schedule')
      checkKnownOptions(options, OPTIONS, `schedule ${name}`)
      const terms = checkTerms(options)
      const nowMs = runtime.clock.nowMs()
      // Before the store is asked: a bad rhythm is refused even when the store is away.
      const asked = recurrenceOf(options, nowMs)
      const { priority, attempts, timeout } = options
      const { job, connection } = await enqueuer.prepare(options.job, options.input, {
        ...(priority !== undefined && { priority }),
        ...(attempts !== undefined && { attempts }),
        ...(timeout !== undefined && { timeout }),
        unique: false,
      })
      const recurrence = keepAnchor(asked, await retryStore(runtime, () => schedulesOn(connection).get(name)))
      const settings: ScheduleSettings = {
        name,
        recurrence,
        job: job.name,
        queue: job.queue,
        payload: job.payload,
        priority: job.priority ?? null,
        maxAttempts: job.maxAttempts ?? null,
        timeoutMs: job.timeoutMs,
        ...terms,
        firstRunMs: firstRunMs(recurrence, nowMs),
      }
      await retryStore(runtime, () => schedulesOn(connection).upsert([settings]))
      return viewSchedule((await known(name)).record, connection)
    },
    async pause(name) {
      const { connection, record } = await known(name)
      await retryStore(runtime, () => schedulesOn(connection).setEnabled(name, false, record.nextRunMs))
    },
    async resume(name) {
      const { connection, record } = await known(name)
      if (record.enabled) return
      const nextRunMs = nextTickMs(record.recurrence, runtime.clock.nowMs())
      await retryStore(runtime, () => schedulesOn(connection).setEnabled(name, true, nextRunMs))
    },
    async remove(name) {
      const found = await find(name)
      return found !== null && (await retryStore(runtime, () => schedulesOn(found.connection).remove(name)))
    },
    async runNow(name) {
      const { record } = await known(name)
      const { priority, maxAttempts } = record
      const options = {
        ...(priority !== null && { priority }),
        ...(maxAttempts !== null && { attempts: maxAttempts }),
        timeout: record.timeoutMs,
        unique: false,
      } as const
      const schedule = { name, tickMs: Math.floor(runtime.clock.nowMs()) }
      return enqueuer.one(record.job, decodePayload(record.payload), options, { schedule })
    },
    async get(name) {
      const found = await find(name)
      return found && viewSchedule(found.record, found.connection)
    },
    async list() {
      const read = async (connection: string) =>
        (await schedulesOn(connection).list()).map((record) => viewSchedule(record, connection))
      return (await Promise.all(connections.names.map(read))).flat()
    },
    async preview(name, count = PREVIEW_DEFAULT) {
      checkInteger(count, 'count', 1, PREVIEW_MAX)
      const { record } = await known(name)
      const afterMs = Math.max(runtime.clock.nowMs(), (record.nextRunMs ?? 0) - 1)
      return ticksBetween(record.recurrence, afterMs, Number.MAX_SAFE_INTEGER, count).map((tickMs) => new Date(tickMs))
    },
  }
}

function recurrenceOf({ cron, every, timeZone }: ScheduleOptions, nowMs: number): Recurrence {
  if ((cron === undefined) === (every === undefined)) {
    throw new MillraceError('INVALID_OPTION', 'a schedule needs exactly one of cron and every', {
      details: { option: 'cron' },
    })
  }
  if (cron !== undefined) return cronRecurrence(cron, timeZone)
  if (timeZone !== undefined)
    throw invalidOption('timeZone', timeZone, 'left out with every: intervals know no time zone')
  return everyRecurrence(every ?? 0, Math.floor(nowMs))
}

/** The same interval as before keeps its grid, or every deployment would fire it at once. */
function keepAnchor(asked: Recurrence, before: ScheduleRecord | null): Recurrence {
  const was = before?.recurrence
  return asked.kind === 'every' && was?.kind === 'every' && was.everyMs === asked.everyMs ? was : asked
}

function checkTerms({ misfire = 'fire-once', overlap = 'allow', enabled = true }: ScheduleOptions) {
  if (typeof misfire === 'object' && misfire !== null) {
    checkKnownOptions(misfire, ['catchUp'], 'misfire')
    checkInteger(misfire.catchUp, 'misfire.catchUp', 1, LIMITS.catchUpMax)
  } else if (misfire !== 'skip' && misfire !== 'fire-once') {
    throw invalidOption('misfire', misfire, "'skip', 'fire-once' or { catchUp: n }")
  }
  if (overlap !== 'allow' && overlap !== 'skip') throw invalidOption('overlap', overlap, "'allow' or 'skip'")
  if (typeof enabled !== 'boolean') throw invalidOption('enabled', enabled, 'true or false')
  return { misfire, overlap, enabled }
}

function viewSchedule(record: ScheduleRecord, connection: string): Schedule {
  const { payload, nextRunMs, lastRunMs, createdAtMs, version: _, ...same } = record
  return {
    ...same,
    connection,
    payload: decodePayload(payload),
    nextRunAt: dateOrNull(nextRunMs),
    lastRunAt: dateOrNull(lastRunMs),
    createdAt: new Date(createdAtMs),
  }
}
