// How long this worker may trust that its jobs are still its own: until the start of its last good beat
// plus ttl minus margin, on the monotonic clock. Outside the window nothing starts.
//
// That clock may stand still while a machine is suspended; the clock on the wall does not. When the second has got ahead of
// the first nothing starts either, until a beat that was begun after it was answered. A clock that was merely set costs a beat.
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

const JUMP_MS = 1_000

export class Trust {
  readonly #options: TrustOptions
  #untilMs = -Infinity
  #timer: Timer | undefined
  /** By how much the clock on the wall is ahead of the monotonic one, as of the last good beat. */
  #aheadMs: number
  /** Beats begun before this say nothing. Null: there was no jump since the last one that does. */
  #jumpedMs: number | null = null
  #asking: Timer | undefined

  constructor(options: TrustOptions) {
    this.#options = options
    this.#aheadMs = aheadMs(options.clock)
  }

  isHeld(): boolean {
    this.#notice()
    return this.#jumpedMs === null && this.#options.clock.monoMs() < this.#untilMs
  }

  renew(beatStartedMs: number): void {
    const { clock, ttlMs, marginMs } = this.#options
    this.#notice()
    if (this.#jumpedMs !== null && beatStartedMs < this.#jumpedMs) return
    this.#jumpedMs = null
    this.#aheadMs = aheadMs(clock)
    this.#untilMs = Math.max(this.#untilMs, beatStartedMs + ttlMs - marginMs)
    this.#watch()
  }

  end(): void {
    this.#untilMs = -Infinity
    this.#timer?.cancel()
    this.#timer = undefined
    this.#asking?.cancel()
  }

  #notice(): void {
    const { clock, onDoubt } = this.#options
    const nowAheadMs = aheadMs(clock)
    if (nowAheadMs - this.#aheadMs <= JUMP_MS) {
      // Set back: from there on it is watched.
      this.#aheadMs = Math.min(this.#aheadMs, nowAheadMs)
      return
    }
    this.#aheadMs = nowAheadMs
    this.#jumpedMs = clock.monoMs()
    this.#asking?.cancel()
    if (this.#untilMs > -Infinity) this.#asking = clock.timer(0, onDoubt)
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

function aheadMs(clock: Clock): number {
  return clock.nowMs() - clock.monoMs()
}
