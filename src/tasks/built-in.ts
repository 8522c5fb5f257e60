// The built-in tasks as jobs with schedules: kinds `millrace.task.<name>` in the queue `millrace.tasks`. A payload may ask for a dry
// run and no more: what a task does is said by the configuration of the process that runs it, not by whoever can enqueue.
import { defineJob } from '../client/define-job.ts'
import type { ScheduleOptions } from '../client/schedule-options.ts'
import type { Schedules } from '../client/schedules.ts'
import type { AnyJob, RunContext } from '../core/definition.ts'
import { isMillraceError, MillraceError } from '../core/errors.ts'
import type { Json } from '../core/json.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import { exponential } from '../core/retry.ts'
import type { RetentionOptions } from '../maintenance/retention-options.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'
import { TASKS } from './catalogue.ts'
import { planTasks } from './options.ts'
import type { PlannedTask, TaskPlan, TasksOptions } from './options.ts'
import { runTask } from './run-task.ts'
import { TASK_NAMES } from './task.ts'
import type { TaskName, TaskResult } from './task.ts'

export const TASK_QUEUE = 'millrace.tasks'

/** Also the name of its schedule. */
export function taskKind(name: TaskName): string {
  return `millrace.task.${name}`
}

/** What the handlers stand on; known when the stores are open. */
export interface TaskGround {
  readonly runtime: Runtime
  readonly backend: Backend
  readonly retention?: RetentionOptions
}

export interface BuiltInTasks {
  /** To be registered beside those of the user. */
  readonly jobs: readonly AnyJob[]
  readonly plan: TaskPlan
  /** Before the first of them runs. */
  attach(ground: TaskGround): void
  /** Writes the schedules of those that are on and fit the store, and removes those of the others. Repeatable. */
  schedule(schedules: Pick<Schedules, 'upsert' | 'remove'>): Promise<void>
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
    attach: (parts) => void (ground = parts),
    async schedule(schedules) {
      const { backend } = known()
      for (const { name, timing } of Object.values(plan)) {
        if (timing === null || !TASKS[name].fits(backend)) await schedules.remove(taskKind(name))
        else await schedules.upsert(taskKind(name), scheduleOf(name, timing))
      }
    },
  }
}

function scheduleOf(name: TaskName, timing: NonNullable<PlannedTask['timing']>): ScheduleOptions {
  // Two of one task at once help nobody, and of missed ones the last is enough.
  return { job: taskKind(name), input: {}, overlap: 'skip', misfire: 'fire-once', ...timing }
}

function jobOf({ name, options, timeoutMs }: PlannedTask, ground: () => TaskGround): AnyJob {
  return defineJob({
    name: taskKind(name),
    queue: TASK_QUEUE,
    timeout: timeoutMs,
    retry: RETRY,
    // One of them waits or runs; another call gets the same one.
    unique: { by: () => name, mode: 'until-finished' },
    tags: ['millrace'],
    async run({
      input,
      signal,
      progress,
      log,
      job,
    }: RunContext<TaskInput | undefined>): Promise<TaskResult | BusyTask> {
      const { dryRun } = checkInput(input)
      const context = { ...ground(), report: (at: unknown): void => progress(at as Json) }
      try {
        const result = await runTask(name, context, { ...options, dryRun }, { jobId: job.id, signal })
        for (const warning of result.warnings) log.warn(warning)
        return result
      } catch (error) {
        if (!isMillraceError(error, 'TASK_BUSY') || signal.aborted) throw error
        // Somebody does what this job is for.
        log.info(error.message)
        return { outcome: 'busy', summary: error.message }
      }
    },
  }) as unknown as AnyJob // the types of its input and result do not matter to a registry
}

export interface TaskInput {
  readonly dryRun?: boolean
}

function checkInput(input: TaskInput | null | undefined): { readonly dryRun: boolean } {
  if (input === null || input === undefined) return { dryRun: false }
  checkKnownOptions(input, ['dryRun'], 'the input of a task')
  const { dryRun = false } = input
  if (typeof dryRun !== 'boolean') throw invalidOption('dryRun', dryRun, 'true or false')
  return { dryRun }
}
