// Everything a process takes from the outside, as one value: time, randomness, ids, log. The simulator
// passes its own, so the same code runs on virtual time from a seed.
import { V7Generator } from 'uuidv7'
import { systemClock } from './clock.ts'
import type { Clock } from './clock.ts'
import { hitFailpoint } from './failpoints.ts'
import type { Failpoint } from './failpoints.ts'
import { silentLogger } from './logger.ts'
import type { Logger } from './logger.ts'

export interface Runtime {
  readonly clock: Clock
  /** A number in [0, 1). */
  readonly random: () => number
  /** A new UUIDv7; ids of one process rise. */
  readonly newId: () => string
  readonly logger: Logger
  /** A named point at which the simulator, or a test, may crash or freeze the process. Does nothing in production. */
  readonly failpoint: (name: Failpoint) => void
}

export function createRuntime(overrides: Partial<Runtime> = {}): Runtime {
  const clock = overrides.clock ?? systemClock
  const random = overrides.random ?? Math.random
  return {
    clock,
    random,
    newId: overrides.newId ?? createIdSource(clock, overrides.random),
    logger: overrides.logger ?? silentLogger,
    failpoint: overrides.failpoint ?? hitFailpoint,
  }
}

/** UUIDv7 from the given clock; cryptographic randomness unless a source is given. */
export function createIdSource(clock: Clock, random?: () => number): () => string {
  const nextUint32 = random === undefined ? cryptoWords() : (): number => Math.floor(random() * 0x1_0000_0000)
  const generator = new V7Generator({ nextUint32 })
  return () => generator.generateOrResetWithTs(Math.floor(clock.nowMs())).toString()
}

/** Fetched many at a time: asking the system for each id takes longer than making it. */
function cryptoWords(): () => number {
  const words = new Uint32Array(1_024)
  let next = words.length
  return () => {
    if (next === words.length) {
      crypto.getRandomValues(words)
      next = 0
    }
    return words[next++]!
  }
}
