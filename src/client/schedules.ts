// Recurring jobs from code: upsert, pause, resume, run now, remove, look ahead. The scheduler in
// src/maintenance fires them; this side only writes what is to be fired.
import { nextTickMs, ticksBetween } from '../core/cron.ts'
import type { Recurrence } from '../core/cron.ts'
import { MillraceError } from '../core/errors.ts'
import type { JobId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { checkInteger, checkName } from '../core/names.ts'
import { decodePayload } from '../core/payload.ts'
import type { MisfirePolicy, OverlapPolicy } from '../core/schedule.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { ScheduleRecord } from '../store/schedule-store.ts'
import type { Connections } from './connections.ts'
import type { Enqueuer } from './enqueue.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import type { JobHandle } from './handle.ts'
import { dateOrNull } from './job-view.ts'
import { keepPlace, planSchedule } from './schedule-options.ts'
import type { ScheduleOptions } from './schedule-options.ts'
import { retryStore } from './store-retry.ts'

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

const PREVIEW_DEFAULT = 5
const PREVIEW_MAX = 100

export function createSchedules(connections: Connections, runtime: Runtime, enqueuer: Enqueuer): Schedules {
  const schedulesOn = (connection: string) => connections.backend(connection).schedules

  /** Ticks live on the clock of the store; the one of this process may be wrong. */
  const storeNowMs = async (connection: string): Promise<number> =>
    (await retryStore(runtime, () => schedulesOn(connection).due(0))).nowMs

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
      const planned = await planSchedule(name, options, enqueuer)
      const schedules = schedulesOn(planned.connection)
      await enqueuer.makeQueue(planned.prepared)
      const before = await retryStore(runtime, () => schedules.get(name))
      const settings = keepPlace(planned, before, await storeNowMs(planned.connection))
      await retryStore(runtime, () => schedules.upsert([settings]))
      return viewSchedule((await known(name)).record, planned.connection)
    },
    async pause(name) {
      const { connection, record } = await known(name)
      await retryStore(runtime, () => schedulesOn(connection).setEnabled(name, false, record.nextRunMs))
    },
    async resume(name) {
      const { connection, record } = await known(name)
      if (record.enabled) return
      const nextRunMs = nextTickMs(record.recurrence, await storeNowMs(connection))
      await retryStore(runtime, () => schedulesOn(connection).setEnabled(name, true, nextRunMs))
    },
    async remove(name) {
      const found = await find(name)
      return found !== null && (await retryStore(runtime, () => schedulesOn(found.connection).remove(name)))
    },
    async runNow(name) {
      const { record, connection } = await known(name)
      const schedule = { name, tickMs: Math.floor(await storeNowMs(connection)) }
      return enqueuer.one(record.job, decodePayload(record.payload), extraOptions(record), { schedule })
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
      const { record, connection } = await known(name)
      const afterMs = Math.max(await storeNowMs(connection), (record.nextRunMs ?? 0) - 1)
      return ticksBetween(record.recurrence, afterMs, Infinity, count).map((tickMs) => new Date(tickMs))
    },
  }
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

function extraOptions({ priority, maxAttempts, timeoutMs }: ScheduleRecord): EnqueueOptions {
  return {
    ...(priority !== null && { priority }),
    ...(maxAttempts !== null && { attempts: maxAttempts }),
    timeout: timeoutMs,
    unique: false,
  }
}
