// What a test holds: a Millrace in memory, and the ways to run it.
import type { AttemptError } from '../core/attempt-error.ts'
import type { InputFor, Named, ResultFor } from '../client/client-types.ts'
import type { Job } from '../client/job-view.ts'
import type { AnyJob } from '../core/definition.ts'
import type { Duration } from '../core/duration.ts'
import type { JobId, JobStatus, LogLine } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import type { Millrace, MillraceOptions } from '../millrace.ts'
import type { WorkOptions } from '../works.ts'
import type { Worker } from '../worker/worker.ts'
import type { VirtualClock } from './virtual-clock.ts'

export type TestMode = 'manual' | 'inline' | 'live'

export interface TestOptions<Known extends readonly AnyJob[]> extends Pick<
  MillraceOptions<Known>,
  'jobs' | 'queues' | 'secrets' | 'use' | 'classify' | 'unknownErrors' | 'onFailed' | 'logger'
> {
  /**
   * - `manual` (default): jobs run when `drain()` or `runNext()` is called.
   * - `inline`: `enqueue()` resolves after the job, and whatever it enqueued, has run.
   * - `live`: a real worker on the real clock.
   */
  readonly mode?: TestMode
  /** Where the virtual clock starts. Default 2030-01-01T00:00:00Z. Not with `live`. */
  readonly start?: Date | number
  /** Of ids and jitter. Default 1. */
  readonly seed?: number
  /** With `inline`: does a failing run reject `enqueue()` (default), or is its error only kept with the job? */
  readonly inlineErrors?: 'throw' | 'store'
  /** A handler that has not ended after this much real time fails the test. Default 4 s. Not with `live`. */
  readonly stuckAfter?: Duration
  /** With `live`: options of the worker. */
  readonly work?: WorkOptions
}

/** How one run ended. `deferred`: no token of its rate limit. `stale`: the job was taken away while it ran. */
export const RUN_STATUSES = [
  'completed',
  'failed',
  'retried',
  'cancelled',
  'snoozed',
  'released',
  'deferred',
  'stale',
] as const
export type RunStatus = (typeof RUN_STATUSES)[number]

export interface RunReport<Result = unknown> {
  readonly status: RunStatus
  /** After the way through JSON, as a producer would get it. */
  readonly result?: Result
  /** What would be kept of the error. */
  readonly error?: AttemptError
  /** What the handler threw, unchanged. */
  readonly thrown?: unknown
  /** Until the next run. */
  readonly delayMs?: number
  readonly logs: readonly Pick<LogLine, 'level' | 'message'>[]
  /** Every report, in order. */
  readonly progress: readonly Json[]
}

export interface JobReport extends RunReport {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  /** 1 for the first run. */
  readonly attempt: number
}

/** How many runs ended how; `ran` is their sum. */
export type DrainReport = { readonly ran: number } & { readonly [Status in RunStatus]: number }

export interface DrainOptions {
  /** Only jobs of this queue. Default: of all queues. */
  readonly queue?: string
  /** More runs than this are taken for a job that never ends. Default 10 000. */
  readonly limit?: number
  /** Moves the clock to delayed jobs and retries until none is left. Schedules tick on the way, but are not waited for. */
  readonly withScheduled?: boolean
}

export interface PerformOptions {
  /** Which attempt this is. Default 1. */
  readonly attempt?: number
  /** Default: of the job kind, then of its queue. */
  readonly maxAttempts?: number
  readonly meta?: { readonly [key: string]: Json }
}

/** A job by its kind, by the handle or id of one job, or by anything that can be seen of it. */
export type WaitTarget<Known extends readonly AnyJob[]> =
  | Named<Known>
  | { readonly id: JobId }
  | JobId
  | ((job: Job) => boolean)

export interface AnyTestMillrace<Known extends readonly AnyJob[] = readonly AnyJob[]> extends Millrace<Known> {
  readonly mode: TestMode
  /**
   * The first job that is, or has already been, in this status (default `completed`). Waits in real time,
   * 4 s by default; when the time is up the error says what there was instead.
   */
  waitFor(target: WaitTarget<Known>, status?: JobStatus, options?: { readonly timeout?: Duration }): Promise<Job>
}

export interface LiveTestMillrace<Known extends readonly AnyJob[] = readonly AnyJob[]> extends AnyTestMillrace<Known> {
  readonly mode: 'live'
  readonly worker: Worker
}

export interface TestMillrace<Known extends readonly AnyJob[] = readonly AnyJob[]> extends AnyTestMillrace<Known> {
  readonly mode: 'manual' | 'inline'
  readonly clock: VirtualClock
  /** Runs everything that is ready, one job after the other, and what these jobs enqueue. */
  drain(options?: DrainOptions): Promise<DrainReport>
  /** Runs the next ready job; null when there is none. */
  runNext(options?: { readonly queue?: string }): Promise<JobReport | null>
  /**
   * One run of a handler without a job in the store: validation, JSON, middleware, timeout and the decision
   * what would become of the job. What the handler enqueues is enqueued.
   */
  perform<const Ref extends Named<Known>>(
    job: Ref,
    ...args: PerformArgs<InputFor<Known, Ref>>
  ): Promise<RunReport<ResultFor<Known, Ref>>>
}

type PerformArgs<Input> = undefined extends Input
  ? [input?: Input, options?: PerformOptions]
  : [input: Input, options?: PerformOptions]
