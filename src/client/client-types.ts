// The types of the public client: jobs may be named by their definition or, when the client knows them,
// by name; input, result and callbacks are checked either way.
import type { AnyJob, InputOf, JobDefinition, KindMetadata, ResultOf } from '../core/definition.ts'
import type { BatchProgress } from '../core/batch.ts'
import type { BatchId } from '../core/job.ts'
import type { EventName, Listener } from '../runtime/events.ts'
import type { BatchOptions } from './batch-options.ts'
import type { BatchDesk, BatchInfo } from './batches.ts'
import type { Consumer, ConsumerOptions } from './consumer.ts'
import type { DeadLetters } from './dead-letters.ts'
import type { EnqueueOptions } from './enqueue-options.ts'
import type { Flow } from './flows.ts'
import type { JobHandle } from './handle.ts'
import type { JobRef } from './ids.ts'
import type { Jobs } from './jobs.ts'
import type { Queues } from './queues.ts'
import type { ScheduleOptions } from './schedule-options.ts'
import type { Schedule, Schedules } from './schedules.ts'
import type { WaitOptions } from './wait-options.ts'

/** A definition, or the name of a registered one. */
export type Named<Known extends readonly AnyJob[]> = AnyJob | Known[number]['name']

/** The definition behind it. A client that does not know its jobs takes any input by name. */
export type JobOf<Known extends readonly AnyJob[], Ref> = Ref extends AnyJob
  ? Ref
  : Ref extends string
    ? string extends Known[number]['name']
      ? JobDefinition<string, unknown, never, unknown>
      : Extract<Known[number], { readonly name: Ref }>
    : never

export type InputFor<Known extends readonly AnyJob[], Ref> = InputOf<JobOf<Known, Ref>>
export type ResultFor<Known extends readonly AnyJob[], Ref> = ResultOf<JobOf<Known, Ref>>

/** The input may be left out when the job takes none. */
export type EnqueueArgs<Input> = undefined extends Input
  ? [input?: Input, options?: EnqueueOptions]
  : [input: Input, options?: EnqueueOptions]

export type InputArgs<Input> = undefined extends Input ? [input?: Input] : [input: Input]

export type BulkEntry<Known extends readonly AnyJob[], Ref> = readonly [
  job: Ref,
  ...args: EnqueueArgs<InputFor<Known, Ref>>,
]
export type BulkEntries<Known extends readonly AnyJob[], Refs extends readonly unknown[]> = {
  readonly [Index in keyof Refs]: BulkEntry<Known, Refs[Index]>
}
export type BulkHandles<Known extends readonly AnyJob[], Refs extends readonly unknown[]> = {
  readonly [Index in keyof Refs]: JobHandle<ResultFor<Known, Refs[Index]>>
}

type InputField<Input> = undefined extends Input ? { readonly input?: Input } : { readonly input: Input }

/** A job and its input, which may be left out when the job takes none. */
export type Callback<Known extends readonly AnyJob[], Ref> = readonly [
  job: Ref,
  ...input: InputArgs<InputFor<Known, Ref>>,
]

/**
 * `Done`, `Won` and `Lost` are the jobs of the three callbacks. No interface: that would be compared by its
 * parameters, and a client that knows its jobs would not be a `Client`.
 */
export type TypedBatchOptions<Known extends readonly AnyJob[], Done, Won, Lost> = Omit<
  BatchOptions,
  'onComplete' | 'onSuccess' | 'onFailure'
> & {
  readonly onComplete?: Callback<Known, Done>
  readonly onSuccess?: Callback<Known, Won>
  readonly onFailure?: Callback<Known, Lost>
}

/** Checks a tree node by node: each input against its own job. */
export type FlowNode<Known extends readonly AnyJob[], Node> = Node extends { readonly job: infer Ref }
  ? { readonly job: Ref & Named<Known>; readonly options?: EnqueueOptions } & InputField<InputFor<Known, Ref>> & {
        readonly children?: Node extends { readonly children: infer Children extends readonly unknown[] }
          ? { readonly [Index in keyof Children]: FlowNode<Known, Children[Index]> }
          : readonly never[]
      }
  : { readonly job: Named<Known> }

export interface EnqueueVerbs<Known extends readonly AnyJob[]> {
  enqueue<const Ref extends Named<Known>>(
    job: Ref,
    ...args: EnqueueArgs<InputFor<Known, Ref>>
  ): Promise<JobHandle<ResultFor<Known, Ref>>>
  /** Mixed kinds, one round trip, all or none; handles in the order given. At most 10 000. */
  enqueueMany<const Refs extends readonly Named<Known>[]>(
    entries: BulkEntries<Known, Refs>,
  ): Promise<BulkHandles<Known, Refs>>
  /** A tree of jobs in which a node runs after its children, written as one. */
  flow<const Tree>(
    tree: Tree & FlowNode<Known, Tree>,
  ): Promise<Flow<Tree extends { readonly job: infer Ref } ? ResultFor<Known, Ref> : unknown>>
}

export interface Batch<Known extends readonly AnyJob[] = readonly AnyJob[]> {
  readonly id: BatchId
  readonly connection: string
  add<const Ref extends Named<Known>>(
    job: Ref,
    ...args: EnqueueArgs<InputFor<Known, Ref>>
  ): Promise<JobHandle<ResultFor<Known, Ref>>>
  addMany<const Refs extends readonly Named<Known>[]>(
    entries: BulkEntries<Known, Refs>,
  ): Promise<BulkHandles<Known, Refs>>
  /** No more jobs from outside; callbacks fire when the last one has ended. */
  seal(): Promise<void>
  progress(): Promise<BatchProgress>
  /** Answers how many jobs it reached. */
  cancel(): Promise<number>
  /** Until every job has ended. */
  wait(options?: WaitOptions): Promise<BatchInfo>
}

/** Looking at batches by their ids. */
export interface Batches extends Pick<BatchDesk, 'get' | 'list' | 'cancel'> {}

export interface TypedSchedules<Known extends readonly AnyJob[]> extends Omit<Schedules, 'upsert'> {
  upsert<const Ref extends Named<Known>>(
    name: string,
    options: Omit<ScheduleOptions, 'job' | 'input'> & { readonly job: Ref } & InputField<InputFor<Known, Ref>>,
  ): Promise<Schedule>
}

export interface Client<Known extends readonly AnyJob[] = readonly AnyJob[]> extends EnqueueVerbs<Known> {
  /**
   * The same verbs inside your own transaction: the jobs are there after its commit, or never were. Takes an open
   * transaction of pg, postgres.js, Drizzle, Kysely, Knex, Prisma or PGlite; needs a backend on PostgreSQL.
   */
  in(tx: object): EnqueueVerbs<Known>
  enqueueAndWait<const Ref extends Named<Known>>(
    job: Ref,
    ...args: [...EnqueueArgs<InputFor<Known, Ref>>, wait?: WaitOptions]
  ): Promise<ResultFor<Known, Ref>>
  /** The result of a job by its id, for those who kept only that. */
  result(id: JobRef, options?: WaitOptions): Promise<unknown>
  /** An open batch: add jobs, then `seal()`. */
  batch<const Done extends Named<Known>, const Won extends Named<Known>, const Lost extends Named<Known>>(
    name?: string,
    options?: TypedBatchOptions<Known, Done, Won, Lost>,
  ): Promise<Batch<Known>>
  /** Opens, fills and seals in one call. */
  enqueueBatch<
    const Refs extends readonly Named<Known>[],
    const Done extends Named<Known>,
    const Won extends Named<Known>,
    const Lost extends Named<Known>,
  >(
    name: string,
    entries: BulkEntries<Known, Refs>,
    callbacks?: TypedBatchOptions<Known, Done, Won, Lost>,
  ): Promise<Batch<Known>>
  readonly jobs: Jobs
  readonly queues: Queues
  readonly batches: Batches
  readonly schedules: TypedSchedules<Known>
  readonly deadLetters: DeadLetters
  /** Small values kept for a job kind across its runs. */
  metadata(job: Named<Known>): KindMetadata
  /** Claim, ack and nack by hand, without a worker. */
  consumer(options: ConsumerOptions): Consumer
  /** Events of this process. Answers the way to stop listening. */
  on<Name extends EventName>(event: Name, listener: Listener<Name>): () => void
}
