// One child process, from its launch to its exit. It decides nothing about its successor.
//
// starting → running ⇄ quiet → draining → stopped; crashed when it went unasked; unhealthy while it is silent.
import { jobsDeadlineMs } from '../core/restart.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { ChildState, ChildStatus } from './fleet.ts'
import type { Exit, Launch, Launched } from './launch.ts'
import type { ChildOrders, ChildStats, FromChild } from './messages.ts'

export interface ChildOptions {
  readonly runtime: Runtime
  readonly launch: Launch
  readonly orders: ChildOrders
  readonly concurrency: number
  readonly maxAgeMs: number
  readonly onReady: (child: Child) => void
  readonly onExit: (child: Child, exit: Exit) => void
}

const NO_STATS: ChildStats = {
  workerIds: [],
  rssBytes: 0,
  cpuPercent: 0,
  loopLagMs: 0,
  processed: 0,
  failed: 0,
  running: 0,
}

const CLOSE_MS = 8_000

export class Child {
  readonly #options: ChildOptions
  readonly #launched: Launched
  readonly #startedMs: number
  readonly #startedAtMs: number
  #state: ChildState = 'starting'
  #isQuiet: boolean
  #heardMs: number
  #heardAtMs: number
  #queues: readonly string[]
  /** Time before it does not count as time to start. */
  #startingMs: number
  #killAtMs = Infinity
  #killTimer: Timer | undefined
  stats: ChildStats = NO_STATS
  /** Why it was told to leave; undefined while it belongs to its pool. */
  leaving: string | undefined
  /** It missed its heartbeats, and was told to end for that. */
  isCondemned = false
  isReady = false
  isGone = false

  constructor(options: ChildOptions) {
    const { clock } = options.runtime
    this.#options = options
    this.#isQuiet = options.orders.isQuiet
    this.#startedMs = clock.monoMs()
    this.#startedAtMs = clock.nowMs()
    this.#heardMs = this.#startedMs
    this.#startingMs = this.#startedMs
    this.#queues = options.orders.queues ?? []
    this.#heardAtMs = this.#startedAtMs
    this.#launched = options.launch(options.orders.id, {
      onMessage: (message) => this.#heard(message),
      onExit: (exit) => this.#exited(exit),
    })
    this.log.info(this.facts, 'worker process started')
  }

  get id(): string {
    return this.#options.orders.id
  }

  get log(): Logger {
    return this.#options.runtime.logger
  }

  /** In every log line about it. */
  get facts(): { readonly pool: string; readonly child: string; readonly pid: number | null } {
    return { pool: this.#options.orders.pool, child: this.id, pid: this.#launched.pid }
  }

  get state(): ChildState {
    return this.#state
  }

  get ageMs(): number {
    return this.#options.runtime.clock.monoMs() - this.#startedMs
  }

  /** How long it has had to begin to work. */
  get startingMs(): number {
    return this.#options.runtime.clock.monoMs() - this.#startingMs
  }

  /** Empty: it has not said yet which are all. */
  get queues(): readonly string[] {
    return this.#queues
  }

  get silentMs(): number {
    return this.#options.runtime.clock.monoMs() - this.#heardMs
  }

  get maxAgeMs(): number {
    return this.#options.maxAgeMs
  }

  status(): ChildStatus {
    const { orders, concurrency } = this.#options
    const { metrics: _, ended: __, ...stats } = this.stats
    return {
      id: this.id,
      pool: orders.pool,
      queues: this.#queues,
      pid: this.#launched.pid,
      state: this.#state,
      ...stats,
      concurrency,
      startedAtMs: this.#startedAtMs,
      lastHeartbeatAtMs: this.#heardAtMs,
    }
  }

  setQuiet(isQuiet: boolean): void {
    this.#isQuiet = isQuiet
    this.#launched.send({ kind: isQuiet ? 'quiet' : 'resume' })
    this.#settleState()
  }

  /** A second call can only make it sooner. Null: its jobs have all the time they need. */
  drain(reason: string, deadlineMs: number | null): void {
    if (this.isGone) return
    if (this.leaving === undefined) this.log.info({ ...this.facts, reason, deadlineMs }, 'worker process drains')
    this.leaving ??= reason
    this.#settleState()
    const { clock } = this.#options.runtime
    const killAtMs = deadlineMs === null ? Infinity : clock.monoMs() + deadlineMs
    if (killAtMs > this.#killAtMs) return
    this.#killAtMs = killAtMs
    this.#launched.send({ kind: 'drain', deadlineMs: deadlineMs === null ? null : jobsDeadlineMs(deadlineMs) })
    if (deadlineMs === null) return
    this.#killIn(deadlineMs, 'its deadline has passed')
  }

  /** Silent for too long. SIGTERM first: perhaps it hears that. */
  condemn(graceMs: number): void {
    if (this.isCondemned || this.isGone) return
    this.isCondemned = true
    const { clock } = this.#options.runtime
    const silentMs = Math.round(this.silentMs)
    this.log.error(
      { ...this.facts, silentMs, isReady: this.isReady },
      'worker process gives no sign of life: it is ended',
    )
    this.#settleState()
    this.#launched.signal('SIGTERM')
    clock.timer(graceMs, () => this.kill('it gives no sign of life'), { keepAlive: true })
  }

  kill(reason: string): void {
    if (this.isGone) return
    this.log.warn({ ...this.facts, reason, running: this.stats.running }, 'worker process is killed')
    this.leaving ??= reason
    this.#launched.signal('SIGKILL')
  }

  #killIn(delayMs: number, reason: string): void {
    this.#killTimer?.cancel()
    this.#killTimer = this.#options.runtime.clock.timer(delayMs, () => this.kill(reason), { keepAlive: true })
  }

  /** The supervisor itself was asleep: the silence was its own. */
  forgiveSilence(): void {
    this.#heardMs = this.#options.runtime.clock.monoMs()
    this.#startingMs = this.#heardMs
  }

  setHealthy(isHealthy: boolean): void {
    if (this.isGone || this.isCondemned || isHealthy === (this.#state !== 'unhealthy')) return
    if (isHealthy) this.log.info(this.facts, 'worker process is heard of again')
    else this.log.warn({ ...this.facts, silentMs: Math.round(this.silentMs) }, 'worker process is silent')
    this.#settleState(!isHealthy)
  }

  #settleState(isSilent = false): void {
    if (this.isGone) return
    if (this.isCondemned || isSilent) this.#state = 'unhealthy'
    else if (this.leaving !== undefined) this.#state = 'draining'
    else if (!this.isReady) this.#state = 'starting'
    else this.#state = this.#isQuiet ? 'quiet' : 'running'
  }

  #heard(message: FromChild): void {
    const { clock } = this.#options.runtime
    this.#heardMs = clock.monoMs()
    this.#heardAtMs = clock.nowMs()
    switch (message.kind) {
      case 'hello':
        this.#launched.send({ kind: 'begin', orders: { ...this.#options.orders, isQuiet: this.#isQuiet } })
        break
      case 'ready':
        this.isReady = true
        this.stats = { ...this.stats, workerIds: message.workerIds }
        if (this.#options.orders.queues === null) this.#queues = message.queues ?? []
        this.#settleState()
        this.log.info({ ...this.facts, afterMs: Math.round(this.ageMs) }, 'worker process is ready')
        this.#options.onReady(this)
        break
      case 'stats':
        // Metrics come with some of them.
        this.stats = { ...(this.stats.metrics !== undefined && { metrics: this.stats.metrics }), ...message.stats }
        break
      case 'draining':
        this.leaving ??= message.reason
        this.#settleState()
        break
      case 'done':
        // Nothing is left to be lost: it may take a moment to close its connections.
        this.#killIn(CLOSE_MS, 'it does not end')
        this.log.info({ ...this.facts, drained: message.drained, ...totalsOf(this.stats) }, 'worker process is done')
        break
    }
  }

  #exited(exit: Exit): void {
    this.#killTimer?.cancel()
    this.isGone = true
    const wasAsked = this.leaving !== undefined && !this.isCondemned
    this.#state = wasAsked ? 'stopped' : 'crashed'
    const { code, signal, error } = exit
    const facts = {
      ...this.facts,
      ...(signal === null ? { code } : { signal }),
      livedMs: Math.round(this.ageMs),
      ...(this.leaving !== undefined && { reason: this.leaving }),
      ...(error !== undefined && { error }),
    }
    if (wasAsked) this.log.info(facts, 'worker process ended')
    else this.log.error({ ...facts, ...totalsOf(this.stats) }, 'worker process ended unasked')
    this.#options.onExit(this, exit)
  }
}

function totalsOf({ processed, failed, running }: ChildStats): Record<string, number> {
  return { processed, failed, running }
}
