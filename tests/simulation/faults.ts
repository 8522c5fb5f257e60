// Which faults a seed has, how often, and what was hit. Each seed switches whole classes on and off (swarm),
// so that rare combinations are not drowned by common ones.
import type { Random } from './random.ts'

export const FAULT_KINDS = [
  'request-delayed',
  'request-lost',
  'request-doubled',
  'reply-delayed',
  'reply-lost',
  'hint-lost',
  'crash',
  'crash-at-failpoint',
  'pause',
  'partition',
  'store-outage',
  'store-clock-jump',
  'skewed-clock',
] as const
/** Of the hybrid: what may befall its Redis. */
export const REDIS_FAULT_KINDS = [
  'redis-flushed',
  'redis-suffix-lost',
  'redis-old-copy',
  'redis-other-and-back',
  'redis-evicted',
  'redis-outage',
  'redis-full',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number] | (typeof REDIS_FAULT_KINDS)[number]

export interface Leg {
  readonly delayMs: number
  readonly lost: boolean
  /** A second copy arrives this much later. */
  readonly doubledAfterMs: number | null
}

export class Faults {
  readonly hits = new Map<FaultKind, number>()
  readonly #random: Random
  readonly #on: ReadonlySet<FaultKind>
  #healed = false

  constructor(random: Random, kinds: readonly FaultKind[] = FAULT_KINDS) {
    this.#random = random
    this.#on = new Set(kinds.filter(() => random.chance(0.65)))
  }

  get total(): number {
    let total = 0
    for (const count of this.hits.values()) total += count
    return total
  }

  /** From now on nothing goes wrong any more. */
  heal(): void {
    this.#healed = true
  }

  /** Does a fault of this kind happen now? Counted when it does. */
  strikes(kind: FaultKind, probability: number): boolean {
    if (this.#healed || !this.#on.has(kind) || !this.#random.chance(probability)) return false
    this.count(kind)
    return true
  }

  isOn(kind: FaultKind): boolean {
    return !this.#healed && this.#on.has(kind)
  }

  count(kind: FaultKind): void {
    this.hits.set(kind, (this.hits.get(kind) ?? 0) + 1)
  }

  /** `oddness`: how much more often than usual something happens to it. */
  request(oddness = 1): Leg {
    const slow = this.strikes('request-delayed', 0.03 * oddness)
    return {
      delayMs: this.#random.next() * 2 + (slow ? this.#random.next() * 4_000 : 0),
      lost: this.strikes('request-lost', 0.015),
      doubledAfterMs: this.strikes('request-doubled', 0.015 * oddness) ? this.#random.next() * 3_000 : null,
    }
  }

  reply(): Leg {
    const slow = this.strikes('reply-delayed', 0.03)
    return {
      delayMs: this.#random.next() * 2 + (slow ? this.#random.next() * 4_000 : 0),
      lost: this.strikes('reply-lost', 0.02),
      doubledAfterMs: null,
    }
  }
}
