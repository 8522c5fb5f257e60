// The memory of Redis is at its limit: it refuses writes, or makes room by throwing keys away.
import { until } from '../../tests/postgres/faults/until.ts'
import type { RedisProcess } from '../../tests/support/redis-server.ts'
import { needless, refusals, refusesEnqueues, unclear } from '../refusals.ts'
import { wait } from '../scenario.ts'
import type { Scenario } from '../scenario.ts'
import { epochOf } from '../through-redis.ts'

const REACTION_S = 5
const FULL_TTLS = 1.2
const TIGHTEN_EVERY_MS = 250

export const REDIS_MEMORY_SCENARIOS: readonly Scenario[] = [
  {
    name: 'redis-full',
    says: 'Redis is far beyond its maxmemory (noeviction) for longer than a ttl: the hybrid goes on without it, Redis alone refuses jobs and says why',
    backends: ['redis', 'hybrid'],
    peers: 'asked',
    async strike(stage, { phaseMs, ttlMs }) {
      const { redis } = stage.servers
      const isAlone = stage.place.backend === 'redis'
      const before = refusals(stage).length
      const atMs = Date.now()
      try {
        await limit(redis, Math.floor((await memoryOf(redis)).used / 2))
        await refusesWrites(redis)
        if (isAlone) await refusesEnqueues(stage, before)
        await wait(Math.max(phaseMs, ttlMs * FULL_TTLS))
        await refusesWrites(redis)
      } finally {
        await limit(redis, 0)
      }
      const told = refusals(stage)
      const flaws = isAlone ? unclear(told, before, /memory/) : needless(told, before)
      return { atMs, backMs: Date.now(), robbed: [], flaws }
    },
    promise: { recoveryMaxS: REACTION_S, ratioMin: { hybrid: 0.8 } },
  },
  {
    name: 'redis-evicts',
    says: 'Redis has less memory than it uses and throws keys away (allkeys-lru), tokens among them, four times a second',
    backends: ['hybrid'],
    // Alone, or with jobs of others in it, an evicting Redis loses them: every one of them says so.
    peers: 'never',
    async strike(stage, { phaseMs }) {
      const { servers, place } = stage
      const { redis } = servers
      const before = refusals(stage).length
      const epoch = await epochOf(place)
      const evicted = await evictedBy(redis)
      const atMs = Date.now()
      await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'allkeys-lru')
      try {
        const tighten = async (): Promise<void> => {
          const { used, dataset } = await memoryOf(redis)
          await limit(redis, used - Math.floor(dataset / 2))
          await wait(TIGHTEN_EVERY_MS)
        }
        while (Date.now() < atMs + phaseMs) await tighten()
        // Not only what is there for the eye.
        await until(async () => {
          await tighten()
          return (await evictedBy(redis)) > evicted && (await epochOf(place)) > epoch
        }, 'a part of the queue to be evicted')
      } finally {
        await limit(redis, 0)
        await redis.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
      }
      const flaws = needless(refusals(stage), before)
      return { atMs, backMs: Date.now(), robbed: [], flaws }
    },
    promise: { recoveryMaxS: REACTION_S, ratioMin: 0.8 },
  },
]

async function limit(redis: RedisProcess, bytes: number): Promise<void> {
  await redis.command('CONFIG', 'SET', 'maxmemory', bytes)
}

/** Or the fault is none. */
async function refusesWrites(redis: RedisProcess): Promise<void> {
  const answer = await redis.command('SET', 'chaos-probe', '1').catch(String)
  if (!String(answer).includes('OOM')) throw new Error(`Redis is not full: it answers ${String(answer)}`)
}

async function memoryOf(redis: RedisProcess): Promise<{ readonly used: number; readonly dataset: number }> {
  const info = String(await redis.command('INFO', 'memory'))
  return { used: fieldOf(info, 'used_memory'), dataset: fieldOf(info, 'used_memory_dataset') }
}

async function evictedBy(redis: RedisProcess): Promise<number> {
  return fieldOf(String(await redis.command('INFO', 'stats')), 'evicted_keys')
}

function fieldOf(info: string, name: string): number {
  return Number(new RegExp(`^${name}:(\\d+)`, 'm').exec(info)?.[1] ?? 0)
}
