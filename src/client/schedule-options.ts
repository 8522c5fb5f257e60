// What a schedule may say, checked and turned into the settings that the store keeps. A schedule is upserted
// at every deployment, so writing the same again must change nothing.
import { cronRecurrence, everyRecurrence } from '../core/cron.ts'
import type { Recurrence } from '../core/cron.ts'
import type { Duration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from '../core/names.ts'
import type { Priority } from '../core/priority.ts'
import { firstRunMs } from '../core/schedule.ts'
import type { MisfirePolicy, OverlapPolicy } from '../core/schedule.ts'
import type { ScheduleRecord, ScheduleSettings } from '../store/schedule-store.ts'
import type { Enqueuer, JobName } from './enqueue.ts'
import type { Prepared } from './prepare.ts'

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
  /** Default true for a new one; an existing one stays as it is. */
  readonly enabled?: boolean
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

export interface SchedulePlan {
  /** By the clock of the store: the clock of a producer may be wrong. */
  readonly settingsAt: (nowMs: number) => ScheduleSettings
  /** The job of one tick. */
  readonly prepared: Prepared
  readonly connection: string
  /** Said by the caller; otherwise a paused schedule stays paused. */
  readonly enabled: boolean | undefined
}

/** Checks everything before the store is asked. */
export async function planSchedule(name: string, options: ScheduleOptions, enqueuer: Enqueuer): Promise<SchedulePlan> {
  checkKnownOptions(options, OPTIONS, `schedule ${name}`)
  const terms = checkTerms(options)
  recurrenceOf(options, 0)
  const { priority, attempts, timeout } = options
  const prepared = await enqueuer.prepare(options.job, options.input, {
    ...(priority !== undefined && { priority }),
    ...(attempts !== undefined && { attempts }),
    ...(timeout !== undefined && { timeout }),
    unique: false,
  })
  const { job, connection } = prepared
  const fixed = {
    name,
    job: job.name,
    queue: job.queue,
    payload: job.payload,
    priority: job.priority ?? null,
    maxAttempts: job.maxAttempts ?? null,
    timeoutMs: job.timeoutMs,
    tags: job.tags ?? [],
    meta: job.meta ?? null,
    group: job.group ?? null,
    limitKey: job.limitKey ?? null,
    ...terms,
  }
  const settingsAt = (nowMs: number): ScheduleSettings => {
    const recurrence = recurrenceOf(options, nowMs)
    return { ...fixed, recurrence, firstRunMs: firstRunMs(recurrence, nowMs) }
  }
  return { settingsAt, prepared, connection, enabled: options.enabled }
}

/**
 * The same upsert runs at every deployment. An interval keeps its grid, or it would fire at once each time;
 * what an operator has paused stays paused.
 */
export function keepPlace(
  { settingsAt, enabled }: SchedulePlan,
  before: ScheduleRecord | null,
  nowMs: number,
): ScheduleSettings {
  const settings = settingsAt(nowMs)
  if (before === null) return settings
  const [asked, was] = [settings.recurrence, before.recurrence]
  const same = asked.kind === 'every' && was.kind === 'every' && was.everyMs === asked.everyMs
  const recurrence = same ? was : asked
  const firstMs = same ? firstRunMs(was, nowMs) : settings.firstRunMs
  return { ...settings, recurrence, firstRunMs: firstMs, enabled: enabled ?? before.enabled }
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
