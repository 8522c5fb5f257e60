// What the rules of the hybrid need of PostgreSQL beyond a backend. Every call may be lost, late, doubled, or applied without a
// reply; each method says what that means. The words are those of src/backends/hybrid/ports.ts, which has the other half.
import type { ClaimedJob, JobId, LeaseNumber, LeaseRef, NewJob, WorkerId } from '../../core/job.ts'
import type { JsonText } from '../../core/json.ts'
import type { LaneBounds } from '../../core/priority.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import type { InsertReply, InsideTransaction } from '../../store/ports.ts'
import type { BeatReply, BeatRequest, NewWorker } from '../../store/worker-store.ts'

/** `<number>.<birth>`: what scripts and minting statements compare. A queue whose epoch has no birth yet has none. */
export type EpochTag = string

/** One row of `dispatch`. A queue without a row is as `{ mode: 'ledger', epoch: 0, birth: null }`. */
export interface DispatchRow {
  readonly queue: string
  readonly mode: 'token' | 'ledger'
  readonly epoch: number
  readonly birth: string | null
  readonly redisId: string
  readonly firstLease: number
  /** Of the queue itself, so that a producer can choose a lane and `open` and `config` need not ask again. */
  readonly paused: boolean
  readonly configVersion: number
  readonly lanes: LaneBounds
  readonly lowerLaneShare: number
  readonly defaultPriority: number
}

export interface DispatchNews {
  readonly rows: readonly DispatchRow[]
  /** The counter of epochs. Read before the rows or in one snapshot with them: whoever adopts it knows every row up to it. */
  readonly epoch: number
  /** The server is not the one that `ledger` knows (failover, restore): nothing mints until `renewServer`. */
  readonly serverChanged: boolean
}

/** What is in flight, with how long it has been so. */
export interface InFlightRef extends LeaseRef {
  readonly ageMs: number
}

/** The part of the ledger that keeps a session alive; the heartbeat thread has one of its own connection. */
export interface SessionLedger {
  /**
   * `workers.beat`, and in the same atom: `failing` (queues whose Redis this session cannot use) is stored; the reply has
   * the dispatch rows of the session's queues and its `epochSeen`. Dead or unknown: `alive: false`, nothing changes.
   * Lost or doubled: beat + 1 more, harmless. `cancels` lists flagged rows that are marked with this session.
   */
  beat(request: SessionBeat): Promise<SessionBeatReply>
  /**
   * Where `(id, lease)` and (unmarked or already this session's): session = this one, startedAt = now - ageMs. Only while the
   * session is alive. Answers the refs that were not found, or belong to another: lost leases. Repeatable.
   */
  mark(worker: WorkerId, refs: readonly InFlightRef[]): Promise<readonly LeaseRef[]>
  /**
   * One transaction: `epochSeen = greatest(epochSeen, epoch)` where alive, then `mark` of all refs. Not alive: null and
   * nothing. Repeatable, harmless when late.
   */
  adopt(worker: WorkerId, epoch: number, refs: readonly InFlightRef[]): Promise<readonly LeaseRef[] | null>
  close(): Promise<void>
}

export interface SessionBeat extends BeatRequest {
  readonly failing: readonly string[]
}

export interface SessionBeatReply extends BeatReply {
  readonly epochSeen: number
  readonly news: DispatchNews
}

export interface Ledger extends SessionLedger {
  /** `workers.register` of a session that may hold tokens: born with `epochSeen` 0, so it is part of every barrier. */
  register(worker: NewWorker): Promise<void>
  /** All rows, or those of these queues. */
  dispatch(queues?: readonly string[]): Promise<DispatchNews>

  // ---- epochs

  /**
   * Locks the `ledger` row, so epochs commit in order. For each queue whose epoch is still `expected` (0: no row): epoch =
   * counter + 1 (one number for all of the call, and more than `above`), birth null, mode, redisId, firstLease = nextval of
   * the lease sequence. With `unlessHealthy` a queue is left alone when a live session that serves it has `epochSeen` >= its
   * epoch and does not list it in `failing`. Answers the rows flipped by this call; the others are somebody else's.
   * A lost reply: nobody opens that epoch, and others flip again.
   */
  flip(request: FlipRequest): Promise<readonly DispatchRow[]>
  /** Birth of an epoch that this process has flipped and opened: where epoch equal and birth null. False: too late. */
  born(queue: string, epoch: number, birth: string): Promise<boolean>
  /**
   * Where the server is not the known one: it becomes the known one, the counter jumps by 2^20 + random, the lease sequence by
   * 2^32 + a random 38-bit number, all queues are flipped as above to mode `ledger`. Else nothing. Repeatable.
   */
  renewServer(): Promise<void>

  // ---- minting

  /**
   * `jobs.insert`; and a plain job (no delay, gate, key, parent, batch of the call allowed) of a queue that is offered is minted instead
   * of becoming ready if: mode token, not paused, not limited, tag equal to the offer, server known. A lost reply is
   * repeated with the same ids: what is there is `already` and is not minted again, so its lease is unknown for ever and
   * reconcile finds it.
   */
  insert(jobs: readonly NewJob[], offers: Offers): Promise<MintReply>
  /**
   * Moves ready rows of the queue to unmarked `running`, each lane by priority then order, at most `rooms[lane]` of it, `skip
   * locked`, under the same guard (`tag`, mode, not paused, server). `until-started` keys are given back. A lost reply:
   * reconcile finds the rows.
   */
  relay(queue: string, tag: EpochTag, rooms: readonly [number, number, number]): Promise<RelayReply>

  // ---- running

  /**
   * `jobs.apply`, on the ordered connection of the worker. Everything with a lease in its guard that may come from `running` may come from
   * an unmarked row, whose run then was of `worker` (null: unknown), started ranMs ago; audit as if it had been
   * marked. Without a lease: `requestCancel` takes an unmarked row too (sets the flag); `cancel`, `remove` and a
   * `replace` of an unmarked row change nothing and are listed in `dispatched`, verdict `stale`.
   */
  settle(worker: WorkerId | null, transitions: readonly Transition[]): Promise<SettleReply>
  /** The same inside a transaction of the caller. */
  inside(tx: unknown, workerOf: (ref: LeaseRef) => WorkerId | null): InsideTransaction
  /**
   * Where `(id, lease)` is unmarked, or marked with this worker (an adoption was faster), and the worker alive: session =
   * worker, startedAt = now, and with leaseMs visible until now + leaseMs. Answers those it did. Unknown: give back.
   */
  confirm(worker: WorkerId, refs: readonly LeaseRef[], leaseMs?: number): Promise<readonly LeaseRef[]>
  /** Payloads that did not travel with the token. Missing: deleted meanwhile. */
  bodies(ids: readonly JobId[]): Promise<ReadonlyMap<JobId, JsonText>>

  // ---- back to ready. As `return` of core/decide.ts (place in the order, attempt and gates stay), and its
  // `ifCancelRequested` for a row with the cancel flag. `skip locked`. All repeatable: what has moved does not move again.

  /** `(id, lease)` that are unmarked, under the barrier of the queue at exactly this epoch (else 0). */
  requeue(queue: string, epoch: number, refs: readonly LeaseRef[]): Promise<number>
  /**
   * Unmarked rows of the queue with lease < firstLease, in ledger mode all unmarked ones; at most `most`, under the barrier, at exactly this epoch.
   * -1: the barrier does not hold.
   */
  requeueOld(queue: string, epoch: number, most: number): Promise<number>
  /** `(id, lease)` that are unmarked or marked with this worker: the worker itself says that it does not run them. */
  giveBack(worker: WorkerId, refs: readonly LeaseRef[]): Promise<number>
  /** Unmarked `(id, lease)` become those of this session, which is not alive: `due('expired')` lists them from now on. Alive: nothing. */
  bequeath(dead: WorkerId, refs: readonly LeaseRef[]): Promise<number>
  /** Of these ids, those that are not alive (unknown counts as such). */
  notAlive(workers: readonly WorkerId[]): Promise<readonly WorkerId[]>

  // ---- reconcile

  /** What the lease sequence will give next at the least, and the server it says so on. */
  leaseMark(): Promise<{ readonly next: number; readonly server: string }>
  /** Unmarked rows of the queue with after < lease < below, in order of lease, at most `most`. */
  unmarked(queue: string, after: number, below: number, most: number): Promise<readonly LeaseRef[]>

  // ---- cancel

  /**
   * A transition without a lease (`cancel`, `remove`) on a row that is unmarked under exactly this lease, whose token was revoked, or,
   * with `barrierOf` (the queue and its epoch), is absent: then only under the barrier. Else `stale`.
   */
  settleRevoked(transition: Transition, lease: LeaseNumber, barrierOf: BarrierOf | null): Promise<Verdict>
  /** Sets the cancel flag where `(id, lease)`, and marks an unmarked row with the session that has it in flight. */
  flagCancel(ref: LeaseRef, worker: WorkerId | null, thenRemove: boolean): Promise<boolean>
}

export interface FlipRequest {
  readonly queues: readonly { readonly queue: string; readonly expected: number }[]
  readonly mode: 'token' | 'ledger'
  readonly redisId: string
  readonly unlessHealthy: boolean
  readonly above?: number
}

export interface BarrierOf {
  readonly queue: string
  readonly epoch: number
}

/** Per queue the tag under which its plain jobs may be minted. */
export type Offers = ReadonlyMap<string, EpochTag>

export interface MintReply {
  readonly reply: InsertReply
  /** Parallel to the jobs: 0 where nothing was minted. */
  readonly leases: readonly number[]
  /** Equal for all minted jobs: enqueuedAt and runAt. */
  readonly nowMs: number
  /** Of each queue with minted jobs: what an absent priority or number of attempts became. */
  readonly defaults: ReadonlyMap<string, { readonly priority: number; readonly maxAttempts: number }>
  /** Rows of queues whose offer did not match, and of queues of the call that were not offered. */
  readonly news: DispatchNews
}

/** Of a job that the relay has minted. */
export interface MintedJob extends Omit<ClaimedJob, 'payload'> {
  /** Null: longer than TOKEN_BODY_MAX; the worker reads it from the ledger. */
  readonly payload: JsonText | null
}

export interface RelayReply {
  readonly jobs: readonly MintedJob[]
  /** Per lane: ready rows remain. */
  readonly backlog: readonly [boolean, boolean, boolean]
  /** Null: the guard held. Else the row as it is now, and nothing was moved. */
  readonly refused: DispatchNews | null
}

export interface SettleReply {
  readonly verdicts: readonly Verdict[]
  readonly dispatched: readonly DispatchedRow[]
}

export interface DispatchedRow {
  /** Position in the call. */
  readonly index: number
  readonly queue: string
  readonly lease: LeaseNumber
}

/** Longer payloads (in characters) do not travel with the token. */
export const TOKEN_BODY_MAX = 4_096
