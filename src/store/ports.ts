// The seam between Millrace and a backend. Promises of atomicity, order, idempotency and what a lost
// reply means are written per method in docs/backend-contract.md; the conformance suite checks them.
import type { BatchId, ClaimedJob, JobId, LeaseRef, NewJob, StoredJob, WorkerId } from '../core/job.ts'
import type { Transition, Verdict } from '../core/transition.ts'
import type { BatchStore } from './batch-store.ts'
import type { HandOvers } from './hand-overs.ts'
import type { JobQuery } from './job-query.ts'
import type { LimitStore } from './limit-store.ts'
import type { NoteStore } from './note-store.ts'
import type { QueueStore } from './queue-store.ts'
import type { ScheduleStore } from './schedule-store.ts'
import type { Wakeups } from './wakeups.ts'
import type { BeatReply, WorkerStore } from './worker-store.ts'

export interface Backend {
  readonly jobs: JobStore
  readonly query: JobQuery
  readonly queues: QueueStore
  readonly schedules: ScheduleStore
  readonly batches: BatchStore
  readonly limits: LimitStore
  readonly workers: WorkerStore
  readonly notes: NoteStore
  readonly wakeups: Wakeups
  readonly capabilities: Capabilities
  /** Where claims may stand. Absent: `stands` changes nothing. */
  readonly handOvers?: HandOvers
  /**
   * The store inside a transaction of the caller, whose library is known by the shape of `tx`. Throws NOT_A_TRANSACTION
   * when that is none. There exactly when `capabilities.transactional`.
   */
  readonly inside?: (tx: unknown) => InsideTransaction
  /** Services that maintenance runs with its own; `isLeading` says whether this process should act. */
  readonly upkeep?: (request: UpkeepRequest) => readonly Upkeep[]
  /** False: others had better lead the upkeep, if there are any: what it needs does not answer in this process. */
  readonly mayLead?: () => boolean
  /**
   * Rings when the store is back after it was away, answers how to stop. Another server may have come back, or one that has
   * lost what it had confirmed. Absent: nobody is told, and a worker doubts only when a call of its own fails.
   */
  readonly onBack?: (listener: () => void) => () => void
  /** Open connections; idempotent. */
  start(): Promise<void>
  /** Close them; idempotent; calls after it fail with STOPPED. */
  stop(): Promise<void>
}

/** Differences between backends as data; nobody asks a backend for its name. */
export interface Capabilities {
  /** Exact integer priority; otherwise three lanes. */
  readonly strictPriority: boolean
  /** Jobs survive the end of this process. */
  readonly durable: boolean
  /** The store can be written inside the caller's transaction. */
  readonly transactional: boolean
  /** One `insert` over several queues is one atom. */
  readonly atomicAcrossQueues: boolean
  readonly payloadSearch: boolean
  /** Claims of one worker that may be under way at once: the store takes and answers them in order. 1: one at a time. */
  readonly orderedCalls: number
  /** Inserts of one client that may be under way at once: the store takes them in order. 1: one at a time. */
  readonly orderedInserts: number
  /**
   * When claims and settlements are better calls of their own: `always` where they go to different servers, `backlog` where one
   * connection would be the bottleneck, and only while there is more to claim than the worker can use.
   */
  readonly settlesApart: 'never' | 'backlog' | 'always'
  /** How a thread of its own can keep a worker alive; null: only the main loop can reach the store. */
  readonly threadLiveness: ThreadLiveness | null
  /** How long finished jobs are kept where nobody says; absent: the defaults of the system. */
  readonly retention?: DefaultRetention
}

/** Of a store where room is dear. */
export interface DefaultRetention {
  readonly finishedMs: number
  readonly failedMs: number
}

/** A module, loadable in a worker thread, whose `createBeat(options)` yields a `WorkerStore['beat']` of its own connection. */
export interface ThreadLiveness {
  readonly module: string
  readonly options: unknown
  /** Where each life has a thread with options of its own: these, asked for as it starts; null: that life has none. */
  readonly ofLife?: (worker: WorkerId) => Pick<ThreadLiveness, 'module' | 'options'> | null
  /** That life is over, whatever its thread still does. */
  readonly onEnd?: (worker: WorkerId) => void
  /** The thread has heard from the store. */
  readonly onReply?: (worker: WorkerId, reply: BeatReply) => void
}

/** What a backend has to do now and then beside the work of maintenance, which starts and stops it. */
export interface Upkeep {
  start(): Promise<void>
  stop(): Promise<void>
}

export interface UpkeepRequest {
  readonly isLeading: () => boolean
}

/** Both take effect with the commit and not without it. Nothing is repeated: after an error only a rollback works. */
export interface InsideTransaction {
  insert(jobs: readonly NewJob[]): Promise<InsertReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
}

export interface JobStore {
  insert(jobs: readonly NewJob[]): Promise<InsertReply>
  claim(request: ClaimRequest): Promise<ClaimReply>
  apply(transitions: readonly Transition[]): Promise<readonly Verdict[]>
  /** Moves the visibility of leases that were claimed with one. Answers the leases that are lost. */
  extend(leases: readonly LeaseRef[], leaseMs: number): Promise<readonly LeaseRef[]>
  /** Fences claims of this worker numbered up to `claimNo`, then lists what it holds. */
  holdings(worker: WorkerId, claimNo: number): Promise<readonly LeaseRef[]>
  /** Moves jobs whose time has come, and jobs whose gate was widened, towards ready. */
  promote(limit: number): Promise<PromoteReply>
  due(kind: DueKind, limit: number): Promise<readonly DueJob[]>
  prune(rules: readonly PruneRule[], limit: number): Promise<number>
  /** Instead of `prune`, where maintenance can do more than delete: one bounded pass of it. */
  retain?(policy: RetentionPolicy, limit: number): Promise<RetainReply>
}

export type InsertOutcome = 'inserted' | 'duplicate' | 'replaced' | 'already'

export interface InsertResult {
  /** The id of the job that stands for this request: its own, or the holder of the unique key. */
  readonly id: JobId
  readonly outcome: InsertOutcome
}

export type InsertRefusal =
  /** Jobs of this call, seen as the holders they stand for, wait for each other. */
  | { readonly code: 'DEPENDENCY_CYCLE'; readonly jobId: JobId; readonly circle: readonly JobId[] }
  | { readonly code: 'DEPENDENCY_NOT_FOUND'; readonly jobId: JobId; readonly parent: JobId }
  | { readonly code: 'BATCH_NOT_FOUND' | 'BATCH_CLOSED'; readonly jobId: JobId; readonly batch: BatchId }

export type InsertReply =
  | { readonly ok: true; readonly results: readonly InsertResult[] }
  | { readonly ok: false; readonly refusal: InsertRefusal }

export interface ClaimRequest {
  readonly worker: WorkerId
  /** Counts the claims of this worker; a number at or below the last one takes nothing. */
  readonly claimNo: number
  /** Asked in this order; the caller rotates it. */
  readonly queues: readonly string[]
  readonly limit: number
  /** The claim lives this long, whatever becomes of the worker (`extend` moves it); absent: as long as the worker. */
  readonly leaseMs?: number
  /** Settled first, in the same round trip, whatever becomes of the claim. */
  readonly settle?: readonly Transition[]
  /** If it gets nothing an insert may hand jobs over later, until this worker claims or looks again (hand-overs.ts). Not with `leaseMs`. */
  readonly stands?: boolean
}

export interface ClaimReply {
  readonly jobs: readonly ClaimedJob[]
  readonly verdicts: readonly Verdict[]
  /** Queues of the request that are paused now. */
  readonly paused: readonly string[]
  /** Why nothing could be claimed: the worker is not alive here, or the number was used up. */
  readonly refused?: 'worker-dead' | 'superseded'
  /** The last claim of this worker that stood and was answered by an insert. */
  readonly answered?: number
}

export interface PromoteReply {
  readonly promoted: number
  /** Until the next scheduled job is due; null when there is none. */
  readonly nextDueInMs: number | null
}

/**
 * - `expired`: running, but the worker is dead or the visibility lapsed.
 * - `orphaned`: blocked, and a parent ended in a way its policy does not accept.
 * - `batch-cancelled`: live, and its batch was cancelled after it joined.
 */
export type DueKind = 'expired' | 'orphaned' | 'batch-cancelled'

export interface DueJob {
  readonly job: StoredJob
  /** With `expired`: the worker may live, but the claim had a visibility and it is over. */
  readonly visibilityLapsed?: true
  /** With `orphaned`: the parent and what the policy asks for. */
  readonly orphan?: {
    readonly parent: JobId
    readonly parentStatus: 'failed' | 'cancelled'
    readonly policy: 'fail' | 'cancel'
  }
}

export interface PruneRule {
  /** Absent: every queue that no other rule of the call names. */
  readonly queue?: string
  readonly status: 'completed' | 'failed' | 'cancelled'
  readonly olderThanMs: number
}

export interface RetentionPolicy {
  /** Those without a queue are the periods of the system: they may be exceeded by one `partitionMs`. */
  readonly rules: readonly PruneRule[]
  /** Completed and cancelled jobs under a rule without a queue can be read this long after their end; null: no archive. */
  readonly archiveMs: number | null
  /** Attempts and log lines; then sums per day are left. */
  readonly logsMs: number
  readonly partitionMs: number
}

export interface RetainReply {
  /** Jobs that this pass deleted one by one. */
  readonly deleted: number
  /** When to come again: there is more, somebody was in the way, or nothing is due. */
  readonly next: 'now' | 'soon' | 'later'
  /** Steps that this pass took beyond deleting, in words of the store: for whoever counts them. */
  readonly did?: readonly string[]
}
