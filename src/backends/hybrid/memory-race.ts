// The race in memory, for simulation and tests: the rules of race-model.ts, and everything that may befall a Redis. It
// can lose the last calls, all data or one key, come back with an old copy, run out of memory, be another server, or
// answer and refuse to write.
import { MillraceError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/job.ts'
import type { EpochTag, Gated, GateRefusal, Handed, HoldingsRequest, OpenRequest, PushRequest, Race } from './ports.ts'
import type { RaceConfig, TakeRequest, TokenField } from './ports.ts'
import * as model from './race-model.ts'
import type { RaceHands, RaceQueue, RaceServer, RaceState } from './race-model.ts'

export interface MemoryRaceOptions {
  /** Of the server it begins as. */
  readonly identity?: string
}

/** Everything that it keeps. */
export interface RaceSnapshot {
  readonly queues: ReadonlyMap<string, RaceQueue>
  /** Of each session the claim that stands. */
  readonly standing: ReadonlyMap<string, number>
}

interface Kept {
  readonly queues: Map<string, RaceQueue>
  readonly standing: Map<string, number>
}

export type RacePart = 'state' | 'high' | 'normal' | 'low' | 'held'

/** A call that was made, so that it can be made again on an older copy. */
type Op = (kept: Kept) => unknown

type Apply<Value> = (own: RaceQueue, state: RaceState, server: RaceServer, hands: RaceHands) => Value | 'torn'

/** So many of the last calls can always be lost. */
const JOURNAL_MIN = 64
const LANE_OF = { high: 0, normal: 1, low: 2 } as const

export class MemoryRace implements Race {
  #kept: Kept = nothing()
  /** What it had before the first call of the journal. */
  #base: Kept = nothing()
  #journal: Op[] = []
  #server: RaceServer
  #births = 0
  #refusesWrites = false
  readonly #listeners = new Set<(queue: string) => void>()
  readonly #ears = new Map<WorkerId, (handed: Handed) => void>()

  constructor({ identity = 'memory-1' }: MemoryRaceOptions = {}) {
    this.#server = { identity, isFull: false }
  }

  // ---- what befalls it

  /** Another server from now on, with these data: a restart, a failover. '-': one that does not say who it is. */
  become(identity: string): void {
    this.#server = { ...this.#server, identity }
  }

  setFull(isFull: boolean): void {
    this.#server = { ...this.#server, isFull }
  }

  /** It answers and reads, as a server with a full disk, or a replica. */
  refuseWrites(refusesWrites: boolean): void {
    this.#refusesWrites = refusesWrites
  }

  /** FLUSHALL. */
  flush(): void {
    this.restore(nothing())
  }

  snapshot(): RaceSnapshot {
    return copyOf(this.#kept)
  }

  restore(copy: RaceSnapshot): void {
    this.#kept = copyOf(copy)
    this.#base = copyOf(copy)
    this.#journal = []
  }

  /** As if the last calls had never been made; answers how many it could forget. */
  loseSuffix(calls: number): number {
    const lost = Math.min(calls, this.#journal.length)
    this.#journal.length -= lost
    this.#kept = copyOf(this.#base)
    for (const op of this.#journal) op(this.#kept)
    return lost
  }

  /** Eviction, or a hand that deletes one key. */
  evict(queue: string, part: RacePart): void {
    this.#call(queue, (own) => {
      if (part === 'state') own.state = null
      else if (part === 'held') own.held.clear()
      else own.lanes[LANE_OF[part]] = []
    })
  }

  /** For invariants; not to be changed. */
  inspect(queue: string): RaceQueue {
    return queueOf(this.#kept.queues, queue)
  }

  get queueNames(): readonly string[] {
    return [...this.#kept.queues.keys()]
  }

  // ---- the port

  async identity(_queue: string) {
    return this.#server.identity
  }

  async probe(queue: string, tag: EpochTag | null) {
    this.#mayWrite()
    if (this.#server.isFull) {
      // What is left of an epoch that is over makes room.
      if (tag === null) this.#call(queue, (own) => void Object.assign(own, model.emptyQueue()))
      throw new MillraceError('STORE_UNAVAILABLE', 'OOM the memory is full', { retryable: true })
    }
    const refused = tag === null ? null : model.refusalOf(this.inspect(queue), this.#server, tag)
    return { redisId: refused?.redisId ?? this.#server.identity, refused }
  }

  async open(queue: string, request: OpenRequest) {
    this.#mayWrite()
    const server = this.#server
    const birth = String(++this.#births)
    return this.#call(queue, (own) => model.open(own, server, request, birth))
  }

  async push(queue: string, tag: EpochTag, request: PushRequest) {
    const writes = request.tokens.length > 0 || request.backlog !== null
    const apply: Apply<model.PushDone> = (own, state, server, hands) => model.push(own, state, server, request, hands)
    const { refused, value } = this.#gated(queue, tag, apply, writes)
    if (refused !== null) return { refused, value }
    if (value.rings) this.#ring(queue)
    if (value.handed !== null) {
      const { session, ...handed } = value.handed
      this.#ears.get(session)?.({ queue, ...handed })
    }
    return { refused, value: value.reply }
  }

  async take(queue: string, tag: EpochTag, request: TakeRequest) {
    return this.#gated(queue, tag, (own, state, _server, hands) => model.take(own, state, request, hands))
  }

  async holdings(queue: string, tag: EpochTag, request: HoldingsRequest) {
    return this.#gated(queue, tag, (own, state) => model.holdings(own, state, request))
  }

  async drop(queue: string, tag: EpochTag, session: WorkerId, fields: readonly TokenField[], last: boolean) {
    return this.#gated(queue, tag, (own, state) => model.drop(own, state, session, fields, last))
  }

  async revoke(queue: string, tag: EpochTag, fields: readonly TokenField[]) {
    return this.#gated(queue, tag, (own, state) => model.revoke(own, state, fields))
  }

  async audit(queue: string, tag: EpochTag, below: number, fields: readonly TokenField[]) {
    return this.#gated(queue, tag, (own, state) => model.audit(own, state, below, fields), below > 0)
  }

  async config(queue: string, tag: EpochTag, config: RaceConfig) {
    const { refused, value } = this.#gated(queue, tag, (_own, state) => model.configure(state, config))
    if (refused !== null) return { refused, value }
    if (value) this.#ring(queue)
    return { refused, value: null }
  }

  async memory() {
    return this.#server.isFull ? { used: 1, max: 1 } : { used: 0, max: 0 }
  }

  listen(onBell: (queue: string) => void) {
    this.#listeners.add(onBell)
    return () => {
      this.#listeners.delete(onBell)
    }
  }

  async hear(session: WorkerId, onHanded: (handed: Handed) => void) {
    this.#ears.set(session, onHanded)
    return () => {
      if (this.#ears.get(session) === onHanded) this.#ears.delete(session)
    }
  }

  async start() {}

  async stop() {}

  // ---- inside

  #mayWrite(): void {
    if (!this.#refusesWrites) return
    throw new MillraceError('STORE_UNAVAILABLE', 'MISCONF Redis is configured to save, but cannot', { retryable: true })
  }

  #ring(queue: string): void {
    for (const listener of this.#listeners) listener(queue)
  }

  #gated<Value>(queue: string, tag: EpochTag, apply: Apply<Value>, writes = true): Gated<Value> {
    const server = this.#server
    if (writes && model.refusalOf(this.inspect(queue), server, tag) === null) this.#mayWrite()
    const heard = new Set(this.#ears.keys())
    const hears = (session: WorkerId): boolean => heard.has(session)
    return this.#call(queue, (own, { standing }): Gated<Value> => {
      const refused = model.refusalOf(own, server, tag)
      if (refused !== null) return { refused, value: null }
      const value = apply(own, own.state!, server, { standing, hears })
      return value === 'torn' ? { refused: torn(own), value: null } : { refused: null, value }
    })
  }

  #call<Value>(queue: string, apply: (own: RaceQueue, kept: Kept) => Value): Value {
    const op = (kept: Kept): Value => apply(queueOf(kept.queues, queue), kept)
    this.#journal.push(op)
    if (this.#journal.length >= 2 * JOURNAL_MIN) {
      for (const old of this.#journal.splice(0, JOURNAL_MIN)) old(this.#base)
    }
    return op(this.#kept)
  }
}

function torn({ state }: RaceQueue): GateRefusal {
  return { why: 'TORN', redisId: state!.identity, epoch: state!.tag }
}

function queueOf(queues: Map<string, RaceQueue>, name: string): RaceQueue {
  let queue = queues.get(name)
  if (queue === undefined) queues.set(name, (queue = model.emptyQueue()))
  return queue
}

function nothing(): Kept {
  return { queues: new Map(), standing: new Map() }
}

function copyOf({ queues, standing }: RaceSnapshot): Kept {
  const copies = [...queues].map(([name, queue]) => [name, model.cloneQueue(queue)] as const)
  return { queues: new Map(copies), standing: new Map(standing) }
}
