// What the feature tests on the hybrid stand on: a database of PostgreSQL and a prefix of Redis per test.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll } from 'vitest'
import { createMigrator } from '../../../src/backends/postgres/migrate.ts'
import { hybrid } from '../../../src/index.ts'
import type { Backend, ClaimMode, HybridOptions } from '../../../src/index.ts'
import { openPlace, withoutThread } from '../../stores/place.ts'
import type { OpenPlace } from '../../stores/place.ts'
import { freshDatabase, sharedPostgres } from '../../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../../support/postgres-server.ts'
import { sharedRedis } from '../../support/redis-server.ts'

export interface HybridPlaceOptions {
  /** Another Redis than the one that all tests share. */
  readonly redisUrl?: () => string
  readonly claims?: ClaimMode
  /** Of all keys, on a Redis of one's own. Default: one per test. */
  readonly prefix?: string
  readonly window?: Pick<HybridOptions, 'window' | 'windowTotal'>
}

/** Call it at the top of a test file. */
export function useHybrid(options: HybridPlaceOptions = {}): OpenPlace {
  const { redisUrl, claims = 'token', window = {} } = options
  let server: PostgresServer
  let template: FreshDatabase

  beforeAll(async () => {
    server = await sharedPostgres(18)
    template = await freshDatabase(server)
    const migrator = createMigrator({ url: template.url })
    await migrator.up()
    await migrator.close()
  })
  afterAll(() => template.drop())

  return async () => {
    const database = await freshDatabase(server, template.name)
    const url = redisUrl?.() ?? (await sharedRedis()).url
    const prefix = options.prefix ?? `t${randomUUID().slice(0, 8)}`
    const backend = (other?: string): Backend => {
      const postgres = { url: database.url, poolMax: 4, ...(other !== undefined && { schema: other }) }
      return withoutThread(
        hybrid({
          postgres,
          redis: { url },
          claims,
          prefix: other === undefined ? prefix : `${prefix}.${other}`,
          ...window,
        }),
      )
    }
    return openPlace({ url: database.url, redis: url, prefix }, backend, () => database.drop())
  }
}
