// Chance from a seed: the same seed gives the same ids and the same jitter, run after run.
import { checkInteger } from '../core/names.ts'
import type { Clock } from '../runtime/clock.ts'
import { createIdSource, createRuntime } from '../runtime/runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Logger } from '../runtime/logger.ts'

export const DEFAULT_SEED = 1

export function seededRuntime(clock: Clock, seed: number, logger: Logger | undefined): Runtime {
  checkInteger(seed, 'seed', 0, 0xffff_ffff)
  return createRuntime({
    clock,
    random: seeded(seed),
    // A source of its own: one more job must not change the jitter of the others.
    newId: createIdSource(clock, seeded(seed ^ 0x5bd1_e995)),
    ...(logger !== undefined && { logger }),
  })
}

/** mulberry32: 32 bits of state, good enough to spread jitter and to make ids differ. */
export function seeded(seed: number): () => number {
  let state = seed | 0
  return () => {
    state = (state + 0x6d2b_79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 0x1_0000_0000
  }
}
