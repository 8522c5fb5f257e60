// A pool: so many places, each with a child in it or waiting for one. Decisions are in core/restart.ts; here children are
// started, replaced and let go.
//
// A child leaves in one of two ways. Its successor is started first and takes the place when it is ready (rolling restart,
// max jobs, max age), or it drains first and the place is filled when it has gone (memory: there may be none to spare).
import {
  KILLS_WINDOW_MS,
  decideHealth,
  decideRecycle,
  decideRestart,
  leavingMax,
  ownMaxAgeMs,
} from '../core/restart.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { Child } from './child.ts'
import { EndedRuns } from './ended-runs.ts'
import type { SupervisorHub } from './events.ts'
import type { PoolStatus } from './fleet.ts'
import type { Exit, Launch } from './launch.ts'
import type { ChildSource } from './messages.ts'
import type { PoolSettings } from './pool-options.ts'

export interface PoolOptions {
  readonly runtime: Runtime
  readonly hub: SupervisorHub
  readonly settings: PoolSettings
  readonly source: ChildSource
  readonly launch: Launch
  /** Of children of this supervisor: `web1-1a2b3c4d`. */
  readonly prefix: string
  readonly healthCheckMs: number
  /** The process is gone: the store may give its jobs to others. */
  readonly onGone: (child: Child, exit: Exit) => void
}

interface Place {
  child: Child | null
  /** Started to take the place of the child. */
  successor: Child | null
  /** Whoever was started last, living or not: only how it does says whether starting works. */
  latest: Child | null
  shortLives: number
  isCrashLoop: boolean
  /** A successor that died is not followed by the next one before this. */
  notBeforeMs: number
  timer: Timer | undefined
}

export class Pool {
  readonly #options: PoolOptions
  readonly #places: Place[] = []
  /** They have left their place and are not gone yet. */
  readonly #leaving = new Set<Child>()
  readonly #kills: number[] = []
  readonly #waiting = new Set<() => void>()
  readonly #ended = new EndedRuns()
  #rolling: Promise<unknown> = Promise.resolve()
  #serial = 0
  #isQuiet = false
  #isStopping = false
  #isCrashLoop = false
  /** By hand: the autoscaler is not followed. */
  isPinned = false

  constructor(options: PoolOptions) {
    this.#options = options
  }

  get name(): string {
    return this.#options.settings.name
  }

  get settings(): PoolSettings {
    return this.#options.settings
  }

  get wanted(): number {
    return this.#places.length
  }

  get children(): readonly Child[] {
    const placed = this.#places.flatMap(({ child, successor }) => [child, successor])
    return [...placed.filter((child) => child !== null), ...this.#leaving]
  }

  status(): PoolStatus {
    const { name, queues, concurrency, min, max } = this.settings
    return {
      name,
      queues: queues ?? [...new Set(this.children.flatMap((child) => child.queues))].sort(),
      concurrency,
      min,
      max,
      wanted: this.wanted,
      pinned: this.isPinned,
      state: this.#isCrashLoop ? 'crash-loop' : 'ok',
      ended: this.#ended.sum(this.children.map(({ stats }) => stats.ended)),
      children: this.children.map((child) => child.status()),
    }
  }

  /** Those that are too many have until the deadline; null: as long as their jobs need. */
  setWanted(wanted: number, deadlineMs: number | null = null): void {
    if (this.#isStopping) return
    while (this.#places.length < wanted) {
      const empty = { child: null, successor: null, latest: null, timer: undefined }
      const place: Place = { ...empty, shortLives: 0, isCrashLoop: false, notBeforeMs: -Infinity }
      this.#places.push(place)
      this.#fill(place)
    }
    while (this.#places.length > wanted) this.#dissolve(this.#leastUsed(), 'scaled down', deadlineMs)
    this.#judgeLoop()
  }

  setQuiet(isQuiet: boolean, id?: string): boolean {
    const meant = this.children.filter((child) => id === undefined || child.id === id)
    if (id === undefined) this.#isQuiet = isQuiet
    for (const child of meant) child.setQuiet(isQuiet)
    return meant.length > 0
  }

  /** Takes one child out for good: its pool is one smaller. */
  remove(id: string, deadlineMs: number): boolean {
    const place = this.#places.find(({ child, successor }) => child?.id === id || successor?.id === id)
    if (place === undefined) return false
    this.#dissolve(place, 'stopped by hand', deadlineMs)
    return true
  }

  /** One after the other: the next successor is started when this one works. Answers how many were replaced. */
  restart(reason: string, deadlineMs: number, id?: string): Promise<number> {
    // Whoever asks a second time may have brought newer code: everything is replaced again.
    const rolling = this.#rolling.then(() => this.#roll(reason, deadlineMs, id))
    this.#rolling = rolling.catch(() => undefined)
    return rolling
  }

  /** Every second: who is silent, who has had its time, who has made good. */
  look(): void {
    const { healthCheckMs, hub } = this.#options
    const { unresponsiveMs, startTimeoutMs } = this.settings
    for (const child of this.children) {
      const { isReady, startingMs, silentMs } = child
      const verdict = decideHealth({ isReady, startingMs, silentMs }, { healthCheckMs, unresponsiveMs, startTimeoutMs })
      if (verdict === 'end' && !child.isCondemned) {
        hub.emit('unhealthy', { pool: this.name, child: child.id, silentMs: Math.round(silentMs) })
        child.condemn(healthCheckMs)
      } else child.setHealthy(verdict === 'ok')
    }
    for (const place of this.#places) {
      if (place.isCrashLoop && this.#hasProven(place)) {
        place.isCrashLoop = false
        place.shortLives = 0
      }
      this.#recycle(place)
    }
    this.#judgeLoop()
  }

  /** The one that works there was there already while others failed to start: that proves nothing. */
  #hasProven({ child, latest }: Place): boolean {
    return child !== null && child === latest && child.isReady && child.ageMs >= this.settings.restart.stableAfterMs
  }

  forgiveSilence(): void {
    for (const child of this.children) child.forgiveSilence()
  }

  /** Resolves when no process is left. */
  async stop(deadlineMs: number): Promise<void> {
    this.#isStopping = true
    for (const place of this.#places) place.timer?.cancel()
    for (const child of this.children) child.drain('stop', deadlineMs)
    await this.#until(() => this.children.length === 0)
  }

  killAll(reason: string): void {
    this.#isStopping = true
    for (const place of this.#places) place.timer?.cancel()
    for (const child of this.children) child.kill(reason)
  }

  async #roll(reason: string, deadlineMs: number, id: string | undefined): Promise<number> {
    const meant = this.#places.filter(({ child }) => id === undefined || child?.id === id)
    let replaced = 0
    for (const place of meant) {
      // Those who leave for other reasons may have hours of work left, and nobody carries it for them.
      const isFree = (): boolean => this.#countGoing(reason) < leavingMax(this.wanted) && place.successor === null
      await this.#until(() => isFree() || this.#isStopping)
      if (this.#isStopping) return replaced
      if (!this.#places.includes(place)) continue
      const { child } = place
      if (child === null) this.#fill(place)
      // One that leaves anyhow is followed by one with the code of today.
      if (child === null || child.leaving !== undefined) continue
      if (await this.#replace(place, reason, deadlineMs)) replaced += 1
      else if (!this.#isStopping) {
        const told = `${replaced} of ${meant.length} were replaced`
        this.#options.runtime.logger.error(
          { ...child.facts, replaced },
          'restart given up: the new process did not begin to work',
        )
        throw new Error(`the new process of pool ${this.name} did not begin to work; ${told}`)
      }
    }
    return replaced
  }

  #countGoing(reason: string): number {
    return [...this.#leaving].filter(({ leaving }) => leaving === reason).length
  }

  #recycle(place: Place): void {
    const { child } = place
    if (child === null || !child.isReady || child.leaving !== undefined || place.successor !== null) return
    if (this.#options.runtime.clock.monoMs() < place.notBeforeMs) return
    const { memoryBytes, maxJobs } = this.settings
    const { rssBytes, processed } = child.stats
    const reason = decideRecycle(
      { rssBytes, processed, ageMs: child.ageMs },
      { memoryBytes, maxJobs, maxAgeMs: child.maxAgeMs },
    )
    if (reason === null || this.#countLeaving() >= leavingMax(this.wanted)) return
    const { hub, runtime } = this.#options
    runtime.logger.info({ ...child.facts, reason, rssBytes, processed }, 'worker process is recycled')
    hub.emit('recycled', { pool: this.name, child: child.id, reason })
    if (reason === 'memory') child.drain(reason, this.settings.drainMs)
    else void this.#replace(place, reason, null)
  }

  /** Those whose work the others must carry. */
  #countLeaving(): number {
    const placed = this.#places.filter(({ child, successor }) => successor !== null || child?.leaving !== undefined)
    return placed.length
  }

  /** Successor first. False: it did not come to work, and everything is as before. */
  async #replace(place: Place, reason: string, deadlineMs: number | null): Promise<boolean> {
    const successor = this.#start(place)
    place.successor = successor
    await this.#until(() => successor.isReady || successor.isGone || this.#isStopping)
    if (place.successor === successor) place.successor = null
    if (successor.isGone || this.#isStopping) return false
    // Whoever was there may have gone meanwhile, and the successor has the place; or the place itself is gone.
    const before = place.child
    if (before === successor || !this.#places.includes(place)) return true
    place.child = successor
    if (before !== null) this.#letGo(before, reason, deadlineMs)
    return true
  }

  #fill(place: Place): void {
    place.timer?.cancel()
    place.timer = undefined
    if (!this.#isStopping && place.child === null) place.child = this.#start(place)
  }

  #start(place: Place): Child {
    const { runtime, launch, source, prefix } = this.#options
    const { name, queues, concurrency, timeoutMs, attempts, drainMs, maxAgeMs } = this.settings
    this.#serial += 1
    const id = `${prefix}/${name}-${this.#serial}`
    const told = { queues, concurrency, timeoutMs, attempts, isQuiet: this.#isQuiet, drainMs }
    const started = new Child({
      runtime,
      launch,
      orders: { id, pool: name, ...told, source },
      concurrency,
      maxAgeMs: ownMaxAgeMs(maxAgeMs, runtime.random),
      onReady: (child) => {
        const { pool, pid } = child.facts
        this.#options.hub.emit('ready', { pool, child: id, pid })
        this.#tellWaiting()
      },
      onExit: (child, exit) => this.#exited(place, child, exit),
    })
    place.latest = started
    return started
  }

  #exited(place: Place, child: Child, exit: Exit): void {
    const { hub, onGone } = this.#options
    onGone(child, exit)
    const reason = child.leaving ?? null
    const { code, signal } = exit
    hub.emit('exited', { child: child.status(), code, signal, reason, metrics: child.stats.metrics })
    this.#ended.keep(child.stats.ended)
    this.#leaving.delete(child)
    if (place.successor === child) {
      place.successor = null
      place.notBeforeMs = this.#options.runtime.clock.monoMs() + this.#noteDeath(place, child, exit)
    } else if (place.child === child) {
      place.child = null
      const delayMs = this.#noteDeath(place, child, exit)
      if (place.successor !== null) {
        place.child = place.successor
        place.successor = null
      } else if (!this.#isStopping && this.#places.includes(place)) this.#refill(place, delayMs)
    }
    this.#judgeLoop()
    this.#tellWaiting()
  }

  #refill(place: Place, delayMs: number): void {
    if (delayMs === 0) {
      this.#fill(place)
      return
    }
    const { clock, logger } = this.#options.runtime
    const facts = { pool: this.name, delayMs, shortLives: place.shortLives }
    logger.warn(facts, 'worker process is started again later: it lived too short')
    place.timer = clock.timer(delayMs, () => this.#fill(place), { keepAlive: true })
  }

  /** Answers how long the place stays empty. */
  #noteDeath(place: Place, child: Child, { code, signal }: Exit): number {
    if (this.#isStopping) return 0
    const wasAsked = child.leaving !== undefined && !child.isCondemned
    const wasKilled = !wasAsked && !child.isCondemned && (signal === 'SIGKILL' || signal === 'SIGTERM')
    const nowMs = this.#options.runtime.clock.monoMs()
    if (wasKilled) this.#kills.push(nowMs)
    while ((this.#kills[0] ?? nowMs) < nowMs - KILLS_WINDOW_MS) this.#kills.shift()
    const death = {
      livedMs: child.ageMs,
      wasReady: child.isReady,
      wasKilled,
      killsLately: this.#kills.length,
      isLatest: place.latest === child,
    }
    const restart = decideRestart(place.shortLives, death, this.settings.restart)
    place.shortLives = restart.shortLives
    place.isCrashLoop = restart.isCrashLoop
    if (restart.isCrashLoop && !this.#isCrashLoop) {
      this.#isCrashLoop = true
      const facts = { pool: this.name, child: child.id, shortLives: restart.shortLives, code }
      this.#options.runtime.logger.error(
        { ...facts, signal },
        'crash loop: worker processes die soon after their start',
      )
      this.#options.hub.emit('crash-loop', facts)
    }
    return restart.delayMs
  }

  #judgeLoop(): void {
    if (!this.#isCrashLoop || this.#places.some(({ isCrashLoop }) => isCrashLoop)) return
    this.#isCrashLoop = false
    this.#options.runtime.logger.info({ pool: this.name }, 'crash loop is over')
    this.#options.hub.emit('crash-loop-over', { pool: this.name })
  }

  /** Whom the pool misses least: nobody at all, one that has not begun, one with few jobs. */
  #leastUsed(): Place {
    const cost = ({ child }: Place): number => (child === null ? -2 : !child.isReady ? -1 : child.stats.running)
    return this.#places.reduce((best, place) => (cost(place) <= cost(best) ? place : best))
  }

  #dissolve(place: Place, reason: string, deadlineMs: number | null): void {
    this.#places.splice(this.#places.indexOf(place), 1)
    place.timer?.cancel()
    for (const child of [place.child, place.successor]) if (child !== null) this.#letGo(child, reason, deadlineMs)
    place.child = null
    place.successor = null
    this.#tellWaiting()
  }

  #letGo(child: Child, reason: string, deadlineMs: number | null): void {
    this.#leaving.add(child)
    child.drain(reason, deadlineMs)
  }

  /** Looked at again whenever a child has become ready or has gone. */
  #until(holds: () => boolean): Promise<void> {
    return new Promise((resolve) => {
      const look = (): void => {
        if (!holds()) return
        this.#waiting.delete(look)
        resolve()
      }
      this.#waiting.add(look)
      look()
    })
  }

  #tellWaiting(): void {
    for (const look of this.#waiting) look()
  }
}
