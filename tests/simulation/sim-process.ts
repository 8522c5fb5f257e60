// A process in the simulation: its own clock, randomness, ids and way to the store. Crashing it drops every
// timer and every reply on the way to it; pausing it holds them back, as SIGSTOP does.
import { MillraceError } from '../../src/core/errors.ts'
import type { WorkerId } from '../../src/core/job.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Failpoint } from '../../src/runtime/failpoints.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { createIdSource } from '../../src/runtime/runtime.ts'
import type { Runtime } from '../../src/runtime/runtime.ts'
import type { HandOver, HandOvers } from '../../src/store/hand-overs.ts'
import type { Backend } from '../../src/store/ports.ts'
import { wrapBackend } from '../../src/store/wrap.ts'
import type { CallOdds, Faults, Leg } from './faults.ts'
import type { Random } from './random.ts'
import type { Trace } from './trace.ts'
import type { VirtualTime } from './virtual-time.ts'

export interface SimWorld {
  readonly time: VirtualTime
  readonly faults: Faults
  readonly trace: Trace
  readonly failpointsHit: Map<Failpoint, number>
  readonly oddsOf: (call: string) => CallOdds
  /** Crashes at failpoints are so many times as frequent as usual. */
  readonly crashes: number
  /** The store refuses connections until then. */
  outageUntilMs: number
  /** When the last beat was begun whose good answer the worker has. */
  readonly goodBeats: Map<WorkerId, number>
  /** Redis, where there is one. */
  redisOutageUntilMs: number
}

/** How often a process dies at a point: those on the hot path come by all the time, others hardly ever. */
const CRASH_PROBABILITY: Readonly<Record<Failpoint, number>> = {
  'enqueue.before-insert': 0.02,
  'enqueue.after-insert': 0.02,
  'pump.before-call': 0.002,
  'pump.after-claim': 0.002,
  'worker.handler-ended': 0.002,
  'rate.after-take': 0.03,
  'promoter.after-pass': 0.02,
  'rescuer.before-declare': 0.02,
  'rescuer.before-apply': 0.15,
  'scheduler.before-fire': 0.1,
  'hybrid.after-mint': 0.02,
  'hybrid.before-push': 0.02,
  'hybrid.before-take': 0.002,
  'hybrid.after-take': 0.002,
  'hybrid.after-settle': 0.002,
  'hybrid.before-give-back': 0.3,
  'hybrid.after-flip': 0.1,
  'hybrid.after-open': 0.1,
  'hybrid.relay-minted': 0.01,
  'hybrid.reconciled': 0.02,
  'hybrid.bequeathed': 0.3,
  'hybrid.after-revoke': 0.15,
}

export class SimProcess {
  readonly name: string
  readonly runtime: Runtime
  readonly #world: SimWorld
  readonly #random: Random
  readonly #skewMs: number
  #alive = true
  #pausedUntilMs = 0
  #cutOffUntilMs = 0
  readonly #onCrash: () => void

  constructor(name: string, world: SimWorld, random: Random, onCrash: () => void) {
    this.name = name
    this.#world = world
    this.#random = random
    this.#onCrash = onCrash
    const skewed = world.faults.strikes('skewed-clock', 0.5)
    this.#skewMs = skewed ? random.int(-3_600_000, 3_600_000) : 0
    const clock = this.#clock()
    this.runtime = {
      clock,
      random: () => random.next(),
      newId: createIdSource(clock, () => random.next()),
      logger: silentLogger,
      failpoint: (point) => this.#failpoint(point),
    }
  }

  get alive(): boolean {
    return this.#alive
  }

  crash(): void {
    if (!this.#alive) return
    this.#alive = false
    this.#world.trace.add(this.#world.time.nowMs, this.name, 'crashes')
    this.#onCrash()
  }

  pause(forMs: number): void {
    this.#pausedUntilMs = this.#world.time.nowMs + forMs
    this.#world.trace.add(this.#world.time.nowMs, this.name, 'is paused')
  }

  /** Neither requests nor replies get through. */
  cutOff(forMs: number): void {
    this.#cutOffUntilMs = this.#world.time.nowMs + forMs
    this.#world.trace.add(this.#world.time.nowMs, this.name, 'is cut off')
  }

  heal(): void {
    this.#pausedUntilMs = 0
    this.#cutOffUntilMs = 0
  }

  /** Something reaches this process: now, when its pause ends, or never. */
  enter(fire: () => void): void {
    if (!this.#alive) return
    const { time } = this.#world
    if (time.nowMs < this.#pausedUntilMs) time.at(this.#pausedUntilMs - time.nowMs, () => this.enter(fire))
    else fire()
  }

  /** The store as this process reaches it: over a network that loses, delays and doubles. */
  reach(store: Backend): Backend {
    const networked = wrapBackend(store, (what, call) => this.#call(what, call, () => this.#world.outageUntilMs))
    return {
      ...this.watchBeats(networked),
      // The store outlives the processes that talk to it.
      start: () => Promise.resolve(),
      stop: () => Promise.resolve(),
      ...(store.handOvers !== undefined && { handOvers: this.#reachHandOvers(store.handOvers) }),
      wakeups: {
        listen: (topics, onHint) => store.wakeups.listen(topics, (topic) => this.hint(() => onHint(topic))),
      },
    }
  }

  #reachHandOvers(handOvers: HandOvers): HandOvers {
    return {
      listen: (worker, onHandOver, onBack) =>
        handOvers.listen(
          worker,
          this.messages<HandOver>(onHandOver, () => onBack('connected')),
          onBack,
        ),
    }
  }

  /** Messages to this process are lost as often as hints, travel as replies do, and may come twice. */
  messages<Message>(onMessage: (message: Message) => unknown, onBack: () => void): (message: Message) => undefined {
    const { faults, oddsOf } = this.#world
    return (message) => {
      if (faults.strikes('hint-lost', 0.2)) {
        // Some are lost with the connection, and it is known when that is new.
        if (this.#random.chance(0.1)) this.#world.time.at(this.#random.next() * 2_000, () => this.enter(onBack))
        return undefined
      }
      const odds = oddsOf('handOvers.listen')
      const again = faults.strikes('request-doubled', odds.doubled)
      for (let copy = 0; copy <= Number(again); copy++) this.#travel(faults.reply(odds), () => void onMessage(message))
      return undefined
    }
  }

  /** Notes which beats were good, as this process sees them. */
  watchBeats(backend: Backend): Backend {
    const beat: Backend['workers']['beat'] = async (request) => {
      const startedMs = this.#world.time.nowMs
      const reply = await backend.workers.beat(request)
      const lastMs = this.#world.goodBeats.get(request.id) ?? -Infinity
      if (reply.alive) this.#world.goodBeats.set(request.id, Math.max(startedMs, lastMs))
      return reply
    }
    return { ...backend, workers: { ...backend.workers, beat } }
  }

  /** A port of plain methods over the same network; `isRedis`: it ends at Redis. */
  reachPort<Port extends object>(name: string, port: Port, isRedis: boolean): Port {
    const downUntilMs = (): number => (isRedis ? this.#world.redisOutageUntilMs : this.#world.outageUntilMs)
    const methods = methodsOf(port).map((method) => {
      const call = (port as Record<string, (...args: readonly unknown[]) => Promise<unknown>>)[method]!.bind(port)
      return [
        method,
        (...args: readonly unknown[]) => this.#call(`${name}.${method}`, () => call(...args), downUntilMs),
      ]
    })
    // The same methods with the same types; only the way there is longer.
    return Object.fromEntries(methods) as Port
  }

  /** A hint on its way to this process. */
  hint(fire: () => void): void {
    if (this.#world.faults.strikes('hint-lost', 0.2)) return
    this.#world.time.at(this.#random.next() * 2, () => this.enter(fire))
  }

  #call<Value>(what: string, call: () => Promise<Value>, downUntilMs: () => number): Promise<Value> {
    const { time, faults, trace } = this.#world
    const odds = this.#world.oddsOf(what)
    return new Promise((resolve, reject) => {
      if (!this.#alive) return
      const request = faults.request(odds)
      const deliver = (copy: number): void => {
        if (this.#isCutOff()) return
        if (time.nowMs < downUntilMs()) {
          const down = new MillraceError('STORE_UNAVAILABLE', 'connection refused', { retryable: true })
          this.#travel(faults.reply(odds), () => reject(down))
          return
        }
        trace.add(time.nowMs, this.name, what, copy)
        call().then(
          (value) => this.#travel(faults.reply(odds), () => resolve(value)),
          (error: unknown) => this.#travel(faults.reply(odds), () => reject(error as Error)),
        )
      }
      if (!request.lost) time.at(request.delayMs, () => deliver(1))
      if (request.doubledAfterMs !== null) time.at(request.delayMs + request.doubledAfterMs, () => deliver(2))
    })
  }

  #travel(leg: Leg, arrive: () => void): void {
    if (leg.lost || this.#isCutOff()) return
    this.#world.time.at(leg.delayMs, () => {
      if (!this.#isCutOff()) this.enter(arrive)
    })
  }

  #isCutOff(): boolean {
    return this.#world.time.nowMs < this.#cutOffUntilMs
  }

  #failpoint(point: Failpoint): void {
    const { faults, crashes } = this.#world
    if (!this.#alive || !faults.strikes('crash-at-failpoint', CRASH_PROBABILITY[point] * crashes)) return
    this.#world.failpointsHit.set(point, (this.#world.failpointsHit.get(point) ?? 0) + 1)
    this.#world.trace.add(this.#world.time.nowMs, this.name, 'crashes at', point)
    this.crash()
  }

  #clock(): Clock {
    const { time } = this.#world
    const bornMs = time.nowMs
    return {
      nowMs: () => Math.floor(WALL_START_MS + time.nowMs + this.#skewMs),
      monoMs: () => time.nowMs - bornMs,
      // As in Node: whole milliseconds, never less than one.
      timer: (delayMs, fire) => {
        let cancelled = false
        const due = (): void => (cancelled ? undefined : fire())
        // Also when it came due during a pause: the one who cancels may wake first.
        const event = time.at(Math.max(1, Math.ceil(delayMs)), () => this.enter(due))
        return {
          cancel: () => {
            cancelled = true
            event.cancel()
          },
        }
      },
      breathe: () => new Promise((resolve) => time.at(0, () => this.enter(resolve))),
    }
  }
}

/** Of a plain object, or of a class. */
function methodsOf(port: object): readonly string[] {
  const own = Object.keys(port)
  if (own.length > 0) return own
  const prototype = Object.getPrototypeOf(port) as object
  return Object.getOwnPropertyNames(prototype).filter((name) => {
    const { value } = Object.getOwnPropertyDescriptor(prototype, name)!
    return typeof value === 'function' && name !== 'constructor'
  })
}

export const WALL_START_MS = Date.UTC(2026, 0, 1)
