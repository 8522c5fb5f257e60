// What a configuration says of the built-in tasks: which are on, when each runs, and with what options. Checked once, when a
// Millrace is made, so that a backup does not find out at night that its directory is misspelt.
import { cronRecurrence, everyRecurrence } from '../core/cron.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import type { BackupTaskOptions } from './backup.ts'
import { TASKS } from './catalogue.ts'
import type { Task } from './catalogue.ts'
import type { LogsTaskOptions } from './logs.ts'
import type { NotificationsTaskOptions } from './notifications.ts'
import type { RetentionTaskOptions } from './retention.ts'
import type { StaleTaskOptions } from './stale.ts'
import { TASK_NAMES } from './task.ts'
import type { TaskName } from './task.ts'
import type { TrackingTaskOptions } from './tracking.ts'

/** When a task runs; `every` or `cron`. */
export interface TaskTiming {
  readonly every?: Duration
  readonly cron?: string
  /** Of `cron`. Default UTC. */
  readonly timeZone?: string
}

export interface TaskOptionsByName {
  readonly retention: RetentionTaskOptions
  readonly backup: BackupTaskOptions
  readonly logs: LogsTaskOptions
  readonly stale: StaleTaskOptions
  readonly tracking: TrackingTaskOptions
  readonly notifications: NotificationsTaskOptions
}

export interface TaskPlaces {
  /** The stores it works on, by their names. Default: all that have work for it. */
  readonly connections?: readonly string[]
}

/** `false`: off. Absent: with its defaults, where a store has work for it; a backup needs its `dir`. */
export type TasksOptions = {
  readonly [Name in TaskName]?: false | (Omit<TaskOptionsByName[Name], 'dryRun'> & TaskTiming & TaskPlaces)
}

export interface PlannedTask<Name extends TaskName = TaskName> {
  readonly name: Name
  readonly options: TaskOptionsByName[Name]
  /** Null: it runs when somebody asks for it. */
  readonly timing: TaskTiming | null
  /** Null: all that have work for it. */
  readonly connections: readonly string[] | null
  /** A run that takes longer hangs: it is given up. */
  readonly timeoutMs: number
}

export type TaskPlan = { readonly [Name in TaskName]: PlannedTask<Name> }

/** At times when little else happens, one after the other. */
const TIMES: Readonly<Record<TaskName, TaskTiming>> = {
  backup: { cron: '10 2 * * *' },
  retention: { cron: '10 3 * * *' },
  logs: { cron: '40 3 * * *' },
  stale: { every: '1h' },
  tracking: { every: '6h' },
  notifications: { every: DEFAULTS.notificationRetryMs },
}
const TIMING = ['every', 'cron', 'timeZone'] as const
const BOUNDS_MS: Readonly<Partial<Record<TaskName, number>>> = { backup: DEFAULTS.backupMaxMs }
/** For what comes after the last pass. */
const SPARE_MS = 5 * 60_000

export function planTasks(options: TasksOptions = {}): TaskPlan {
  checkKnownOptions(options, TASK_NAMES, 'tasks')
  const plans = TASK_NAMES.map((name) => [name, planTask(name, options[name])])
  return Object.fromEntries(plans) as unknown as TaskPlan // one entry for each name
}

function planTask(name: TaskName, asked: TasksOptions[TaskName]): PlannedTask {
  if (asked !== undefined && asked !== false && (typeof asked !== 'object' || asked === null)) {
    throw invalidOption(`tasks.${name}`, asked, 'false, or an object of options')
  }
  const { every, cron, timeZone, connections, ...options } = asked || {}
  if ('dryRun' in options)
    throw invalidOption(`tasks.${name}.dryRun`, options.dryRun, 'left out: it is asked for run by run')
  const timing = checkTiming(name, {
    ...(every !== undefined && { every }),
    ...(cron !== undefined && { cron }),
    ...(timeZone !== undefined && { timeZone }),
  })
  // Without a directory there is nothing that a backup could do by itself.
  const isOn = asked !== false && (name !== 'backup' || 'dir' in options)
  if (isOn) checkOptions(name, options)
  const boundMs = BOUNDS_MS[name] ?? DEFAULTS.taskMaxMs
  const { maxTime = boundMs } = options
  const maxMs = parseDuration(maxTime, `tasks.${name}.maxTime`, { minMs: 1, maxMs: LIMITS.timeoutMaxMs - SPARE_MS })
  const places = connections === undefined ? null : checkPlaces(name, connections)
  return { name, options, timing: isOn ? timing : null, connections: places, timeoutMs: maxMs + SPARE_MS }
}

/** Whether there are such stores is known when they are open. */
function checkPlaces(name: TaskName, connections: unknown): readonly string[] {
  if (!Array.isArray(connections) || connections.length === 0) {
    throw invalidOption(`tasks.${name}.connections`, connections, 'an array of names of connections')
  }
  return [...new Set(connections.map((connection) => checkName(connection, 'connection')))]
}

function checkOptions<Name extends TaskName>(name: Name, options: TaskOptionsByName[Name]): void {
  const task: Task<TaskOptionsByName[Name]> = TASKS[name]
  task.check(options)
}

function checkTiming(name: TaskName, timing: TaskTiming): TaskTiming {
  const { every, cron, timeZone } = timing
  if (every === undefined && cron === undefined && timeZone === undefined) return TIMES[name]
  if ((every === undefined) === (cron === undefined)) {
    throw new MillraceError('INVALID_OPTION', `tasks.${name} needs one of every and cron, not both`)
  }
  if (every !== undefined && timeZone !== undefined) {
    throw invalidOption(`tasks.${name}.timeZone`, timeZone, 'left out with every: intervals know no time zone')
  }
  if (every !== undefined) everyRecurrence(every, 0)
  if (cron !== undefined) cronRecurrence(cron, timeZone)
  return Object.fromEntries(TIMING.flatMap((key) => (timing[key] === undefined ? [] : [[key, timing[key]]])))
}
