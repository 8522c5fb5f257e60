// The breaker, per process and queue, and the way back. Errors of Redis for a while open it: sessions say in their beats that
// they cannot use it, workers claim ready rows from the ledger, producers insert ready. While anything is not as it should
// be Redis is asked again and again: the breaker closes with an answer; a queue in mode ledger returns to tokens when Redis
// has answered for a while, and an epoch that was left without a birth is flipped again.
//
// While all is well each Redis is asked once a second too: a worker without a free slot calls nobody, and would count as one
// that can use a Redis which has long gone.
import { isPlanted } from '../../core/planted.ts'
import { createLoop } from '../../runtime/service.ts'
import type { Loop } from '../../runtime/service.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import type { DispatchView } from './dispatch-view.ts'
import type { HybridTimes } from './times.ts'

export interface RedisWatchOptions {
  readonly runtime: Runtime
  readonly view: DispatchView
  readonly times: HybridTimes
  /** The queues that sessions of this process serve: only these are flipped here. */
  readonly served: () => ReadonlySet<string>
  /** Which Redis is there and takes writes, or throws; tells `answered` or `failed` by itself. */
  readonly probe: (queue: string) => Promise<string>
  readonly onOpen: (queue: string) => void
  readonly onClose: (queue: string) => void
  readonly closeTokens: (queue: string) => void
  /** Another Redis answers than the one its epoch was opened on. */
  readonly moveTokens: (queue: string, redisId: string) => void
  readonly openTokens: (queue: string) => void
  readonly refresh: (queues: readonly string[]) => Promise<void>
  /** About once a second, and more often while anything is not as it should be. */
  readonly onPass: () => void
}

/** How often a Redis is asked that seems to be well. */
const LOOK_MS = 1_000
/** How often somebody who cannot flip looks whether others have. */
const ASK_MS = 250

interface QueueHealth {
  failingSinceMs: number | null
  answersSinceMs: number | null
  isOpen: boolean
  unbornSinceMs: number | null
  unbornEpoch: number
  askedAtMs: number
  /** How long Redis has to answer before the next return. */
  returnMs: number
  returnedAtMs: number
  /** A flip that is refused, because others can work with this Redis, is tried again: of this epoch, from this moment on. */
  flipEpoch: number
  flipAgainMs: number
  flipAtMs: number
}

/** So long at most between two tries; Redis itself is asked as often as ever. */
const FLIP_AGAIN_MAX_MS = 1_000

export class RedisWatch {
  readonly #options: RedisWatchOptions
  readonly #health = new Map<string, QueueHealth>()
  readonly #loop: Loop
  #lookAtMs = -Infinity
  /** So that over time every queue is asked about. */
  #turn = 0

  constructor(options: RedisWatchOptions) {
    this.#options = options
    const { runtime } = options
    this.#loop = createLoop({ name: 'Redis watch', runtime, pass: () => this.#pass(), backoffMaxMs: 1_000 })
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  wake(): void {
    this.#loop.wake()
  }

  isOpen(queue: string): boolean {
    return this.#health.get(queue)?.isOpen ?? false
  }

  /** No error since the last probe that was answered, and a Redis that can be used. */
  isSound(queue: string): boolean {
    const health = this.#health.get(queue)
    return health === undefined || (health.failingSinceMs === null && !health.isOpen)
  }

  /** It took a write. */
  answered(queue: string): void {
    const health = this.#health.get(queue)
    if (health === undefined) return
    health.failingSinceMs = null
    health.answersSinceMs ??= this.#options.runtime.clock.monoMs()
  }

  failed(queue: string, startedMs: number): void {
    const { runtime, times } = this.#options
    const health = this.#of(queue)
    const isFirst = health.failingSinceMs === null
    health.answersSinceMs = null
    health.failingSinceMs ??= startedMs
    if (health.isOpen) return
    if (runtime.clock.monoMs() - health.failingSinceMs >= times.breakerMs) this.#open(queue, health)
    else if (isFirst) this.#loop.wake()
  }

  /** This Redis answers, but not as the one the epoch was opened on. */
  unusable(queue: string): void {
    const health = this.#of(queue)
    if (health.isOpen) return
    this.#open(queue, health)
    this.#loop.wake()
  }

  #open(queue: string, health: QueueHealth): void {
    health.isOpen = true
    health.flipEpoch = 0
    this.#options.runtime.logger.warn({ queue }, 'Redis does not answer: claiming from PostgreSQL')
    this.#options.onOpen(queue)
  }

  #close(queue: string, health: QueueHealth): void {
    health.isOpen = false
    this.#options.runtime.logger.info({ queue }, 'Redis answers again')
    this.#options.onClose(queue)
  }

  #of(queue: string): QueueHealth {
    let health = this.#health.get(queue)
    if (health === undefined) {
      health = {
        failingSinceMs: null,
        answersSinceMs: null,
        isOpen: false,
        unbornSinceMs: null,
        unbornEpoch: 0,
        askedAtMs: -Infinity,
        returnMs: 0,
        returnedAtMs: -Infinity,
        flipEpoch: 0,
        flipAgainMs: 0,
        flipAtMs: -Infinity,
      }
      this.#health.set(queue, health)
    }
    return health
  }

  async #pass(): Promise<number> {
    const { times, runtime, served } = this.#options
    const queues = new Set([...served(), ...this.#health.keys()])
    const odd = [...queues].filter((queue) => this.#isOdd(queue))
    await Promise.all([...odd.map((queue) => this.#mend(queue)), ...this.#due().map((queue) => this.#look(queue))])
    this.#options.onPass()
    return (odd.length === 0 ? LOOK_MS : times.watchMs) * (0.75 + runtime.random() / 2)
  }

  /** One queue of each Redis that seems to be well, if it is time. */
  #due(): readonly string[] {
    const { runtime, served, view } = this.#options
    const nowMs = runtime.clock.monoMs()
    if (nowMs < this.#lookAtMs) return []
    this.#lookAtMs = nowMs + LOOK_MS * (0.75 + runtime.random() / 2)
    this.#turn += 1
    const byRedis = new Map<string, string[]>()
    for (const queue of served()) {
      const row = view.row(queue)
      if (row === undefined || this.#isOdd(queue)) continue
      byRedis.set(row.redisId, [...(byRedis.get(row.redisId) ?? []), queue])
    }
    return [...byRedis.values()].map((queues) => queues[this.#turn % queues.length]!)
  }

  /** What is wrong with one queue is wrong with all of its Redis, until each of them has been asked. */
  async #look(queue: string): Promise<void> {
    const { probe, served, view, runtime } = this.#options
    const redisId = view.row(queue)?.redisId
    const isWell = await probe(queue).then(
      () => true,
      () => false,
    )
    if (isWell) return
    for (const other of served()) {
      if (view.row(other)?.redisId === redisId && !this.#isOdd(other)) this.failed(other, runtime.clock.monoMs())
    }
  }

  #isOdd(queue: string): boolean {
    const health = this.#health.get(queue)
    if (health !== undefined && (health.isOpen || health.failingSinceMs !== null)) return true
    if (!this.#options.served().has(queue)) return false
    const row = this.#options.view.row(queue)
    return row === undefined || row.mode === 'ledger' || row.birth === null
  }

  async #mend(queue: string): Promise<void> {
    const { runtime, view, served, probe, closeTokens, moveTokens } = this.#options
    const health = this.#of(queue)
    const redisId = await probe(queue).catch(() => null)
    const row = view.row(queue)
    const isServed = served().has(queue)
    const nowMs = runtime.clock.monoMs()
    if (redisId === null) {
      if (isServed && health.isOpen && row?.mode === 'token' && this.#mayFlip(health, row.epoch)) closeTokens(queue)
      return
    }
    health.answersSinceMs ??= nowMs
    // Without a session there is nobody to flip: it waits for those who do, and does not mint what Redis would refuse.
    const isOther = row?.mode === 'token' && row.redisId !== redisId
    if (health.isOpen && (row?.redisId === redisId || (!isServed && !isOther))) this.#close(queue, health)
    if (!isServed) {
      if (isOther) await this.#ask(queue, health, nowMs)
      return
    }
    if (row === undefined || row.mode === 'ledger') await this.#return(queue, health, nowMs)
    else if (row.birth === null) await this.#watchUnborn(queue, row.epoch, health, nowMs)
    else if (health.isOpen && this.#mayFlip(health, row.epoch)) moveTokens(queue, redisId)
  }

  /** At once for an epoch that is new to it, then less and less often: every try is a statement and a beat. */
  #mayFlip(health: QueueHealth, epoch: number): boolean {
    const { runtime, times } = this.#options
    const nowMs = runtime.clock.monoMs()
    const isFirst = health.flipEpoch !== epoch
    if (!isFirst && nowMs < health.flipAtMs) return false
    health.flipEpoch = epoch
    health.flipAgainMs = isFirst ? times.watchMs : Math.min(health.flipAgainMs * 2, FLIP_AGAIN_MAX_MS)
    health.flipAtMs = nowMs + health.flipAgainMs * (0.75 + runtime.random() / 2)
    return true
  }

  async #ask(queue: string, health: QueueHealth, nowMs: number): Promise<void> {
    if (nowMs - health.askedAtMs < ASK_MS) return
    health.askedAtMs = nowMs
    await this.#options.refresh([queue])
  }

  async #return(queue: string, health: QueueHealth, nowMs: number): Promise<void> {
    const { view, times, openTokens, refresh } = this.#options
    // A queue that never had tokens need not wait for them.
    const isNew = (view.row(queue)?.epoch ?? 0) === 0
    const waitMs = isNew ? 0 : Math.max(health.returnMs, times.returnMs)
    if (nowMs - (health.answersSinceMs ?? nowMs) < waitMs) return
    await refresh([queue])
    const row = view.row(queue)
    // Not there yet: its first job, or whoever configures it, makes it.
    if (row === undefined) return
    if (row.mode !== 'ledger') {
      if (health.isOpen) this.#close(queue, health)
      return
    }
    const isOften = nowMs - health.returnedAtMs < times.returnMaxMs
    health.returnMs = isOften ? Math.min(waitMs * 2, times.returnMaxMs) : times.returnMs
    health.returnedAtMs = nowMs
    if (health.isOpen) this.#close(queue, health)
    openTokens(queue)
  }

  async #watchUnborn(queue: string, epoch: number, health: QueueHealth, nowMs: number): Promise<void> {
    const { runtime, times, view, refresh, openTokens } = this.#options
    if (health.unbornEpoch !== epoch) {
      health.unbornEpoch = epoch
      health.unbornSinceMs = nowMs + runtime.random() * times.unbornMs
    }
    await refresh([queue])
    const row = view.row(queue)
    if (row?.mode !== 'token' || row.epoch !== epoch || row.birth !== null) return
    if (nowMs - (health.unbornSinceMs ?? nowMs) >= times.unbornMs && !isPlanted('hybrid-unborn-left')) openTokens(queue)
  }
}
