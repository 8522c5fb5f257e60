// What the rules of the hybrid share within one process.
import { bounded } from '../../runtime/bounded.ts'
import type { Timer } from '../../runtime/clock.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { Service } from '../../runtime/service.ts'
import type { Backend } from '../../store/ports.ts'
import { controlTopic, readyTopic } from '../../store/wakeups.ts'
import { RaceCalls } from './calls.ts'
import { DispatchView } from './dispatch-view.ts'
import { Epochs } from './epoch.ts'
import type { RaceEye } from './eye.ts'
import { LaneState, Pipes } from './insert.ts'
import { LiveStatus } from './live-status.ts'
import { createMemoryWatch } from './memory-watch.ts'
import type { DispatchNews, Ledger, Race } from './ports.ts'
import { RedisWatch } from './redis-watch.ts'
import { checkSelf } from './self-check.ts'
import { Sessions } from './session.ts'
import type { Session } from './session.ts'
import type { HybridTimes } from './times.ts'
import { Bells } from './bells.ts'
import { Tally } from './tally.ts'
import type { WindowTerms } from './window.ts'

export interface HybridParts {
  readonly runtime: Runtime
  /** The backend of the ledger: everything that the hybrid does not change. */
  readonly store: Backend
  readonly ledger: Ledger
  readonly race: Race
  readonly times: HybridTimes
  readonly isConfirmed: (queue: string) => boolean
  /** Monotonic, the same in all threads of the process. */
  readonly threadMonoMs: () => number
  /** What people see of Redis; without one nothing is shown and counted there. */
  readonly eye?: RaceEye
}

const GATE_POLL_MS = 5
/** Scripts may not ask who the server is (ACL, managed Redis): an old copy of it would hand tokens out a second time. */
const NAMELESS = '-'
const REFRESH_MS = 250
/** Of the window, while the memory of Redis is nearly full: some hundred tokens take no room, and work goes on. */
const SHARE_LEAST = 0.01
const REFRESH_ALL_MS = 10_000

export class Hybrid {
  readonly runtime: Runtime
  readonly store: Backend
  readonly ledger: Ledger
  readonly race: Race
  readonly times: HybridTimes
  readonly isConfirmed: (queue: string) => boolean
  readonly threadMonoMs: () => number
  readonly view = new DispatchView()
  readonly sessions = new Sessions()
  readonly lanes = new LaneState()
  readonly tally = new Tally()
  readonly eye: RaceEye | undefined
  readonly liveStatus: LiveStatus | undefined
  readonly bells: Bells
  readonly pipes: Pipes
  readonly calls: RaceCalls
  readonly epochs: Epochs
  readonly watch: RedisWatch
  readonly memory: Service
  /** How much of its window a lane may fill; less when the memory of Redis runs out. */
  windowShare = 1
  isStopped = false
  readonly #gateTimers = new Map<Session, Timer>()
  #refreshedMs = -Infinity
  #refreshedAllMs = -Infinity
  #isConnected = false

  constructor(parts: HybridParts) {
    const { runtime, store, race, times } = parts
    this.runtime = runtime
    this.store = store
    this.ledger = boundedLedger(parts.ledger, runtime, times.ledgerMs)
    this.race = race
    this.times = times
    this.isConfirmed = parts.isConfirmed
    this.threadMonoMs = parts.threadMonoMs
    this.eye = parts.eye
    this.pipes = new Pipes(runtime)
    this.bells = new Bells(store.wakeups)
    this.calls = new RaceCalls({
      runtime,
      race,
      timeoutMs: times.raceMs,
      probeMs: Math.min(times.breakerMs, times.raceMs),
      onAnswer: (queue) => this.watch.answered(queue),
      onError: (queue, startedMs) => this.watch.failed(queue, startedMs),
      onRefused: (queue, tag, refusal) => {
        this.tally.add(queue, refusal.why === 'TORN' ? 'torn' : 'refused', 1)
        this.epochs.refused(queue, tag, refusal)
      },
    })
    this.epochs = new Epochs({
      runtime,
      ledger: this.ledger,
      calls: this.calls,
      view: this.view,
      onNews: () => this.beatNow(),
      onRead: (news) => this.#read(news),
      onUnusable: (queues) => queues.forEach((queue) => this.watch.unusable(queue)),
    })
    this.watch = new RedisWatch({
      runtime,
      view: this.view,
      times,
      served: () => this.sessions.served(),
      probe: (queue) => this.#probe(queue),
      onOpen: (queue) => this.#setFailing(queue, true),
      onClose: (queue) => this.#setFailing(queue, false),
      openTokens: (queue) => this.epochs.openTokens(queue),
      closeTokens: (queue) => this.epochs.closeTokens(queue),
      moveTokens: (queue, redisId) => this.epochs.moveTokens(queue, redisId),
      refresh: (queues) => this.epochs.refresh(queues),
      onPass: () => this.#lookForStrays(),
    })
    this.memory = createMemoryWatch(this)
    this.liveStatus = parts.eye === undefined ? undefined : this.#liveStatusIn(parts.eye)
    this.view.onChange((row) => this.#changed(row.queue))
  }

  /** Idempotent; throws while Redis is away. */
  async connect(): Promise<void> {
    if (this.#isConnected) return
    await this.race.start()
    this.#isConnected = true
  }

  /** While the breaker is open the watch itself sees to it that the epoch moves. */
  async #probe(queue: string): Promise<string> {
    const tag = this.view.tag(queue)
    const { redisId, refused } = await this.calls.probe(queue, tag, () => this.connect())
    if (tag !== null && refused !== null && !this.watch.isOpen(queue)) this.epochs.refused(queue, tag, refused)
    return redisId
  }

  /** A start of this queue is put down in PostgreSQL first: asked for, or because its Redis does not say who it is. */
  needsConfirmation(queue: string): boolean {
    return this.isConfirmed(queue) || this.view.row(queue)?.redisId === NAMELESS
  }

  /** Of one lane, whoever fills it. */
  window(): number {
    return Math.floor(this.times.window * this.#leastShare)
  }

  /** For producers, who have another way: nothing where there is no memory. */
  windowTerms(): WindowTerms {
    return this.#termsWith(this.windowShare)
  }

  /** For the relay: without it nothing would be worked on. */
  relayTerms(): WindowTerms {
    return this.#termsWith(this.#leastShare)
  }

  get #leastShare(): number {
    return this.windowShare === 0 ? SHARE_LEAST : this.windowShare
  }

  #termsWith(share: number): WindowTerms {
    const { window, windowTotal } = this.times
    const total = Math.floor(windowTotal * share)
    return { window: Math.floor(window * share), total, queues: this.view.tokenQueues }
  }

  /** The sessions of this process beat at once: there is something to say, or to see. */
  beatNow(): void {
    for (const { worker } of this.sessions.all()) this.bells.ring(controlTopic(worker))
  }

  /** The gate is shut: when it opens the workers of this session look again. */
  awaitGate(session: Session): void {
    if (this.#gateTimers.has(session)) return
    const look = (): void => {
      this.#gateTimers.delete(session)
      if (session.isOver || this.sessions.get(session.worker) !== session) return
      if (session.inFlight.isOpen) for (const name of session.queues.keys()) this.bells.ring(readyTopic(name))
      else this.awaitGate(session)
    }
    this.#gateTimers.set(session, this.runtime.clock.timer(GATE_POLL_MS, look))
  }

  /** There may be tokens again; not asked more often than now and then. */
  refreshSoon(queue?: string): void {
    const nowMs = this.runtime.clock.monoMs()
    if (nowMs - this.#refreshedMs < REFRESH_MS) return
    this.#refreshedMs = nowMs
    if (queue === undefined) this.#refreshedAllMs = nowMs
    void this.epochs.refresh(queue === undefined ? undefined : [queue]).catch(() => undefined) // asked again with a later insert
  }

  /** Others may have made queues: the window in all is divided among them. */
  refreshSeldom(): void {
    if (this.runtime.clock.monoMs() - this.#refreshedAllMs >= REFRESH_ALL_MS) this.refreshSoon()
  }

  /** For people; never throws. */
  async tellCounts(): Promise<void> {
    if (this.eye === undefined) return
    const { clock } = this.runtime
    await bounded(clock, this.times.raceMs, 'Redis', this.tally.tell(this.eye)).catch(() => undefined)
  }

  stop(): void {
    this.isStopped = true
    this.#isConnected = false
    for (const timer of this.#gateTimers.values()) timer.cancel()
    this.#gateTimers.clear()
  }

  #liveStatusIn(eye: RaceEye): LiveStatus {
    const { runtime, sessions, threadMonoMs: monoMs, times, view, watch } = this
    const mayShow = (queue: string): boolean => view.tag(queue) !== null && watch.isSound(queue)
    const share = (): number => this.windowShare
    const { markAfterMs: afterMs, raceMs: timeoutMs } = times
    return new LiveStatus({ runtime, eye, sessions, monoMs, afterMs, timeoutMs, mayShow, share })
  }

  /** Sessions without a thread need not wait for their next beat. A part of the rows is not enough to adopt. */
  #read(news: DispatchNews): void {
    const known = new Set(news.rows.map(({ queue }) => queue))
    for (const { keeper, queues, isThreaded } of this.sessions.all()) {
      const isWhole = [...queues.keys()].every((name) => known.has(name) || this.view.row(name) === undefined)
      if (!isThreaded && isWhole) keeper.see(news)
    }
  }

  #setFailing(queue: string, isFailing: boolean): void {
    for (const session of this.sessions.all()) {
      const own = session.queues.get(queue)
      if (own === undefined) continue
      if (!session.inFlight.setFailing(own.index, isFailing)) continue
      this.bells.ring(controlTopic(session.worker))
    }
    // Work is to be had elsewhere now.
    this.bells.ring(readyTopic(queue))
  }

  /**
   * A worker that is quiet, or busy for an hour, takes nothing more: what a lost answer or message has left with it would wait
   * for as long.
   */
  #lookForStrays(): void {
    for (const session of this.sessions.all()) {
      if (session.isOver) continue
      for (const own of session.queues.values()) {
        if (!own.mustLook || own.taking > 0 || this.watch.isOpen(own.name)) continue
        const tag = this.view.tag(own.name)
        if (tag !== null) void checkSelf(this, session, own, tag)
      }
    }
  }

  #changed(queue: string): void {
    for (const session of this.sessions.all()) {
      const own = session.queues.get(queue)
      // A server that took over may have forgotten what became of a run, and still call it ours.
      if (own?.changedTo(this.view.row(queue)?.epoch ?? 0)) session.doubt()
    }
    this.watch.wake()
    this.bells.ring(readyTopic(queue))
  }
}

/** Every call to the ledger ends: an answer that does not come is an unknown outcome. */
function boundedLedger(ledger: Ledger, { clock }: Runtime, timeoutMs: number): Ledger {
  const within =
    <Args extends readonly unknown[], Value>(what: string, call: (...args: Args) => Promise<Value>) =>
    (...args: Args): Promise<Value> =>
      bounded(clock, timeoutMs, what, call(...args))
  const calls = Object.entries(ledger).map(([name, call]) =>
    name === 'inside' ? [name, call] : [name, within(`ledger.${name}`, call as () => Promise<unknown>)],
  )
  // The same methods with the same types; only their answers end.
  return Object.fromEntries(calls) as Ledger
}
