// What one session has in flight, in memory that its heartbeat thread shares: fixed slots with id, lease and since when, and
// the start gate. The worker writes a slot and then reads the gate; the keeper closes the gate and then reads the slots.
// Both with atomics, so at least one of the two sees the other: a token is either marked by an adoption or not started.
//
// The gate is open while its generation is even; with it goes the epoch adopted per queue. Of that there are two copies, which
// generations use in turn: whoever opens an outdated generation writes where nobody reads. A slot is in use while its version
// is odd.
import type { JobId, LeaseNumber, LeaseRef } from '../../core/job.ts'
import type { InFlightRef } from './ports.ts'

const HEADER_WORDS = 4
const GATE = 0
const USED_UP_TO = 1
const COUNT = 2
const ID_CHARS = 36
const COPIES = 2

/** Room for two full claims and for what has ended without an answer, beside what runs. */
const SPARE_SLOTS = 4_096

interface Parts {
  readonly queues: readonly string[]
  readonly capacity: number
  readonly header: Int32Array
  readonly failing: Int32Array
  readonly versions: Int32Array
  /** Of the ledger, when it was adopted last. */
  readonly counters: Float64Array
  readonly adopted: Float64Array
  readonly leases: Float64Array
  readonly sinces: Float64Array
  readonly ids: Buffer
}

/** What a thread needs to look into the same memory. */
export interface SharedInFlight {
  readonly memory: SharedArrayBuffer
  readonly queues: readonly string[]
  readonly capacity: number
}

export function createInFlight(queues: readonly string[], concurrency: number): SharedInFlight {
  const capacity = SPARE_SLOTS + concurrency * 2
  const shared = { memory: new SharedArrayBuffer(bytesOf(queues.length, capacity)), queues, capacity }
  // Closed until the first adoption: a session is born with nothing adopted.
  partsOf(shared).header[GATE] = 1
  return shared
}

function bytesOf(queues: number, capacity: number): number {
  return 8 * (COPIES * (1 + queues) + 2 * capacity) + 4 * (HEADER_WORDS + queues + capacity) + ID_CHARS * capacity
}

function partsOf({ memory, queues, capacity }: SharedInFlight): Parts {
  let at = 0
  const floats = (length: number): Float64Array => {
    const part = new Float64Array(memory, at, length)
    at += 8 * length
    return part
  }
  const words = (length: number): Int32Array => {
    const part = new Int32Array(memory, at, length)
    at += 4 * length
    return part
  }
  return {
    queues,
    capacity,
    counters: floats(COPIES),
    adopted: floats(COPIES * queues.length),
    leases: floats(capacity),
    sinces: floats(capacity),
    header: words(HEADER_WORDS),
    failing: words(queues.length),
    versions: words(capacity),
    ids: Buffer.from(memory, at, ID_CHARS * capacity),
  }
}

/** Which copy belongs to a generation in which the gate is open. */
function copyOf(generation: number): number {
  return (generation >> 1) % COPIES
}

export interface Flight {
  readonly jobId: JobId
  readonly lease: LeaseNumber
  /** Position in the queues of the session. */
  readonly queueIndex: number
  readonly field: string
  /** For the live status alone. */
  readonly queue: string
  readonly attemptCount: number
  readonly crashCount: number
}

/** The side of the worker. */
export class InFlight {
  readonly shared: SharedInFlight
  readonly #parts: Parts
  readonly #free: Int32Array
  #freeCount: number
  readonly #slots = new Map<number, number>()
  readonly #flights: (Flight | undefined)[] = []

  constructor(shared: SharedInFlight) {
    this.shared = shared
    this.#parts = partsOf(shared)
    const { capacity } = shared
    // The lowest slot first, so that the part in use stays small.
    this.#free = Int32Array.from({ length: capacity }, (_, index) => capacity - 1 - index)
    this.#freeCount = capacity
  }

  get free(): number {
    return this.#freeCount
  }

  get size(): number {
    return this.#slots.size
  }

  has(lease: number): boolean {
    return this.#slots.has(lease)
  }

  add(flight: Flight, sinceMs: number): void {
    const { header, versions, leases, sinces, ids } = this.#parts
    if (this.#freeCount === 0)
      throw new Error(`more than ${this.#parts.capacity} jobs in flight: claims asked for more than was free`)
    const slot = this.#free[--this.#freeCount]!
    ids.write(flight.jobId, slot * ID_CHARS, ID_CHARS, 'latin1')
    leases[slot] = flight.lease
    sinces[slot] = sinceMs
    this.#flights[slot] = flight
    this.#slots.set(flight.lease, slot)
    if (slot >= header[USED_UP_TO]!) Atomics.store(header, USED_UP_TO, slot + 1)
    Atomics.add(header, COUNT, 1)
    Atomics.add(versions, slot, 1)
  }

  /** Settled, given back or lost. Undefined: it is not in flight here. */
  remove(lease: number): Flight | undefined {
    const slot = this.#slots.get(lease)
    if (slot === undefined) return undefined
    const { header, versions } = this.#parts
    this.#slots.delete(lease)
    Atomics.add(versions, slot, 1)
    Atomics.sub(header, COUNT, 1)
    this.#free[this.#freeCount++] = slot
    const flight = this.#flights[slot]
    this.#flights[slot] = undefined
    return flight
  }

  *flights(): Iterable<Flight> {
    for (const slot of this.#slots.values()) yield this.#flights[slot]!
  }

  /** 0 where it is not in flight. */
  ageMs(lease: number, nowMs: number): number {
    const slot = this.#slots.get(lease)
    return slot === undefined ? 0 : Math.max(nowMs - this.#parts.sinces[slot]!, 0)
  }

  /** Those in flight for at least `minMs`, and for how long. */
  *olderThan(minMs: number, nowMs: number): Iterable<{ readonly flight: Flight; readonly ageMs: number }> {
    for (const slot of this.#slots.values()) {
      const ageMs = nowMs - this.#parts.sinces[slot]!
      if (ageMs >= minMs) yield { flight: this.#flights[slot]!, ageMs }
    }
  }

  /** The start gate: whether a token of this epoch may be started by this session. Read after `add`. */
  mayStart(queueIndex: number, epoch: number): boolean {
    const { header, adopted, queues } = this.#parts
    const generation = Atomics.load(header, GATE)
    if (generation % 2 !== 0) return false
    const isAdopted = adopted[copyOf(generation) * queues.length + queueIndex] === epoch
    return isAdopted && Atomics.load(header, GATE) === generation
  }

  get isOpen(): boolean {
    return Atomics.load(this.#parts.header, GATE) % 2 === 0
  }

  /** Answers whether that is new. */
  setFailing(queueIndex: number, isFailing: boolean): boolean {
    const value = isFailing ? 1 : 0
    return Atomics.exchange(this.#parts.failing, queueIndex, value) !== value
  }
}

/** The side of the keeper, in its thread or beside the worker. */
export class InFlightView {
  readonly queues: readonly string[]
  readonly #parts: Parts
  /** The lease that is known to be marked, per slot. */
  readonly #marked: Float64Array

  constructor(shared: SharedInFlight) {
    this.queues = shared.queues
    this.#parts = partsOf(shared)
    this.#marked = new Float64Array(shared.capacity)
  }

  get size(): number {
    return Atomics.load(this.#parts.header, COUNT)
  }

  /** The latest that the gate was opened for. */
  get adoptedCounter(): number {
    return Math.max(...this.#parts.counters)
  }

  /** The gate is open, for this state of the ledger and these epochs, by position of the queue. */
  isOpenFor(counter: number, epochs: readonly number[]): boolean {
    const { header, adopted, counters } = this.#parts
    const generation = Atomics.load(header, GATE)
    if (generation % 2 !== 0) return false
    const copy = copyOf(generation)
    const at = copy * epochs.length
    const isSame = counters[copy] === counter && epochs.every((epoch, index) => adopted[at + index] === epoch)
    return isSame && Atomics.load(header, GATE) === generation
  }

  failing(): readonly string[] {
    return this.queues.filter((_, index) => Atomics.load(this.#parts.failing, index) === 1)
  }

  /** Shuts the gate; answers the generation to open it with, unless somebody shuts it again meanwhile. */
  close(): number {
    const { header } = this.#parts
    for (;;) {
      const generation = Atomics.load(header, GATE)
      const shut = generation + (generation % 2 === 0 ? 1 : 2)
      if (Atomics.compareExchange(header, GATE, generation, shut) === generation) return shut
    }
  }

  /**
   * Opens the gate for these epochs, by position of the queue. False: somebody has shut it again, or has adopted a later
   * state of the ledger, which an older one must not replace.
   */
  open(generation: number, counter: number, epochs: readonly number[]): boolean {
    const { header, adopted, counters } = this.#parts
    if (Atomics.load(header, GATE) !== generation || this.adoptedCounter > counter) return false
    const copy = copyOf(generation + 1)
    counters[copy] = counter
    for (const [index, epoch] of epochs.entries()) adopted[copy * epochs.length + index] = epoch
    return Atomics.compareExchange(header, GATE, generation, generation + 1) === generation
  }

  list(nowMs: number): readonly InFlightRef[] {
    return this.#collect(nowMs, -Infinity, false)
  }

  /** Those in flight for at least `minMs` that are not known to be marked; at most `most`. */
  unmarked(nowMs: number, minMs: number, most: number): readonly InFlightRef[] {
    return this.#collect(nowMs, minMs, true).slice(0, most)
  }

  noteMarked(refs: readonly LeaseRef[]): void {
    const leases = new Set<number>(refs.map(({ lease }) => lease))
    const { header } = this.#parts
    const end = Atomics.load(header, USED_UP_TO)
    for (let slot = 0; slot < end; slot++) {
      const lease = this.#parts.leases[slot]!
      if (leases.has(lease)) this.#marked[slot] = lease
    }
  }

  #collect(nowMs: number, minMs: number, unmarkedOnly: boolean): InFlightRef[] {
    const { header, versions, leases, sinces, ids } = this.#parts
    const end = Atomics.load(header, USED_UP_TO)
    const found: InFlightRef[] = []
    for (let slot = 0; slot < end; slot++) {
      const version = Atomics.load(versions, slot)
      if (version % 2 === 0) continue
      const ageMs = nowMs - sinces[slot]!
      const lease = leases[slot] as LeaseNumber // written by `add`
      if (ageMs < minMs || (unmarkedOnly && this.#marked[slot] === lease)) continue
      const jobId = ids.toString('latin1', slot * ID_CHARS, (slot + 1) * ID_CHARS) as JobId // written by `add`
      // Changed while it was read: it was given up, or came after the gate was closed.
      if (Atomics.load(versions, slot) === version) found.push({ jobId, lease, ageMs: Math.max(ageMs, 0) })
    }
    return found
  }
}
