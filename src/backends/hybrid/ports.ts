// The two halves of the hybrid as its rules see them. `Ledger` is what they need of PostgreSQL beyond `Backend`, `Race`
// what they need of Redis. Every call may be lost, late, doubled, or applied without a reply; each method says what that
// means. Rules never see a driver; implementations decide nothing: they compare a guard and move a row or a token.
//
// Words. A session is one life of a worker, its row in `workers`. A row in `running` without a session is unmarked: its
// status is `dispatched`, it may be in a lane, in flight, or lost. The barrier of a queue: no live session that could hold
// tokens has `epochSeen` < epoch of the queue. Minted: moved into `running` unmarked, with a new lease, by this statement.
import type { WorkerId } from '../../core/job.ts'
import type { Lane } from '../../core/priority.ts'
import type { EpochTag } from '../postgres/ledger-port.ts'

export { TOKEN_BODY_MAX } from '../postgres/ledger-port.ts'
export type {
  EpochTag,
  DispatchRow,
  DispatchNews,
  InFlightRef,
  SessionLedger,
  SessionBeat,
  SessionBeatReply,
  Ledger,
  FlipRequest,
  BarrierOf,
  Offers,
  MintReply,
  MintedJob,
  RelayReply,
  SettleReply,
  DispatchedRow,
} from '../postgres/ledger-port.ts'

// ======================================================================================================== Redis

/** `id:lease`, the name of a token in `held`. The first word of its text. */
export type TokenField = string

export interface Token {
  readonly lane: Lane
  readonly lease: number
  /** `id:lease body`: one line without its end, opaque but for its first word. */
  readonly text: string
}

/**
 * The gate of every script but `open`. EPOCH: another epoch, or none. IDENTITY: this is not the server the epoch was opened
 * on. TORN: parts are missing. With what was found: `redisId` of the server that answered, `epoch` tag or ''.
 */
export interface GateRefusal {
  readonly why: 'EPOCH' | 'IDENTITY' | 'TORN'
  readonly redisId: string
  readonly epoch: EpochTag
}

/** Never throws for what a script answers; throws STORE_UNAVAILABLE or STORE_TIMEOUT when the outcome is unknown. */
export type Gated<Value> =
  | { readonly refused: null; readonly value: Value }
  | { readonly refused: GateRefusal; readonly value: null }

export interface Race {
  /** The replid of the server that has the slot of this queue. Only reads: an answer does not say that it can be used. */
  identity(queue: string): Promise<string>
  /** Writes, and passes the gate where there is an epoch: whatever would make a take or a push fail makes this fail. Repeatable. */
  probe(queue: string, tag: EpochTag | null): Promise<ProbeReply>
  /** Only the one who flipped to this number calls it. A lost reply: flip again. */
  open(queue: string, request: OpenRequest): Promise<OpenReply>
  /**
   * Puts tokens at the end of their lanes, in the order given, unless lease < floor, lease <= the highest lease this pusher
   * had pushed before the call, or the field is held. Sets the backlog bits (null: leaves them). Rings the bell if a take has
   * parked. `isFull`: a lane is over twice the window, or memory is full; then nothing was pushed. No tokens: a question.
   * Where nothing waits and a take stands, its session is handed the first of them instead, and hears of it.
   * A lost reply: never repeated; reconcile finds what did not arrive.
   */
  push(queue: string, tag: EpochTag, request: PushRequest): Promise<Gated<PushReply>>
  /**
   * Forgets the `done` fields, whatever comes next. c <= last c of the session: `dup`. Else takes at most `most` tokens and notes each as
   * held by session/c. Short of `most`: parked, the next push rings. A lost reply: `holdings` with that c first. If it `stands`
   * and brought nothing, a push may answer it, once; not after a later take or `holdings` of this session. A refusal is one of
   * this copy: another may come when the epoch is open.
   */
  take(queue: string, tag: EpochTag, request: TakeRequest): Promise<Gated<TakeReply>>
  /**
   * Raises the last c of the session to c, or to `dead` for good; then one page of the fields it holds. After it no take
   * numbered <= c can land or be answered by a push. Repeatable. Cursor '0' begins and ends.
   */
  holdings(queue: string, tag: EpochTag, request: HoldingsRequest): Promise<Gated<HoldingsReply>>
  /** Forgets fields that this session holds; `last` also the session. Repeatable. */
  drop(
    queue: string,
    tag: EpochTag,
    session: WorkerId,
    fields: readonly TokenField[],
    last: boolean,
  ): Promise<Gated<null>>
  /** Per field: waiting → `revoked`; absent → floor = max(floor, lease + 1), `absent`; in flight → `{ session }`. Repeatable. */
  revoke(queue: string, tag: EpochTag, fields: readonly TokenField[]): Promise<Gated<readonly Revoked[]>>
  /** floor = max(floor, below); forgets pushers below it. A field absent now can never appear later. Repeatable. */
  audit(queue: string, tag: EpochTag, below: number, fields: readonly TokenField[]): Promise<Gated<AuditReply>>
  /** Ignored unless the version is newer. */
  config(queue: string, tag: EpochTag, config: RaceConfig): Promise<Gated<null>>
  /** Of the fullest server; max 0: no limit is set. */
  memory(): Promise<{ readonly used: number; readonly max: number }>
  /** Tokens came to a queue somebody has parked on. May be lost; a poll stands behind it. Answers how to stop. */
  listen(onBell: (queue: string) => void): () => void
  /**
   * What pushes hand over to this session; a message may be lost, late or doubled. `onBack`: some may have been lost. Absent where
   * takes cannot stand. Answers how to stop.
   */
  hear?(session: WorkerId, onHanded: (handed: Handed) => void, onBack: () => void): Promise<() => void>
  start(): Promise<void>
  stop(): Promise<void>
}

export interface Handed {
  readonly queue: string
  readonly tag: EpochTag
  /** Of the take that is answered, and of the claim it was part of. */
  readonly c: number
  readonly claimNo: number
  readonly texts: readonly string[]
}

export interface ProbeReply {
  readonly redisId: string
  readonly refused: GateRefusal | null
}

export interface RaceConfig {
  readonly version: number
  readonly paused: boolean
  readonly lowerLaneShare: number
}

export interface OpenRequest extends RaceConfig {
  readonly epoch: number
  readonly redisId: string
  readonly firstLease: number
}

export type OpenReply =
  | { readonly kind: 'open'; readonly birth: string }
  /** Another server than `redisId` answered. */
  | { readonly kind: 'identity'; readonly redisId: string }
  /** A higher epoch was opened here. */
  | { readonly kind: 'ahead'; readonly epoch: number }

export interface PushRequest {
  readonly pusher: string
  readonly tokens: readonly Token[]
  readonly backlog: readonly [boolean, boolean, boolean] | null
  readonly window: number
}

export interface PushReply {
  readonly isFull: boolean
  readonly depths: readonly [number, number, number]
  readonly backlog: readonly [boolean, boolean, boolean]
}

export interface TakeRequest {
  readonly session: WorkerId
  readonly c: number
  readonly most: number
  readonly done: readonly TokenField[]
  /** Absent: it does not stand. `no-longer`: nor does an earlier claim of this session, in any queue. */
  readonly stands?: Stand | 'no-longer'
}

export interface Stand {
  /** Of the claim that this take is part of. It is answered in one queue at the most. */
  readonly claimNo: number
  readonly most: number
  /** The last take of its claim: from now on the claim stands, in all queues where it brought nothing. */
  readonly isLast: boolean
}

/** `answered`: a push has handed something over for the take of this session before, which stood. */
export type TakeReply =
  | { readonly kind: 'taken'; readonly texts: readonly string[]; readonly answered?: boolean }
  | { readonly kind: 'paused'; readonly answered?: boolean }
  | { readonly kind: 'dup' }
  /** The session was declared dead here. */
  | { readonly kind: 'dead' }

export interface HoldingsRequest {
  readonly session: WorkerId
  readonly c: number | 'dead'
  readonly cursor: string
}

export interface HoldingsReply {
  readonly fields: readonly TokenField[]
  readonly cursor: string
}

export type Revoked = 'revoked' | 'absent' | { readonly session: WorkerId }

export interface AuditReply {
  /** Of those asked for: absent, or revoked. */
  readonly absent: readonly TokenField[]
  /** All that have taken here and were not dropped as last. */
  readonly sessions: readonly WorkerId[]
}
