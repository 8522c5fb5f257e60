// `mill.tasks`: the built-in tasks for code and for the command line. Runs one here and now, hands one to a worker, tells what is
// known of each. Running needs no configuration; enqueueing needs workers that have one.
import type { ClientInternals } from '../client/client.ts'
import { DEFAULT_CONNECTION } from '../client/connections.ts'
import type { JobHandle } from '../client/handle.ts'
import type { Schedule, Schedules } from '../client/schedules.ts'
import type { AnyJob } from '../core/definition.ts'
import { MillraceError } from '../core/errors.ts'
import { checkKnownOptions } from '../core/names.ts'
import type { RetentionOptions } from '../maintenance/retention-options.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { taskKind, taskSchedule } from './built-in.ts'
import type { BuiltInTasks, TaskInput } from './built-in.ts'
import { checkTaskName, TASKS } from './catalogue.ts'
import { planTasks } from './options.ts'
import type { TaskOptionsByName } from './options.ts'
import { readRecord, readRunning } from './records.ts'
import type { RunningTask, TaskRecord } from './records.ts'
import { runTask } from './run-task.ts'
import { TASK_NAMES } from './task.ts'
import type { TaskContext, TaskName, TaskResult } from './task.ts'

export interface Tasks {
  /** Here and now; what is not said is as configured. Throws TASK_BUSY when another process runs it. */
  run<Name extends TaskName>(name: Name, options?: TaskOptionsByName[Name], run?: TaskRunOptions): Promise<TaskResult>
  /** By a worker of the queue `millrace.tasks`, with the options of its own configuration. */
  enqueue(name: TaskName, input?: TaskInput): Promise<JobHandle>
  /** All of the default store, and of the others those that they have work for. */
  list(): Promise<readonly TaskInfo[]>
}

export interface TaskRunOptions {
  readonly signal?: AbortSignal
  /** Another store than the default one; a task that is configured for certain stores has nothing configured for others. */
  readonly connection?: string
  /** Where programs are found. Default: the environment of this process. */
  readonly env?: TaskContext['env']
}

export interface TaskInfo {
  readonly name: TaskName
  readonly connection: string
  /** In one line. */
  readonly does: string
  /** This store has work for it. */
  readonly fits: boolean
  /** Null: it runs when somebody asks for it. */
  readonly schedule: Schedule | null
  readonly last: TaskRecord | null
  readonly running: RunningTask | null
}

export interface TaskDeskParts extends Pick<ClientInternals<readonly AnyJob[]>, 'connections' | 'enqueuer'> {
  readonly runtime: Runtime
  readonly schedules: Pick<Schedules, 'list'>
  /** Absent: this Millrace has none of them as jobs. */
  readonly tasks?: BuiltInTasks | undefined
  readonly retention?: RetentionOptions | undefined
}

export function createTaskDesk(parts: TaskDeskParts): Tasks {
  const { runtime, connections, enqueuer, tasks, retention } = parts
  return {
    async run(asked, options, run = {}) {
      checkKnownOptions(run, ['signal', 'connection', 'env'], 'a run of a task')
      const name = checkTaskName(asked) as typeof asked // the name that was asked for
      const { signal, connection = DEFAULT_CONNECTION, env } = run
      const planned = (tasks?.plan ?? planTasks())[name]
      const isMeant = planned.connections?.includes(connection) ?? true
      const context = {
        runtime,
        backend: connections.backend(connection),
        connection,
        ...(retention !== undefined && { retention }),
        ...(env !== undefined && { env }),
      }
      const all = { ...(isMeant && planned.options), ...options }
      return await runTask(name, context, all, { ...(signal !== undefined && { signal }) })
    },
    async enqueue(asked, input = {}) {
      const kind = taskKind(checkTaskName(asked))
      if (input.connection !== undefined) connections.backend(input.connection)
      if (tasks !== undefined) return await enqueuer.one(kind, input)
      const message = 'this Millrace has no tasks as jobs: add tasks: {} to its options, and to those of a worker'
      throw new MillraceError('UNKNOWN_JOB', message, { details: { name: kind } })
    },
    async list() {
      const schedules = new Map((await parts.schedules.list()).map((schedule) => [schedule.name, schedule]))
      const look = async (connection: string, name: TaskName): Promise<TaskInfo> => {
        const { notes } = connections.backend(connection)
        return {
          name,
          connection,
          does: TASKS[name].does,
          fits: TASKS[name].fits(connections.backend(connection)),
          schedule: schedules.get(taskSchedule(name, connection)) ?? null,
          last: await readRecord(notes, name),
          running: await readRunning(notes, name),
        }
      }
      const isShown = (connection: string, name: TaskName): boolean =>
        connection === DEFAULT_CONNECTION || TASKS[name].fits(connections.backend(connection))
      return await Promise.all(
        connections.names.flatMap((connection) =>
          TASK_NAMES.filter((name) => isShown(connection, name)).map((name) => look(connection, name)),
        ),
      )
    },
  }
}
