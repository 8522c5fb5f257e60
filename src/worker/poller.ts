// When to ask for jobs: after a hint, and by an adaptive, jittered poll behind the hints. Every hint may be
// lost; the poll alone is enough, only slower. A poll that finds jobs has found them without a hint: then it is all
// there is, and is made often. While hints come, it is made ever more rarely.
import { DEFAULTS } from '../core/limits.ts'
import type { Timer } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import { readyTopic } from '../store/wakeups.ts'
import type { Wakeups } from '../store/wakeups.ts'

export interface PollerOptions {
  readonly runtime: Runtime
  readonly wakeups: Wakeups
  readonly queues: readonly string[]
  readonly onWake: () => void
}

export class Poller {
  readonly #options: PollerOptions
  #expects = true
  #hinted = false
  #timeIsUp = false
  /** Of the claim that was asked for last. */
  #isPoll = false
  #intervalMs: number = DEFAULTS.pollMinMs
  #timer: Timer | undefined
  #stopListening: (() => void) | undefined

  constructor(options: PollerOptions) {
    this.#options = options
  }

  /** Is there reason to believe that a claim would find something? Asked right before one. */
  get expects(): boolean {
    if (!this.#expects) return false
    this.#isPoll = this.#timeIsUp && !this.#hinted
    this.#hinted = this.#timeIsUp = false
    return true
  }

  start(): void {
    const { wakeups, queues } = this.#options
    this.#stopListening = wakeups.listen(queues.map(readyTopic), () => this.expect())
    this.expect()
  }

  stop(): void {
    this.#stopListening?.()
    this.#timer?.cancel()
    this.#timer = undefined
  }

  expect(): void {
    this.#expects = true
    this.#hinted = true
    this.#options.onWake()
  }

  /** A claim came back with so many of the jobs it asked for. A hint that came meanwhile still stands. */
  claimed(count: number, limit: number): void {
    if (count > 0 && this.#isPoll) this.#intervalMs = DEFAULTS.pollMinMs
    if (count >= limit) {
      this.#expects = true
      return
    }
    if (this.#hinted) return
    this.#expects = false
    this.#arm()
  }

  #arm(): void {
    if (this.#timer !== undefined) return
    const { runtime } = this.#options
    const waitMs = this.#intervalMs * (0.75 + runtime.random() / 2)
    this.#intervalMs = Math.min(this.#intervalMs * 2, DEFAULTS.pollMaxMs)
    this.#timer = runtime.clock.timer(waitMs, () => {
      this.#timer = undefined
      this.#expects = this.#timeIsUp = true
      this.#options.onWake()
    })
  }
}
