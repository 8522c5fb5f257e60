// The hybrid keeps the promises of the contract on real servers, PostgreSQL 18 and Redis: step by step, and by the ways that are
// taken under load.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisRace } from '../../src/backends/hybrid/redis-race.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import type { PostgresOptions } from '../../src/backends/postgres/backend.ts'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { AREA_NAMES, backendSuite } from '../conformance/suite.ts'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { keepStore, storeOf } from './kept-store.ts'
import type { KeptStore } from './kept-store.ts'
import { HYBRID_FAST_SKIPS, HYBRID_SKIPS } from './skips.ts'
import { fastJobs, stepBackend } from './step-backend.ts'

let database: TestDatabase
let underLoad: TestDatabase
let onItsOwn: TestDatabase
const keptStores: KeptStore[] = []

beforeAll(async () => {
  const { url } = await sharedRedis()
  const make = (isFast: boolean, kept?: KeptStore) => {
    if (kept !== undefined) keptStores.push(kept)
    return (options: PostgresOptions): Backend => {
      const runtime = createRuntime()
      const { store, ledger } = kept?.open(options) ?? storeOf(options)
      const link = createLink({ server: { url }, name: 'conformance', connectTimeoutMs: 5_000, logger: silentLogger })
      return stepBackend({
        isFast,
        runtime,
        store,
        ledger,
        race: redisRace({ link, prefix: `t${randomUUID().slice(0, 8)}` }),
        times: { ...HYBRID_TIMES, watchMs: 2 },
        threadMonoMs: () => runtime.clock.monoMs(),
      })
    }
  }
  database = await createTestDatabase({ version: 18, make: make(false, keepStore()) })
  underLoad = await createTestDatabase({ version: 18, make: make(true, keepStore()) })
  onItsOwn = await createTestDatabase({ version: 18, make: make(false) })
})

afterAll(async () => {
  for (const kept of keptStores) await kept.close()
  for (const each of [database, underLoad, onItsOwn]) await each.close()
})

/** Its tests stop what others go on with. */
const LIFECYCLE = 'lifecycle'
const NAME = 'hybrid on PostgreSQL 18 and Redis'

backendSuite({
  name: NAME,
  skips: HYBRID_SKIPS,
  areas: AREA_NAMES.filter((area) => area !== LIFECYCLE),
  create: () => database.create(),
})
backendSuite({ name: NAME, areas: [LIFECYCLE], create: () => onItsOwn.create() })

/** Where jobs are inserted, claimed and ended, as far as only the servers can tell; all areas run over the models. */
const AREAS = [
  'insert',
  'bulk',
  'claim',
  'apply: edges',
  'apply: verdicts',
  'apply: stale leases',
  'cancel and remove',
  'concurrency',
]

describe('under load', () => {
  backendSuite({
    name: NAME,
    skips: HYBRID_FAST_SKIPS,
    areas: AREAS,
    create: () => underLoad.create(),
  })

  // After all of them, which are run in this order.
  test('jobs were minted by their insert', () => expect(fastJobs.count).toBeGreaterThan(1_000))
})
