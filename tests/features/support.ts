// What the feature tests stand on: a virtual clock whose timers fire when a test moves it, processes that
// can crash, freeze or lose parts of their store, and small helpers to wait and to count.
import { createMillrace, memory } from '../../src/index.ts'
import type { AnyJob, Millrace, MillraceOptions } from '../../src/index.ts'
import type { Clock, Timer } from '../../src/runtime/clock.ts'
import type { Backend } from '../../src/store/ports.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import type { Around } from '../../src/store/wrap.ts'

const START_MS = Date.UTC(2030, 0, 1, 12)
const HOPS_MAX = 10_000

interface Waiting {
  readonly atMs: number
  readonly fire: () => void
  cancelled: boolean
}

export class VirtualClock implements Clock {
  #nowMs = START_MS
  #breaths = 0
  /** By time, then by age. */
  readonly #timers: Waiting[] = []

  nowMs(): number {
    return this.#nowMs
  }

  monoMs(): number {
    return this.#nowMs - START_MS
  }

  timer(delayMs: number, fire: () => void): Timer {
    const waiting = { atMs: this.#nowMs + Math.max(delayMs, 0), fire, cancelled: false }
    let [low, high] = [0, this.#timers.length]
    while (low < high) {
      const middle = (low + high) >> 1
      if (this.#timers[middle]!.atMs <= waiting.atMs) low = middle + 1
      else high = middle
    }
    this.#timers.splice(low, 0, waiting)
    return { cancel: () => void (waiting.cancelled = true) }
  }

  breathe(): Promise<void> {
    this.#breaths += 1
    return hop().then(() => void (this.#breaths -= 1))
  }

  /** Everything runs that waits for nothing but its turn. */
  async settle(): Promise<void> {
    await hop()
    for (let hops = 0; this.#breaths > 0 && hops < HOPS_MAX; hops++) await hop()
    await hop()
  }

  /** Time passes, timers fire in order, and what they start gets its turn before the next one fires. */
  async advance(ms: number): Promise<void> {
    const untilMs = this.#nowMs + ms
    await this.settle()
    while (await this.#fireNext(untilMs));
    this.#nowMs = Math.max(this.#nowMs, untilMs)
    await this.settle()
  }

  /** The event loop stood still: time is gone and nothing has fired. */
  jump(ms: number): void {
    this.#nowMs += ms
  }

  /** Until the promise is settled, at most this long. */
  async during<Value>(work: Promise<Value>, limitMs = 3_600_000): Promise<Value> {
    let ended = false
    const end = (): void => void (ended = true)
    work.then(end, end)
    const untilMs = this.#nowMs + limitMs
    await this.settle()
    while (!ended) {
      if (!(await this.#fireNext(untilMs))) throw new Error(`not settled within ${limitMs} ms of virtual time`)
    }
    return work
  }

  /** Until the condition holds, at most this long. Answers how long it took. */
  async until(holds: () => boolean, limitMs = 3_600_000): Promise<number> {
    const startMs = this.#nowMs
    await this.settle()
    while (!holds()) {
      if (!(await this.#fireNext(startMs + limitMs))) throw new Error(`not so within ${limitMs} ms of virtual time`)
    }
    return this.#nowMs - startMs
  }

  async #fireNext(untilMs: number): Promise<boolean> {
    while (this.#timers[0]?.cancelled) this.#timers.shift()
    const next = this.#timers[0]
    if (next === undefined || next.atMs > untilMs) return false
    this.#timers.shift()
    this.#nowMs = Math.max(this.#nowMs, next.atMs)
    next.fire()
    await this.settle()
    return true
  }
}

function hop(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve))
}

/** A process of its own over a shared store: it can crash, be frozen, and lose single store calls. */
export interface Process<Known extends readonly AnyJob[]> {
  readonly mill: Millrace<Known>
  /** Calls to the store, by name. */
  readonly calls: Map<string, number>
  /** Nothing of it ever happens again. */
  crash(): void
  /** SIGSTOP: its timers and store calls wait until `thaw`. */
  freeze(): void
  thaw(): void
}

export type ProcessOptions<Known extends readonly AnyJob[]> = Partial<
  Omit<MillraceOptions<Known>, 'jobs' | 'backend' | 'runtime'>
> & {
  readonly around?: Around
  /** Every wake-up is lost. */
  readonly deaf?: boolean
}

let seeds = 0

export async function startProcess<const Known extends readonly AnyJob[]>(
  clock: Clock,
  backend: Backend,
  jobs: Known,
  { around, deaf = false, ...options }: ProcessOptions<Known> = {},
): Promise<Process<Known>> {
  let state: 'up' | 'frozen' | 'down' = 'up'
  let late: (() => void)[] = []
  const calls = new Map<string, number>()
  const never = new Promise<never>(() => undefined)
  /** Now, after the thaw, or never. */
  const turn = (act: () => void): void => {
    if (state === 'up') act()
    else if (state === 'frozen') late.push(() => turn(act))
  }
  const own: Clock = {
    nowMs: () => clock.nowMs(),
    monoMs: () => clock.monoMs(),
    timer: (delayMs, fire, timerOptions) => clock.timer(delayMs, () => turn(fire), timerOptions),
    breathe: () => (state === 'down' ? never : clock.breathe()),
  }
  const wrapped = wrapBackend(backend, async (what, call) => {
    await new Promise<void>((resolve) => turn(resolve))
    calls.set(what, (calls.get(what) ?? 0) + 1)
    const value = around === undefined ? await call() : await around(what, call)
    await new Promise<void>((resolve) => turn(resolve))
    return value
  })
  const store: Backend = {
    ...wrapped,
    wakeups: {
      listen: (topics, onHint) =>
        backend.wakeups.listen(topics, (topic) => {
          if (!deaf) turn(() => onHint(topic))
        }),
    },
    // Shared with others: it stays open for them.
    stop: () => Promise.resolve(),
  }
  const runtime = { clock: own, random: seeded(++seeds) }
  const create = (all: MillraceOptions<Known>): Promise<Millrace<Known>> => createMillrace(all)
  const mill = await create({ jobs, ...(options.connections === undefined && { backend: store }), runtime, ...options })
  return {
    mill,
    calls,
    crash: () => void (state = 'down'),
    freeze: () => void (state = 'frozen'),
    thaw() {
      state = 'up'
      const waited = late
      late = []
      for (const act of waited) act()
    },
  }
}

/** One process over its own memory store in virtual time. */
export async function setup<const Known extends readonly AnyJob[]>(jobs: Known, options: ProcessOptions<Known> = {}) {
  const clock = new VirtualClock()
  const backend = memory({ clock })
  const process = await startProcess(clock, backend, jobs, options)
  return { clock, backend, ...process }
}

export function seeded(seed: number): () => number {
  let state = Math.imul(seed, 0x9e37_79b9)
  return () => {
    state = (state + 0x6d2b_79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296
  }
}

export interface Gate {
  readonly opened: Promise<void>
  open(): void
}

export function gate(): Gate {
  let open = (): void => undefined
  const opened = new Promise<void>((resolve) => (open = resolve))
  return { opened, open: () => open() }
}

/** How often each key came by. */
export class Tally {
  readonly counts = new Map<string | number, number>()

  add(key: string | number): number {
    const count = (this.counts.get(key) ?? 0) + 1
    this.counts.set(key, count)
    return count
  }

  of(key: string | number): number {
    return this.counts.get(key) ?? 0
  }
}

/** A handler's wait that ends only with its abort, and tells the reason. */
export function aborted(signal: AbortSignal): Promise<unknown> {
  return new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }))
}

export const UNKNOWN_ID = '019f0000-0000-7000-8000-000000000000'
