// The hybrid keeps the promises of the contract on real servers, PostgreSQL 18 and Redis: step by step, and by the ways that are
// taken under load.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { redisRace } from '../../src/backends/hybrid/redis-race.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { postgresWithLedger } from '../../src/backends/postgres/backend.ts'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { backendSuite } from '../conformance/suite.ts'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { sharedRedis } from '../support/redis-server.ts'
import { HYBRID_FAST_SKIPS, HYBRID_SKIPS } from './skips.ts'
import { fastJobs, stepBackend } from './step-backend.ts'

let database: TestDatabase
let underLoad: TestDatabase

beforeAll(async () => {
  const { url } = await sharedRedis()
  const make =
    (isFast: boolean) =>
    (options: Parameters<typeof postgresWithLedger>[0]): Backend => {
      const runtime = createRuntime()
      const { backend: store, ledger } = postgresWithLedger(options)
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
  database = await createTestDatabase({ version: 18, make: make(false) })
  underLoad = await createTestDatabase({ version: 18, make: make(true) })
})

afterAll(async () => {
  await database.close()
  await underLoad.close()
})

backendSuite({ name: 'hybrid on PostgreSQL 18 and Redis', skips: HYBRID_SKIPS, create: () => database.create() })

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
    name: 'hybrid on PostgreSQL 18 and Redis',
    skips: HYBRID_FAST_SKIPS,
    areas: AREAS,
    create: () => underLoad.create(),
  })

  // After all of them, which are run in this order.
  test('jobs were minted by their insert', () => expect(fastJobs.count).toBeGreaterThan(1_000))
})
