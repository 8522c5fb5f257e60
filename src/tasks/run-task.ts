// One run of a task, wherever it comes from: a person, a job, code. It holds the lead of its task while it runs, so that no two
// processes run the same one; a lead that cannot be kept ends it. What became of it is written down.
//
// Two may still meet, when the one was frozen for longer than its lease: every task is harmless beside itself, the lead only saves
// work and load.
import { hostname } from 'node:os'
import { MillraceError } from '../core/errors.ts'
import { formatDuration } from '../core/duration.ts'
import { DEFAULTS } from '../core/limits.ts'
import { bounded } from '../runtime/bounded.ts'
import { createLoop } from '../runtime/service.ts'
import { TASKS } from './catalogue.ts'
import type { Task } from './catalogue.ts'
import type { TaskOptionsByName } from './options.ts'
import { readRecord, readRunning, removeRunning, writeRecord, writeRunning } from './records.ts'
import type { TaskRecord, TaskRunner } from './records.ts'
import type { TaskContext, TaskName, TaskResult } from './task.ts'

const CALL_MAX_MS = 10_000
const ERROR_CHARS_MAX = 2_000

export interface TaskRun {
  readonly jobId?: string
  /** From outside: the process ends, the job was cancelled. */
  readonly signal?: AbortSignal
}

/** Throws TASK_BUSY when another process runs it, and whatever the task throws. */
export async function runTask<Name extends TaskName>(
  name: Name,
  context: Omit<TaskContext, 'signal'>,
  options: TaskOptionsByName[Name],
  { jobId, signal: outer }: TaskRun = {},
): Promise<TaskResult> {
  const { runtime, backend } = context
  const task: Task<TaskOptionsByName[Name]> = TASKS[name]
  if (!task.fits(backend)) {
    throw new MillraceError('TASK_NOT_FOUND', `this store has no work for the task ${name}: it ${task.does}`)
  }
  outer?.throwIfAborted()
  const stop = new AbortController()
  const by: TaskRunner = { host: hostname(), pid: process.pid, ...(jobId !== undefined && { jobId }) }
  const startedAtMs = runtime.clock.nowMs()
  const startedMs = runtime.clock.monoMs()
  const lead = await takeLead(name, context, { startedAtMs, by }, stop)
  const onAbort = (): void => stop.abort(outer?.reason)
  outer?.addEventListener('abort', onAbort, { once: true })
  const base = { task: name, startedAtMs, by }
  const ranMs = (): number => Math.round(runtime.clock.monoMs() - startedMs)
  try {
    const result = await task.run({ ...context, signal: stop.signal }, options)
    const warning = await note(context, { ...base, outcome: result.outcome, durationMs: ranMs(), result, error: null })
    return warning === null ? result : { ...result, warnings: [...result.warnings, warning] }
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
    const said = {
      code: typeof code === 'string' ? code : 'FAILED',
      message: String(message).slice(0, ERROR_CHARS_MAX),
    }
    await note(context, { ...base, outcome: 'failed', durationMs: ranMs(), result: null, error: said })
    throw error
  } finally {
    outer?.removeEventListener('abort', onAbort)
    await lead.release()
  }
}

type Run = Parameters<typeof writeRunning>[2]

async function takeLead(
  name: TaskName,
  { runtime, backend }: Omit<TaskContext, 'signal'>,
  run: Run,
  stop: AbortController,
) {
  const { clock } = runtime
  const [role, holder, ttlMs] = [`task:${name}`, runtime.newId(), DEFAULTS.taskLeadMs]
  const ask = () => bounded(clock, CALL_MAX_MS, 'the lead of a task', backend.workers.lead({ role, holder, ttlMs }))
  let heldMs = clock.monoMs()
  if (!(await ask()).held) throw await busy(name, backend.notes, clock.nowMs())

  const lost = (): void => {
    const message = `the task ${name} could not keep its lead for ${formatDuration(ttlMs)} and was stopped: it is harmless to run again`
    stop.abort(new MillraceError('TASK_BUSY', message, { retryable: true }))
  }
  const renewer = createLoop({
    name: `lead of task ${name}`,
    runtime,
    backoffMaxMs: ttlMs / 4,
    async pass() {
      const askedMs = clock.monoMs()
      // Whoever cannot ask for as long as it lasts must not believe in it any more.
      if (askedMs - heldMs >= ttlMs) lost()
      if (!(await ask()).held) lost()
      else heldMs = askedMs
      await writeRunning(backend.notes, name, run, ttlMs)
      return ttlMs / 3
    },
  })
  await renewer.start()
  return {
    async release() {
      await renewer.stop()
      const goodbye = Promise.all([removeRunning(backend.notes, name), backend.workers.resign(role, holder)])
      // Both end by themselves.
      await bounded(clock, CALL_MAX_MS, 'the end of a task', goodbye).catch(() => undefined)
    },
  }
}

async function busy(name: TaskName, notes: TaskContext['backend']['notes'], nowMs: number): Promise<MillraceError> {
  const running = await readRunning(notes, name).catch(() => null)
  const who =
    running === null
      ? ''
      : ` for ${formatDuration(Math.max(nowMs - running.startedAtMs, 0))} (process ${running.by.pid} on ${running.by.host})`
  const message = `the task ${name} runs already${who}: wait until it is over`
  return new MillraceError('TASK_BUSY', message, { retryable: true })
}

/** A run that succeeded has, whether or not that could be written down. Answers what could not. */
async function note(
  { runtime, backend }: Omit<TaskContext, 'signal'>,
  record: Omit<TaskRecord, 'succeededAtMs'>,
): Promise<string | null> {
  const write = async (): Promise<void> => {
    const before = await readRecord(backend.notes, record.task)
    const succeededAtMs = record.error === null ? runtime.clock.nowMs() : (before?.succeededAtMs ?? null)
    // A look changes nothing, so it is no news of the task.
    if (!record.result?.dryRun) await writeRecord(backend.notes, { ...record, succeededAtMs })
  }
  try {
    await bounded(runtime.clock, CALL_MAX_MS, 'the record of a task', write())
    return null
  } catch (error) {
    runtime.logger.warn({ task: record.task, error }, 'the result of a task could not be written down')
    return 'the result could not be written down: tasks ls shows an older one'
  }
}
