// All scenarios, in the order in which they are played.
import type { Scenario } from '../scenario.ts'
import { CLOCK_SCENARIOS } from './clocks.ts'
import { CROWD_SCENARIOS } from './crowds.ts'
import { DISK_SCENARIOS } from './disk.ts'
import { FAILOVER_SCENARIOS } from './failover.ts'
import { GARBAGE_SCENARIOS } from './garbage.ts'
import { HANDLER_SCENARIOS } from './handlers.ts'
import { HYBRID_SCENARIOS } from './hybrid.ts'
import { LINK_SCENARIOS } from './links.ts'
import { LOAD_SCENARIOS } from './load.ts'
import { POSTGRES_SCENARIOS } from './postgres.ts'
import { REDIS_MEMORY_SCENARIOS } from './redis-memory.ts'
import { REDIS_SCENARIOS } from './redis.ts'
import { SIDE_SCENARIOS } from './sides.ts'
import { WORKER_SCENARIOS } from './workers.ts'

export const SCENARIOS: readonly Scenario[] = [
  ...WORKER_SCENARIOS,
  ...HANDLER_SCENARIOS,
  ...CLOCK_SCENARIOS,
  ...LOAD_SCENARIOS,
  ...CROWD_SCENARIOS,
  ...SIDE_SCENARIOS,
  ...POSTGRES_SCENARIOS,
  ...FAILOVER_SCENARIOS,
  ...DISK_SCENARIOS,
  ...REDIS_SCENARIOS,
  ...REDIS_MEMORY_SCENARIOS,
  ...LINK_SCENARIOS,
  ...HYBRID_SCENARIOS,
  ...GARBAGE_SCENARIOS,
]
