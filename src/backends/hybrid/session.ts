// One life of a worker as the claiming side sees it: what it has in flight, and per queue how many takes it has numbered,
// which finished tokens Redis has not been told of, and whether a take may have brought something nobody knows of.
import type { LeaseRef, WorkerId } from '../../core/job.ts'
import { isPlanted } from '../../core/planted.ts'
import type { NewWorker } from '../../store/worker-store.ts'
import { Doubt } from './doubt.ts'
import { Hands } from './hands.ts'
import { InFlight, createInFlight } from './in-flight.ts'
import type { Flight } from './in-flight.ts'
import type { Keeper } from './keeper.ts'
import type { TokenField } from './ports.ts'

/** More would not fit into the next takes; the rest is forgotten by the next epoch or found by the reaper. */
const DONE_MAX = 100_000

export class SessionQueue {
  readonly name: string
  readonly index: number
  /** Number of the last take. */
  c = 0
  taking = 0
  readonly hands = new Hands()
  /** Of the take after which a claim had no room to ask here again: what became of it no take tells soon. */
  passedByC = -1
  /** A take had an unknown outcome, or a token was not started: look before the next take. */
  isSuspect = false
  checking: Promise<void> | undefined
  #done: TokenField[] = []
  /** There were more than DONE_MAX. */
  #hasForgotten = false
  #epoch = 0

  constructor(name: string, index: number) {
    this.name = name
    this.index = index
  }

  get doneCount(): number {
    return this.#done.length
  }

  finish(field: TokenField): void {
    if (this.#done.length < DONE_MAX) this.#done.push(field)
    else this.#hasForgotten = true
  }

  /**
   * Everything that Redis says this session holds is in flight or done: no take of unknown outcome, none that a push may have
   * answered unheard, nothing forgotten.
   */
  get isKnown(): boolean {
    const isSure = !this.isSuspect && this.taking === 0 && this.checking === undefined
    return isSure && this.hands.isKnown && !this.#hasForgotten
  }

  /** Something may wait here that the next take would find, and there may be none for long. */
  get mustLook(): boolean {
    return this.isSuspect || (this.passedByC === this.c && !this.hands.isKnown)
  }

  /** Carried by the next take; back with `keepDone` unless that was answered. */
  takeDone(most: number): readonly TokenField[] {
    if (this.#done.length <= most) {
      const all = this.#done
      this.#done = []
      return all
    }
    return this.#done.splice(0, most)
  }

  keepDone(fields: readonly TokenField[]): void {
    if (fields.length > 0) this.#done.unshift(...fields)
  }

  /** Those of them whose end Redis has yet to be told of are left out. */
  notDone(fields: readonly TokenField[]): readonly TokenField[] {
    const done = new Set(this.#done)
    return fields.filter((field) => !done.has(field))
  }

  /** Tokens of an epoch that is over: nobody asks for them any more. True when it is another. */
  changedTo(epoch: number): boolean {
    if (epoch === this.#epoch) return false
    this.#epoch = epoch
    this.#done = []
    this.#hasForgotten = false
    this.isSuspect = false
    this.hands.forget()
    return true
  }
}

export interface SessionOptions {
  readonly worker: NewWorker
  readonly times: {
    readonly monoMs: () => number
    /** How long a statement of the ledger may go on after its answer was given up. */
    readonly lateMs: number
  }
  readonly keeperOf: (inFlight: InFlight) => Keeper
}

export class Session {
  readonly worker: WorkerId
  readonly inFlight: InFlight
  readonly queues: ReadonlyMap<string, SessionQueue>
  /** Beats on the main loop; the thread has one of its own. */
  readonly keeper: Keeper
  lastClaimNo = 0
  /** Of the last claim that a push has answered, as far as it is known. */
  answeredNo = 0
  /** Of the last claim whose hand-over was heard. */
  heardNo = 0
  /** A claim may stand in Redis. */
  mayStand = false
  /** Claims up to this number hand out nothing any more. */
  fencedClaimNo = 0
  /** Claims that may be handed something, each until it is over. */
  readonly claiming = new Set<Promise<unknown>>()
  /** The look of a doubtful session: no claim goes by it. */
  checking: Promise<void> | undefined
  /** Beats come from the thread: this keeper here only took the first one. */
  isThreaded = false
  /** Its life is over; it stays until nothing of it is in flight. */
  isOver = false
  #reserved = 0
  readonly #doubt: Doubt
  readonly #monoMs: () => number

  constructor({ worker, times, keeperOf }: SessionOptions) {
    const { id, queues, concurrency } = worker
    this.worker = id
    this.#monoMs = times.monoMs
    this.#doubt = new Doubt(times.lateMs)
    const names = [...new Set(queues)]
    this.inFlight = new InFlight(createInFlight(names, concurrency))
    this.queues = new Map(names.map((name, index) => [name, new SessionQueue(name, index)]))
    this.keeper = keeperOf(this.inFlight)
  }

  /** Its run is over, as far as the ledger is concerned. Undefined: it was not in flight here. */
  settled({ lease }: Pick<LeaseRef, 'lease'>): Flight | undefined {
    const flight = this.inFlight.remove(lease)
    if (flight === undefined) return undefined
    for (const queue of this.queues.values()) {
      if (queue.index !== flight.queueIndex) continue
      queue.finish(flight.field)
      break
    }
    return flight
  }

  /** How many more jobs can be in flight, with those that claims under way may bring. */
  get room(): number {
    return this.inFlight.free - this.#reserved
  }

  /** For the time of a call that may bring so many. What it brings is put into the table in the turn it is answered. */
  async reserving<Reply>(places: number, call: () => Promise<Reply>): Promise<Reply> {
    this.#reserved += places
    try {
      return await call()
    } finally {
      this.#reserved -= places
    }
  }

  /** Its life is over: nothing starts any more. */
  end(): void {
    this.isOver = true
    this.keeper.stop()
  }

  refs(): readonly LeaseRef[] {
    return [...this.inFlight.flights()].map(({ jobId, lease }) => ({ jobId, lease }))
  }

  suspect(queue: SessionQueue): void {
    if (isPlanted('hybrid-no-self-check')) return
    queue.isSuspect = true
    this.doubt()
  }

  /** Something that is or may yet be marked as run by this session was not handed out. */
  doubt(): void {
    this.#doubt.raise(this.#monoMs())
  }

  get isDoubtful(): boolean {
    return this.#doubt.isDue(this.#monoMs())
  }

  /** The look that began then is over. */
  looked(beganMs: number): void {
    this.#doubt.looked(beganMs)
  }
}

/** Those of this process. */
export class Sessions {
  readonly #all = new Map<WorkerId, Session>()

  add(session: Session): void {
    for (const [id, { isOver, inFlight }] of this.#all) if (isOver && inFlight.size === 0) this.#all.delete(id)
    this.#all.set(session.worker, session)
  }

  get(worker: WorkerId): Session | undefined {
    return this.#all.get(worker)
  }

  delete(worker: WorkerId): void {
    this.#all.delete(worker)
  }

  all(): Iterable<Session> {
    return this.#all.values()
  }

  get size(): number {
    return this.#all.size
  }

  /** Who runs it here. */
  holding({ lease }: Pick<LeaseRef, 'lease'>): Session | null {
    for (const session of this.#all.values()) if (session.inFlight.has(lease)) return session
    return null
  }

  /** The queues that are worked on here. */
  served(): ReadonlySet<string> {
    const names = new Set<string>()
    for (const { queues } of this.#all.values()) for (const name of queues.keys()) names.add(name)
    return names
  }
}
