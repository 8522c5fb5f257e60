// The built-in tasks as jobs with schedules: kinds `millrace.task.<name>` in the queue `millrace.tasks`, one schedule for each
// store that a task works on. A payload may ask for a dry run and name the store, no more: what a task does is said by the
// configuration of the process that runs it, not by whoever can enqueue.
import { DEFAULT_CONNECTION } from '../client/connections.ts'
import type { Connections } from '../client/connections.ts'
import { defineJob } from '../client/define-job.ts'
import type { ScheduleOptions } from '../client/schedule-options.ts'
import type { Schedules } from '../client/schedules.ts'
import type { AnyJob, RunContext } from '../core/definition.ts'
import { isMillraceError, MillraceError } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import { DEFAULTS } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { snooze } from '../core/outcome.ts'
import type { OutcomeSignal } from '../core/outcome.ts'
import { exponential } from '../core/retry.ts'
import type { RetentionOptions } from '../maintenance/retention-options.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { TASKS } from './catalogue.ts'
import { planTasks } from './options.ts'
import type { PlannedTask, TaskPlan, TasksOptions, TaskTiming } from './options.ts'
import { inTheWay, runTask } from './run-task.ts'
import { TASK_NAMES } from './task.ts'
import type { TaskName, TaskResult } from './task.ts'

export const TASK_QUEUE = 'millrace.tasks'

export function taskKind(name: TaskName): string {
  return `millrace.task.${name}`
}

/** Of the default store as its kind. */
export function taskSchedule(name: TaskName, connection: string): string {
  return connection === DEFAULT_CONNECTION ? taskKind(name) : `${taskKind(name)}:${connection}`
}

/** What the handlers stand on; known when the stores are open. */
export interface TaskGround {
  readonly runtime: Runtime
  readonly connections: Pick<Connections, 'names' | 'backend'>
  readonly retention?: RetentionOptions
}

export interface BuiltInTasks {
  /** To be registered beside those of the user. */
  readonly jobs: readonly AnyJob[]
  readonly plan: TaskPlan
  /** Before the first of them runs. Throws when a task names a store that there is not. */
  attach(ground: TaskGround): void
  /** Writes the schedules of those that are on and fit their store, and removes those of the others. Repeatable. */
  schedule(schedules: Pick<Schedules, 'list' | 'upsert' | 'remove'>): Promise<void>
}

/** What a job of a task answers when another process was at it. */
export interface BusyTask {
  readonly outcome: 'busy'
  readonly summary: string
}

const RETRY = exponential({ attempts: 3, base: '1m', max: '10m' })

export function builtInTasks(options: TasksOptions = {}): BuiltInTasks {
  const plan = planTasks(options)
  let ground: TaskGround | undefined

  const known = (): TaskGround => {
    if (ground !== undefined) return ground
    throw new MillraceError('STOPPED', 'a built-in task was started before its store was open')
  }

  return {
    plan,
    jobs: TASK_NAMES.map((name) => jobOf(plan[name], known)),
    attach(parts) {
      for (const { connections } of Object.values(plan)) connections?.forEach((name) => parts.connections.backend(name))
      ground = parts
    },
    async schedule(schedules) {
      const { connections } = known()
      const wanted = new Map(Object.values(plan).flatMap((task) => schedulesOf(task, connections)))
      for (const [name, options] of wanted) await schedules.upsert(name, options)
      const kinds = TASK_NAMES.map(taskKind)
      const isOurs = (name: string): boolean => kinds.some((kind) => name === kind || name.startsWith(`${kind}:`))
      for (const { name } of await schedules.list()) if (isOurs(name) && !wanted.has(name)) await schedules.remove(name)
    },
  }
}

/** By name: one for each store that the task works on by itself. */
function schedulesOf(task: PlannedTask, { names, backend }: TaskGround['connections']) {
  const { name, timing } = task
  if (timing === null) return []
  const places = (task.connections ?? names).filter((connection) => TASKS[name].fits(backend(connection)))
  return places.map((connection) => [taskSchedule(name, connection), scheduleOf(name, connection, timing)] as const)
}

function scheduleOf(name: TaskName, connection: string, timing: TaskTiming): ScheduleOptions {
  const input: TaskInput = connection === DEFAULT_CONNECTION ? {} : { connection }
  // Two of one task at once help nobody, and of missed ones the last is enough.
  return { job: taskKind(name), input, overlap: 'skip', misfire: 'fire-once', ...timing }
}

function jobOf({ name, options, timeoutMs }: PlannedTask, ground: () => TaskGround): AnyJob {
  return defineJob({
    name: taskKind(name),
    queue: TASK_QUEUE,
    timeout: timeoutMs,
    retry: RETRY,
    // One of them waits or runs; another call gets the same one. Whoever asks for a look is not given the real thing.
    unique: { by: (input) => uniqueKey(name, input), mode: 'until-finished' },
    tags: ['millrace'],
    async run({
      input,
      signal,
      progress,
      log,
      job,
    }: RunContext<TaskInput | undefined>): Promise<TaskResult | BusyTask | OutcomeSignal> {
      const { dryRun, connection } = checkInput(input)
      const { connections, ...parts } = ground()
      const backend = connections.backend(connection)
      const context = { ...parts, backend, connection, report: (at: unknown): void => progress(at as Json) }
      try {
        const result = await runTask(name, context, { ...options, dryRun }, { jobId: job.id, signal })
        for (const warning of result.warnings) log.warn(warning)
        return result
      } catch (error) {
        if (!isMillraceError(error, 'TASK_BUSY') || signal.aborted) throw error
        const way = inTheWay(error, job.id)
        if (way === 'lost') throw error
        if (way === 'earlier') return snooze(DEFAULTS.taskLeadMs, 'waits until the lead of a run that died has run out')
        // Somebody does what this job is for.
        log.info(error.message)
        return { outcome: 'busy', summary: error.message }
      }
    },
  }) as unknown as AnyJob // the types of its input and result do not matter to a registry
}

export interface TaskInput {
  readonly dryRun?: boolean
  /** The store to work on. Default: the default one. */
  readonly connection?: string
}

function uniqueKey(name: TaskName, input: TaskInput | null | undefined): string {
  const { dryRun, connection } = checkInput(input)
  return [name, ...(connection === DEFAULT_CONNECTION ? [] : [connection]), ...(dryRun ? ['dry-run'] : [])].join(' ')
}

function checkInput(input: TaskInput | null | undefined): Required<TaskInput> {
  const known = input ?? {}
  checkKnownOptions(known, ['dryRun', 'connection'], 'the input of a task')
  const { dryRun = false, connection = DEFAULT_CONNECTION } = known
  if (typeof dryRun !== 'boolean') throw invalidOption('dryRun', dryRun, 'true or false')
  return { dryRun, connection: checkName(connection, 'connection') }
}
