// The PostgreSQL and the Redis of a run. One each, used by one cell after the other; a cell may restart or wipe them.
import { freshDatabase, startTestPostgres } from '../tests/support/postgres-server.ts'
import type { TestPostgres } from '../tests/support/postgres-server.ts'
import { startRedis } from '../tests/support/redis-server.ts'
import type { RedisProcess } from '../tests/support/redis-server.ts'
import { steadyPort } from './steady-port.ts'
import type { Backend, Place } from './system.ts'

export interface Servers {
  readonly postgres: TestPostgres
  readonly redis: RedisProcess
  /** An empty database and an empty Redis, as far as the backend uses them. */
  freshPlace(backend: Backend): Promise<Place>
  /** The same Redis, and another PostgreSQL that takes so many connections; its `close` ends that one alone. */
  wide(connectionsMax: number): Promise<Servers>
  close(): Promise<void>
}

export const CONNECTIONS_MAX = 100

/** fsync and synchronous_commit are on; Redis has its log with everysec. */
export async function startServers(): Promise<Servers> {
  const [postgres, redis] = await Promise.all([
    startPostgres(CONNECTIONS_MAX),
    startRedis({ port: await steadyPort() }),
  ])
  return serversOf(postgres, redis, async () => void (await Promise.all([postgres.stop('immediate'), redis.stop()])))
}

async function startPostgres(connectionsMax: number): Promise<TestPostgres> {
  const settings = { max_connections: String(connectionsMax) }
  return await startTestPostgres({ version: 18, settings, port: await steadyPort() })
}

function serversOf(postgres: TestPostgres, redis: RedisProcess, close: () => Promise<void>): Servers {
  return {
    postgres,
    redis,
    async freshPlace(backend) {
      // A cell that failed may have left them down.
      await postgres.start()
      await redis.command('FLUSHALL').catch(() => redis.restart({ keepData: false }))
      const { url } = await freshDatabase(postgres)
      return {
        backend,
        ...(backend !== 'redis' && { postgres: url }),
        ...(backend !== 'postgres' && { redis: redis.url }),
      }
    },
    async wide(connectionsMax) {
      const other = await startPostgres(connectionsMax)
      return serversOf(other, redis, () => other.stop('immediate'))
    },
    close,
  }
}
