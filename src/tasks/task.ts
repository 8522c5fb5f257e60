// What a built-in task is given and what it answers. A task is a plain function of both; who runs it, when, and that no
// two run it at once is the business of run-task.ts and built-in.ts.
import { formatDuration, parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import type { RetentionOptions } from '../maintenance/retention-options.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Backend } from '../store/ports.ts'

export const TASK_NAMES = ['retention', 'backup', 'logs', 'stale', 'tracking', 'notifications'] as const
export type TaskName = (typeof TASK_NAMES)[number]

export interface TaskContext {
  readonly runtime: Runtime
  readonly backend: Backend
  /** The name of that store. Default `default`. */
  readonly connection?: string
  /** Aborts when the task should stop: its time is over, its lead is lost, the process ends. */
  readonly signal: AbortSignal
  /** The periods of the system, as `createMillrace` was given them. */
  readonly retention?: RetentionOptions
  /** Where programs are found, and what they inherit. Default: the environment of this process. */
  readonly env?: Readonly<Record<string, string | undefined>>
  /** How far it is; shown to whoever waits. */
  readonly report?: (progress: TaskProgress) => void
}

export interface TaskProgress {
  readonly step: string
  readonly counts: TaskCounts
}

export type TaskCounts = Readonly<Record<string, number>>

export interface TaskResult {
  /** `partial`: its time was over before its work was; `left` says what remains. */
  readonly outcome: 'done' | 'partial'
  /** One sentence. */
  readonly summary: string
  readonly counts: TaskCounts
  /** Written or freed, as the task says. */
  readonly bytes: number
  readonly durationMs: number
  readonly left: string | null
  readonly warnings: readonly string[]
  /** Written by it. */
  readonly files: readonly string[]
  readonly dryRun: boolean
}

export type TaskFunction<Options> = (context: TaskContext, options?: Options) => Promise<TaskResult>

/** What every task understands. */
export interface CommonOptions {
  /** Looks, counts and changes nothing. */
  readonly dryRun?: boolean
  /** Then it stops, and says what is left. */
  readonly maxTime?: Duration
}

const COMMON_OPTIONS = ['dryRun', 'maxTime'] as const satisfies readonly (keyof CommonOptions)[]

export interface Course {
  readonly startedMs: number
  readonly maxMs: number
  readonly dryRun: boolean
  /** Still time for another pass? Throws when the task was told to stop. */
  mayGoOn(): boolean
  /** Makes the result of it. */
  finish(result: Finish): TaskResult
}

type Finish = Pick<TaskResult, 'summary' | 'counts'> &
  Partial<Pick<TaskResult, 'bytes' | 'left' | 'warnings' | 'files'>>

/** The part of its options that every task shares; `own` are the names of the others. */
export function checkCommon(options: CommonOptions, own: readonly string[], what: string): void {
  checkKnownOptions(options, [...COMMON_OPTIONS, ...own], what)
  const { dryRun = false, maxTime } = options
  if (typeof dryRun !== 'boolean') throw invalidOption('dryRun', dryRun, 'true or false')
  if (maxTime !== undefined) boundOf(maxTime)
}

function boundOf(maxTime: Duration): number {
  return parseDuration(maxTime, 'maxTime', { minMs: 1, maxMs: LIMITS.timeoutMaxMs })
}

/** The clock of one run of a task. */
export function begin(
  { runtime, signal }: TaskContext,
  options: CommonOptions,
  maxMs: number = DEFAULTS.taskMaxMs,
): Course {
  const { dryRun = false, maxTime = maxMs } = options
  const boundMs = boundOf(maxTime)
  const startedMs = runtime.clock.monoMs()
  const ranMs = (): number => runtime.clock.monoMs() - startedMs
  signal.throwIfAborted()
  return {
    startedMs,
    maxMs: boundMs,
    dryRun,
    mayGoOn() {
      signal.throwIfAborted()
      return ranMs() < boundMs
    },
    finish({ summary, counts, bytes = 0, left = null, warnings = [], files = [] }) {
      return {
        outcome: left === null ? 'done' : 'partial',
        summary: clip(dryRun ? `dry run: ${summary}` : summary),
        counts,
        bytes,
        durationMs: Math.round(ranMs()),
        left: left === null ? null : clip(left),
        warnings: warnings.slice(0, LIMITS.taskWarningsMax).map(clip),
        files: files.slice(0, LIMITS.taskWarningsMax),
        dryRun,
      }
    },
  }
}

/** `stopped after 10m`. */
export function overTime({ maxMs }: Course): string {
  return `stopped after ${formatDuration(maxMs)}, and goes on with its next run`
}

function clip(text: string): string {
  return text.length <= LIMITS.taskWordsMax ? text : `${text.slice(0, LIMITS.taskWordsMax - 1)}…`
}
