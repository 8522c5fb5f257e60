// The hybrid keeps the promises of the contract on real servers: PostgreSQL 18 and Redis.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
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
import { HYBRID_SKIPS } from './skips.ts'
import { stepBackend } from './step-backend.ts'

let database: TestDatabase

beforeAll(async () => {
  const { url } = await sharedRedis()
  const make = (options: Parameters<typeof postgresWithLedger>[0]): Backend => {
    const runtime = createRuntime()
    const { backend: store, ledger } = postgresWithLedger(options)
    const link = createLink({ server: { url }, name: 'conformance', connectTimeoutMs: 5_000, logger: silentLogger })
    return stepBackend({
      runtime,
      store,
      ledger,
      race: redisRace({ link, prefix: `t${randomUUID().slice(0, 8)}` }),
      times: { ...HYBRID_TIMES, watchMs: 2, unbornMs: 20 },
      threadMonoMs: () => runtime.clock.monoMs(),
    })
  }
  database = await createTestDatabase({ version: 18, make })
})

afterAll(() => database.close())

backendSuite({ name: 'hybrid on PostgreSQL 18 and Redis', skips: HYBRID_SKIPS, create: () => database.create() })
