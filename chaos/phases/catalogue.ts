// All scenarios, in the order in which they are played.
import type { Scenario } from '../scenario.ts'
import { HYBRID_SCENARIOS } from './hybrid.ts'
import { LINK_SCENARIOS } from './links.ts'
import { LOAD_SCENARIOS } from './load.ts'
import { POSTGRES_SCENARIOS } from './postgres.ts'
import { REDIS_SCENARIOS } from './redis.ts'
import { WORKER_SCENARIOS } from './workers.ts'

export const SCENARIOS: readonly Scenario[] = [
  ...WORKER_SCENARIOS,
  ...LOAD_SCENARIOS,
  ...POSTGRES_SCENARIOS,
  ...REDIS_SCENARIOS,
  ...LINK_SCENARIOS,
  ...HYBRID_SCENARIOS,
]
