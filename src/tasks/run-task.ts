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
  // A misspelt option is no run that failed.
  task.check(options)
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
  // A look changes nothing, so it is no news of the task, however it ends.
  const isLook = options.dryRun === true
  try {
    const result = await task.run({ ...context, signal: stop.signal }, options)
    if (isLook) return result
    const warning = await note(context, { ...base, outcome: result.outcome, durationMs: ranMs(), result, error: null })
    return warning === null ? result : { ...result, warnings: [...result.warnings, warning] }
  } catch (error) {
    const { code, message } = error as { readonly code?: unknown; readonly message?: unknown }
    const said = {
      code: typeof code === 'string' ? code : 'FAILED',
      message: String(message).slice(0, ERROR_CHARS_MAX),
    }
    if (!isLook) await note(context, { ...base, outcome: 'failed', durationMs: ranMs(), result: null, error: said })
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
  let isLost = false

  const lost = (): void => {
    isLost = true
    const message = `the task ${name} could not keep its lead for ${formatDuration(ttlMs)} and was stopped: it is harmless to run again`
    stop.abort(new MillraceError('TASK_BUSY', message, { retryable: true, details: { holder: 'lost' } }))
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
      // The note of a lead that was lost may be that of its next holder by now; ours ends by itself.
      const forget = isLost ? undefined : removeRunning(backend.notes, name)
      const goodbye = Promise.all([forget, backend.workers.resign(role, holder)])
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
  const details = running === null ? { holder: 'unknown' } : { holder: 'known', jobId: running.by.jobId ?? null }
  return new MillraceError('TASK_BUSY', message, { retryable: true, details })
}

/**
 * Who is in the way of this job: another process, which does what it is for; an earlier run of the same job, whose process died
 * and whose lead has not run out; or nobody, and this run has lost its lead on the way.
 */
export function inTheWay({ details }: MillraceError, jobId: string): 'another' | 'earlier' | 'lost' {
  if (details['holder'] === 'lost') return 'lost'
  // Whoever died before it could say who it is was just beginning.
  return details['holder'] === 'known' && details['jobId'] !== jobId ? 'another' : 'earlier'
}

/** A run that succeeded has, whether or not that could be written down. Answers what could not. */
async function note(
  { runtime, backend }: Omit<TaskContext, 'signal'>,
  record: Omit<TaskRecord, 'succeededAtMs'>,
): Promise<string | null> {
  const write = async (): Promise<void> => {
    const before = await readRecord(backend.notes, record.task)
    const succeededAtMs = record.error === null ? runtime.clock.nowMs() : (before?.succeededAtMs ?? null)
    await writeRecord(backend.notes, { ...record, succeededAtMs })
  }
  try {
    await bounded(runtime.clock, CALL_MAX_MS, 'the record of a task', write())
    return null
  } catch (error) {
    runtime.logger.warn({ task: record.task, error }, 'the result of a task could not be written down')
    return 'the result could not be written down: tasks ls shows an older one'
  }
}
