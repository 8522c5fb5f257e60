// How long this worker may trust that its jobs are still its own: until the start of its last good beat
// plus ttl minus margin, on the monotonic clock. Outside the window nothing starts.
import type { Clock, Timer } from '../runtime/clock.ts'

export interface TrustOptions {
  readonly clock: Clock
  readonly ttlMs: number
  readonly marginMs: number
  /** The window has closed: ask the store at once. */
  readonly onDoubt: () => void
  /** Still no answer half a margin later: everything that runs must stop. */
  readonly onLost: () => void
}

export class Trust {
  readonly #options: TrustOptions
  #untilMs = -Infinity
  #timer: Timer | undefined

  constructor(options: TrustOptions) {
    this.#options = options
  }

  isHeld(): boolean {
    return this.#options.clock.monoMs() < this.#untilMs
  }

  renew(beatStartedMs: number): void {
    const { ttlMs, marginMs } = this.#options
    this.#untilMs = Math.max(this.#untilMs, beatStartedMs + ttlMs - marginMs)
    this.#watch()
  }

  end(): void {
    this.#untilMs = -Infinity
    this.#timer?.cancel()
    this.#timer = undefined
  }

  #watch(): void {
    const { clock, onDoubt, onLost, marginMs } = this.#options
    this.#timer?.cancel()
    this.#timer = clock.timer(this.#untilMs - clock.monoMs(), () => {
      if (this.isHeld()) {
        this.#watch()
        return
      }
      // A blocked loop comes here late although nobody took anything away: ask before giving up.
      onDoubt()
      this.#timer = clock.timer(marginMs / 2, () => {
        if (!this.isHeld()) onLost()
      })
    })
  }
}
