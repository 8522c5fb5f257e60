// The memory of Redis, in every process that may push: at 80 % the window shrinks, so that Redis never has to refuse or evict.
import { bounded } from '../../runtime/bounded.ts'
import { createLoop } from '../../runtime/service.ts'
import type { Service } from '../../runtime/service.ts'
import type { Hybrid } from './hybrid.ts'

const MEMORY_MS = 5_000
/** While it is tight: when there is room again it is used. */
const TIGHT_MS = 1_000
/** From here on the window shrinks; at the second the relay alone brings jobs, a few at a time. */
const MEMORY_TIGHT = 0.8
const MEMORY_FULL = 0.95

export function createMemoryWatch(hybrid: Hybrid): Service {
  const { runtime } = hybrid
  return createLoop({ name: 'memory watch', runtime, pass: () => watchMemory(hybrid) })
}

async function watchMemory(hybrid: Hybrid): Promise<number> {
  const { used, max } = await bounded(hybrid.runtime.clock, hybrid.times.raceMs, 'Redis', hybrid.race.memory())
  const ratio = max === 0 ? 0 : used / max
  const share = Math.min(Math.max((MEMORY_FULL - ratio) / (MEMORY_FULL - MEMORY_TIGHT), 0), 1)
  if (share < 1 && hybrid.windowShare === 1) {
    hybrid.runtime.logger.warn(
      { used, max },
      'the memory of Redis is 80 % full: fewer jobs wait in it, more in PostgreSQL',
    )
  }
  hybrid.windowShare = share
  return share < 1 ? TIGHT_MS : MEMORY_MS
}
