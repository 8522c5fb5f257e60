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
/** Of the hybrid: what may befall its Redis, and the server behind its PostgreSQL. */
export const REDIS_FAULT_KINDS = [
  'redis-flushed',
  'redis-flushed-beside-frozen',
  'redis-suffix-lost',
  'redis-old-copy',
  'redis-other-and-back',
  'redis-evicted',
  'redis-outage',
  'redis-full',
  'redis-read-only',
  'redis-other-server',
  'redis-reopened',
  'postgres-moved',
] as const
export type FaultKind = (typeof FAULT_KINDS)[number] | (typeof REDIS_FAULT_KINDS)[number]

export interface Leg {
  readonly delayMs: number
  readonly lost: boolean
}

export interface RequestLeg extends Leg {
  /** A second copy arrives this much later. */
  readonly doubledAfterMs: number | null
}

/** How likely it is that something happens to a call, and how long it takes then. */
export interface CallOdds {
  readonly delayed: number
  readonly delayMs: readonly [number, number]
  readonly doubled: number
  readonly doubledMs: readonly [number, number]
  readonly lost: number
  readonly replyDelayed: number
  readonly replyDelayMs: readonly [number, number]
  readonly replyLost: number
}

export const USUAL_ODDS: CallOdds = {
  delayed: 0.03,
  delayMs: [0, 4_000],
  doubled: 0.015,
  doubledMs: [0, 3_000],
  lost: 0.015,
  replyDelayed: 0.03,
  replyDelayMs: [0, 4_000],
  replyLost: 0.02,
}

/** Where the focus is on something else. */
export const MILD_ODDS: CallOdds = {
  delayed: 0.005,
  delayMs: [0, 1_500],
  doubled: 0.005,
  doubledMs: [0, 1_500],
  lost: 0.003,
  replyDelayed: 0.005,
  replyDelayMs: [0, 1_500],
  replyLost: 0.003,
}

export class Faults {
  readonly hits = new Map<FaultKind, number>()
  readonly #random: Random
  readonly #on: ReadonlySet<FaultKind>
  #healed = false

  constructor(random: Random, on: ReadonlySet<FaultKind>) {
    this.#random = random
    this.#on = on
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

  request({ delayed, delayMs, lost, doubled, doubledMs }: CallOdds): RequestLeg {
    return {
      delayMs: this.#travelMs('request-delayed', delayed, delayMs),
      lost: this.strikes('request-lost', lost),
      doubledAfterMs: this.strikes('request-doubled', doubled) ? this.#within(doubledMs) : null,
    }
  }

  reply({ replyDelayed, replyDelayMs, replyLost }: CallOdds): Leg {
    return {
      delayMs: this.#travelMs('reply-delayed', replyDelayed, replyDelayMs),
      lost: this.strikes('reply-lost', replyLost),
    }
  }

  #travelMs(kind: FaultKind, probability: number, slowMs: readonly [number, number]): number {
    const slow = this.strikes(kind, probability)
    return this.#random.next() * 2 + (slow ? this.#within(slowMs) : 0)
  }

  #within([minMs, maxMs]: readonly [number, number]): number {
    return minMs + this.#random.next() * (maxMs - minMs)
  }
}
