// The race in memory, for simulation and tests: the rules of race-model.ts, and everything that may befall a Redis. It
// can lose the last calls, all data or one key, come back with an old copy, run out of memory, be another server, or
// answer and refuse to write.
import { MillraceError } from '../../core/errors.ts'
import type { WorkerId } from '../../core/job.ts'
import type { EpochTag, Gated, GateRefusal, HoldingsRequest, OpenRequest, PushRequest, Race } from './ports.ts'
import type { RaceConfig, TakeRequest, TokenField } from './ports.ts'
import * as model from './race-model.ts'
import type { RaceQueue, RaceServer, RaceState } from './race-model.ts'

export interface MemoryRaceOptions {
  /** Of the server it begins as. */
  readonly identity?: string
}

export interface RaceSnapshot {
  readonly queues: ReadonlyMap<string, RaceQueue>
}

export type RacePart = 'state' | 'high' | 'normal' | 'low' | 'held'

/** A call that was made, so that it can be made again on an older copy. */
type Op = (queues: Map<string, RaceQueue>) => unknown

type Apply<Value> = (own: RaceQueue, state: RaceState, server: RaceServer) => Value | 'torn'

/** So many of the last calls can always be lost. */
const JOURNAL_MIN = 64
const LANE_OF = { high: 0, normal: 1, low: 2 } as const

export class MemoryRace implements Race {
  #queues = new Map<string, RaceQueue>()
  /** The queues before the first call of the journal. */
  #base = new Map<string, RaceQueue>()
  #journal: Op[] = []
  #server: RaceServer
  #births = 0
  #refusesWrites = false
  readonly #listeners = new Set<(queue: string) => void>()

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
    this.restore({ queues: new Map() })
  }

  snapshot(): RaceSnapshot {
    return { queues: cloneAll(this.#queues) }
  }

  restore({ queues }: RaceSnapshot): void {
    this.#queues = cloneAll(queues)
    this.#base = cloneAll(queues)
    this.#journal = []
  }

  /** As if the last calls had never been made; answers how many it could forget. */
  loseSuffix(calls: number): number {
    const lost = Math.min(calls, this.#journal.length)
    this.#journal.length -= lost
    this.#queues = cloneAll(this.#base)
    for (const op of this.#journal) op(this.#queues)
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
    return queueOf(this.#queues, queue)
  }

  get queueNames(): readonly string[] {
    return [...this.#queues.keys()]
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
    const apply: Apply<model.PushDone> = (own, state, server) => model.push(own, state, server, request)
    const { refused, value } = this.#gated(queue, tag, apply, writes)
    if (refused !== null) return { refused, value }
    if (value.rings) this.#ring(queue)
    return { refused, value: value.reply }
  }

  async take(queue: string, tag: EpochTag, request: TakeRequest) {
    return this.#gated(queue, tag, (own, state) => model.take(own, state, request))
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
    return this.#call(queue, (own): Gated<Value> => {
      const refused = model.refusalOf(own, server, tag)
      if (refused !== null) return { refused, value: null }
      const value = apply(own, own.state!, server)
      return value === 'torn' ? { refused: torn(own), value: null } : { refused: null, value }
    })
  }

  #call<Value>(queue: string, apply: (own: RaceQueue) => Value): Value {
    const op = (queues: Map<string, RaceQueue>): Value => apply(queueOf(queues, queue))
    this.#journal.push(op)
    if (this.#journal.length >= 2 * JOURNAL_MIN) {
      for (const old of this.#journal.splice(0, JOURNAL_MIN)) old(this.#base)
    }
    return op(this.#queues)
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

function cloneAll(queues: ReadonlyMap<string, RaceQueue>): Map<string, RaceQueue> {
  return new Map([...queues].map(([name, queue]) => [name, model.cloneQueue(queue)]))
}
