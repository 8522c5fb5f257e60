// What happens to Redis: wiped, restarted with or without its data, put back to an old state, replaced by a replica
// that lacks the last writes, gone for a while.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { until } from '../../tests/postgres/faults/until.ts'
import { startReplicaOf } from '../../tests/support/redis-replica.ts'
import type { RedisProcess } from '../../tests/support/redis-server.ts'
import { setBack, unheard, wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import { crowd } from '../crowd.ts'

const ON_REDIS = ['redis', 'hybrid'] as const
const FORGETS = 'Redis alone keeps what Redis keeps'
/** The hybrid promises a new start within the second of the default (docs/delivery-contract.md). */
const PROMISE = { recoveryMaxS: { redis: 5 } } as const
const GONE_TTLS = 1.2

export const REDIS_SCENARIOS: readonly Scenario[] = [
  {
    name: 'redis-wipe',
    says: 'FLUSHALL while jobs wait',
    backends: ON_REDIS,
    peers: 'usual',
    async strike(stage, { ttlMs }) {
      await crowd(stage)
      const atMs = Date.now()
      await stage.servers.redis.command('FLUSHALL')
      return unheard(stage.place.backend, atMs, ttlMs)
    },
    promise: PROMISE,
    mayLose: { redis: `${FORGETS}: FLUSHALL empties it` },
  },
  {
    name: 'redis-restart',
    says: 'Redis gets SIGKILL while nothing waits to be written to its log, and comes back with it',
    backends: ON_REDIS,
    peers: 'asked',
    async strike({ servers }) {
      await untilLogged(servers.redis)
      const atMs = Date.now()
      await servers.redis.restart()
      return { atMs, backMs: Date.now(), robbed: [] }
    },
    promise: PROMISE,
  },
  {
    name: 'redis-restart-empty',
    says: 'Redis gets SIGKILL while jobs wait, and comes back without data',
    backends: ON_REDIS,
    peers: 'usual',
    async strike(stage, { ttlMs }) {
      await crowd(stage)
      const atMs = Date.now()
      await stage.servers.redis.restart({ keepData: false })
      return unheard(stage.place.backend, atMs, ttlMs)
    },
    promise: PROMISE,
    mayLose: { redis: `${FORGETS}: its data was removed` },
  },
  {
    name: 'redis-old-snapshot',
    says: 'Redis gets SIGKILL and comes back with the data of a second before',
    backends: ON_REDIS,
    peers: 'asked',
    async strike(stage, { ttlMs }) {
      const { redis } = stage.servers
      const sinceMs = Date.now()
      const [data, copy] = [join(redis.dir, 'appendonlydir'), join(redis.dir, 'old')]
      rmSync(copy, { recursive: true, force: true })
      cpSync(data, copy, { recursive: true })
      await wait(1_000)
      const atMs = Date.now()
      await redis.kill()
      rmSync(data, { recursive: true })
      cpSync(copy, data, { recursive: true })
      await redis.restart()
      return setBack(stage.place.backend, atMs, ttlMs, sinceMs)
    },
    promise: PROMISE,
    mayLose: { redis: `${FORGETS}: what came after the snapshot is gone` },
  },
  {
    name: 'replica-promoted',
    says: 'a replica takes over that has missed the last second',
    backends: ON_REDIS,
    peers: 'asked',
    async strike(stage, { ttlMs }) {
      const replica = await startReplicaOf(stage.servers.redis)
      const sinceMs = Date.now()
      await replica.promote()
      await wait(1_000)
      const atMs = Date.now()
      stage.moveTo({ ...stage.place, redis: replica.url })
      return { ...setBack(stage.place.backend, atMs, ttlMs, sinceMs), close: () => replica.stop() }
    },
    promise: PROMISE,
    mayLose: { redis: `${FORGETS}: the replica had not heard of it` },
  },
  {
    name: 'redis-gone',
    says: 'Redis is killed, away for a while, and comes back empty (hybrid) or with its log (Redis alone)',
    backends: ON_REDIS,
    peers: 'usual',
    async strike({ servers, place: { backend } }, { phaseMs, ttlMs }) {
      const atMs = Date.now()
      await servers.redis.kill()
      // Nobody could say that he is alive.
      await wait(Math.max(phaseMs, ttlMs * GONE_TTLS))
      await servers.redis.restart({ keepData: backend === 'redis' })
      return unheard(backend, atMs, ttlMs)
    },
    // Workers of the hybrid claim from PostgreSQL meanwhile.
    promise: { ...PROMISE, ratioMin: { hybrid: 0.9 } },
  },
]

/**
 * While its log is being synced Redis answers before it has written (everysec: the last second may be lost). What is lost
 * then is another scenario.
 */
async function untilLogged(redis: RedisProcess): Promise<void> {
  await until(async () => {
    const info = String(await redis.command('INFO', 'persistence'))
    return info.includes('aof_buffer_length:0\r') && info.includes('aof_pending_bio_fsync:0\r')
  }, 'Redis to have written its log')
}
