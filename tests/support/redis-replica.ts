// A replica of a Redis server, and the ways in which an acknowledged write gets lost: Redis answers before its replicas
// have heard of it, so what the replica missed is gone when it is promoted.
import { startRedis } from './redis-server.ts'
import type { RedisProcess, RedisServerOptions } from './redis-server.ts'
import { until } from './until.ts'

export interface RedisReplica extends RedisProcess {
  /** Resolves when it has everything that the primary has acknowledged. */
  caughtUp(): Promise<void>
  /** It hears nothing more and keeps what it has: writes from now on are lost by a promotion. */
  cut(): Promise<void>
  /** The opposite; what it wrote by itself meanwhile is dropped. */
  follow(primary: RedisProcess): Promise<void>
  /** It answers nobody and applies nothing for a while, but what was sent to it waits in its socket. */
  stall(ms: number): Promise<void>
  /** It is a primary from now on. */
  promote(): Promise<void>
}

/** Nobody listens there. */
const NOBODY = 1

export async function startReplicaOf(primary: RedisProcess, options: RedisServerOptions = {}): Promise<RedisReplica> {
  let followed = primary
  const server = await startRedis({
    ...options,
    config: {
      replicaof: `127.0.0.1 ${primary.port}`,
      // Ping often, so that a broken link is seen soon.
      'repl-ping-replica-period': '1',
      'enable-debug-command': 'local',
      ...options.config,
    },
  })

  async function caughtUp(): Promise<void> {
    await until('the replica to have what its primary has', async () => {
      const there = await replicationOf(followed)
      const here = await replicationOf(server)
      return (
        here.get('master_link_status') === 'up' &&
        here.get('master_replid') === there.get('master_replid') &&
        Number(here.get('slave_repl_offset')) >= Number(there.get('master_repl_offset'))
      )
    })
  }

  async function follow(other: RedisProcess): Promise<void> {
    followed = other
    await server.command('REPLICAOF', '127.0.0.1', other.port)
    await caughtUp()
  }

  try {
    await caughtUp()
  } catch (error) {
    await server.stop()
    throw error
  }
  return {
    ...server,
    // A restart changes it.
    get pid() {
      return server.pid
    },
    caughtUp,
    follow,
    async cut() {
      await server.command('REPLICAOF', '127.0.0.1', NOBODY)
    },
    async stall(ms) {
      await server.command('DEBUG', 'SLEEP', ms / 1000)
    },
    async promote() {
      await server.command('REPLICAOF', 'NO', 'ONE')
    },
  }
}

/** What INFO says about replication, by name. */
export async function replicationOf(server: RedisProcess): Promise<ReadonlyMap<string, string>> {
  const info = String(await server.command('INFO', 'replication'))
  return new Map(
    info.split(/\r?\n/).flatMap((line) => {
      const [name, ...rest] = line.split(':')
      return rest.length > 0 ? [[name!, rest.join(':')] as const] : []
    }),
  )
}
