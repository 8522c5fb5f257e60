// A job kind as a value: its name, where it goes, how it is validated, retried and run. Definitions are
// made by `defineJob`; the client reads them to enqueue, the worker to run.
import type { StandardSchemaV1 } from '@standard-schema/spec'
import type { AttemptError } from './attempt-error.ts'
import type { Classifier } from './classify.ts'
import type { Duration } from './duration.ts'
import type { BatchId, JobId, WorkerId } from './job.ts'
import type { Json } from './json.ts'
import type { OutcomeSignal } from './outcome.ts'
import type { RetryPolicy } from './retry.ts'
import type { OnDuplicate, UniqueMode } from './unique.ts'

/**
 * `Input` is what a producer passes, `Parsed` what the handler receives (they differ when the schema
 * transforms), `Result` what an awaiting producer gets.
 */
export interface JobDefinition<Name extends string = string, Input = unknown, Parsed = unknown, Result = unknown> {
  readonly name: Name
  readonly queue: string
  /** A named connection; absent: the one of its queue, else the default. */
  readonly connection: string | undefined
  /** Its types are erased: a schema is covariant, a handler is not, and `AnyJob` must accept every definition. */
  readonly schema: StandardSchemaV1 | undefined
  readonly handler: Handler<Parsed, Result>
  readonly retry: RetryPolicy | undefined
  readonly timeoutMs: number
  readonly priority: number | undefined
  readonly unique: UniqueDefaults<Input> | undefined
  readonly group: ((input: Input) => string) | undefined
  readonly limitKey: ((input: Input) => string) | undefined
  readonly tags: readonly string[]
  readonly classify: Classifier | undefined
  readonly unknownErrors: 'retry' | 'fail' | undefined
  readonly onFailed: FailedHook | undefined
  /** Runs the handler here and now, without a queue: the input is validated, the result is returned. */
  run(input: Input, options?: DirectRunOptions): Promise<Result>
}

/** Any definition, where the types of one kind do not matter. Handlers are contravariant, hence `never`. */
export type AnyJob = JobDefinition<string, never, never, unknown>

export type InputOf<Job> = Job extends JobDefinition<string, infer Input, never, unknown> ? Input : never
export type ResultOf<Job> = Job extends JobDefinition<string, never, never, infer Result> ? Result : never

export type Handler<Parsed, Result> = (
  context: RunContext<Parsed>,
) => Result | OutcomeSignal | Promise<Result | OutcomeSignal>

export interface UniqueDefaults<Input> {
  /** The key; `'content'`: the hash of name and payload. */
  readonly by: 'content' | ((input: Input) => string)
  readonly mode: UniqueMode
  readonly windowMs: number
  readonly onDuplicate: OnDuplicate
}

export interface DirectRunOptions {
  readonly signal?: AbortSignal
}

/** What a handler knows of its job. */
export interface RunningJob {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly priority: number
  /** 1 for the first run. */
  readonly attempt: number
  readonly maxAttempts: number
  readonly enqueuedAt: Date
  readonly runAt: Date
  readonly tags: readonly string[]
  readonly meta: Json | null
  readonly batch: BatchId | null
  readonly worker: WorkerId | null
}

/** Properties, not methods: handlers take it apart, `run({ input, progress })`. */
export interface RunContext<Parsed> {
  readonly input: Parsed
  readonly job: RunningJob
  /** Aborts on timeout, cancellation, a lost lease or a worker that stops; `signal.reason` says which. */
  readonly signal: AbortSignal
  readonly attempt: number
  readonly maxAttempts: number
  /** Would a failure of this run be tried again? */
  readonly willRetry: boolean
  readonly log: JobLog
  /** 0-100, or any small JSON: PAYLOAD_NOT_JSON says what JSON cannot carry, PROGRESS_TOO_LARGE what is too much. */
  readonly progress: (value: unknown) => void
  /** Moves the deadline of this run to this long from now. */
  readonly extend: (timeout: Duration) => void
  /**
   * Completes the job inside your own transaction: what you wrote and the completion are committed together, or
   * neither is. Make it the last statement. Throws LEASE_LOST when this run no longer owns the job; roll back then.
   * `result` is the result of the job, whatever the handler returns. Needs a backend on PostgreSQL.
   */
  readonly completeWith: (tx: object, result?: unknown) => Promise<void>
  /** Enqueue from inside: jobs join the batch of this job when `batch: 'same'` is asked for. */
  readonly enqueue: ContextEnqueue
  /** Results of the jobs this one depends on, in the order they were named. */
  readonly parents: () => Promise<readonly ParentResult[]>
  /** Runs `fn` once per key: a re-run gets the stored result, which has been through JSON. */
  readonly idempotent: <Value>(
    key: string,
    fn: () => Promise<Value> | Value,
    options?: IdempotentOptions,
  ) => Promise<Value>
  /** Small values kept across runs for this kind of job. */
  readonly metadata: KindMetadata
}

/** The parts of a context that reach beyond the run: the client provides them to the worker. */
export type RunServices = Pick<RunContext<unknown>, 'enqueue' | 'parents' | 'idempotent' | 'metadata'>

export type RunMiddleware = (context: RunContext<unknown>, next: () => Promise<unknown>) => Promise<unknown>

export interface JobLog {
  debug(message: string): void
  info(message: string): void
  warn(message: string): void
  error(message: string): void
}

export interface ParentResult {
  readonly id: JobId
  readonly name: string | null
  /** `removed`: retention or an operator deleted it. */
  readonly status: 'completed' | 'failed' | 'cancelled' | 'removed'
  readonly result: Json | null
}

export interface IdempotentOptions {
  /** How long to wait for another run that holds the key. Default 30 s. */
  readonly wait?: Duration
  /** How long the result is kept. Default 24 h. */
  readonly keep?: Duration
  /** A failed holder: throw its error again (default), or run again. */
  readonly onFailure?: 'rethrow' | 'retry'
}

export interface KindMetadata {
  get(key: string): Promise<Json | null>
  /** Any small JSON. */
  set(key: string, value: unknown): Promise<void>
  /** Atomic; answers the sum. */
  increment(key: string, by?: number): Promise<number>
  remove(key: string): Promise<boolean>
  entries(): Promise<Readonly<Record<string, Json>>>
}

/** Kept loose here; `src/client` gives it its full types. */
export type ContextEnqueue = <Input>(
  job: JobDefinition<string, Input, never, unknown>,
  ...args: undefined extends Input
    ? [input?: NoInfer<Input>, options?: ContextEnqueueOptions]
    : [input: NoInfer<Input>, options?: ContextEnqueueOptions]
) => Promise<{ readonly id: JobId; readonly duplicate: boolean }>

export interface ContextEnqueueOptions {
  readonly batch?: 'same' | BatchId
  readonly delay?: Duration
  readonly priority?: number | 'critical' | 'high' | 'normal' | 'low'
  readonly unique?: string
  readonly after?: readonly JobId[]
  readonly onParentFailure?: 'fail' | 'cancel' | 'continue'
  readonly tags?: readonly string[]
  readonly meta?: { readonly [key: string]: Json }
  readonly runAt?: Date | number
  readonly attempts?: number
  readonly timeout?: Duration
  readonly group?: string
  readonly limitKey?: string
}

export interface FailedInfo {
  readonly id: JobId
  readonly name: string
  readonly queue: string
  readonly connection: string
  readonly attempts: number
  readonly error: AttemptError
}

/** Runs after a job became a dead letter, in the process that decided it. Best effort: use a batch callback for must-run work. */
export type FailedHook = (failed: FailedInfo) => void | Promise<void>
