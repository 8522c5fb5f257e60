// The servers of a benchmark: PostgreSQL and Redis as far as the plan needs them, in one directory that is removed at
// the end.
import { RUN_DIRECTORY_VARIABLE, makeRunDirectory, removeRunDirectory } from '../tests/support/run-directory.ts'
import { BACKENDS } from './backends.ts'
import type { RedisVariant } from './backends.ts'
import type { Order } from './child.ts'
import { startPostgres } from './postgres.ts'
import type { Equipment } from './report.ts'
import { startBenchRedis } from './redis.ts'
import type { BenchRedis } from './redis.ts'

export interface Servers {
  /** For the report. */
  readonly equipment: Pick<Equipment, 'postgres' | 'redis'>
  addressesOf(backend: string): Pick<Order, 'postgres' | 'redis'>
  /** After each measurement. */
  clean(backend: string): Promise<void>
  stop(): Promise<void>
}

/** Those that these backends use. */
export async function startServers(backends: ReadonlySet<string>): Promise<Servers> {
  const entries = [...backends].flatMap((backend) => BACKENDS[backend] ?? [])
  const directory = await makeRunDirectory()
  process.env[RUN_DIRECTORY_VARIABLE] = directory
  const needsPostgres = entries.some(({ usesPostgres }) => usesPostgres)
  if (needsPostgres) process.stderr.write('starting PostgreSQL and warming its log\n')
  const postgres = needsPostgres ? await startPostgres() : undefined
  const redis = new Map<RedisVariant, BenchRedis>()
  for (const variant of new Set(entries.flatMap((entry) => entry.redis ?? []))) {
    process.stderr.write(`starting Redis (${variant})\n`)
    redis.set(variant, await startBenchRedis(variant))
  }
  const usedBy = (backend: string) => {
    const entry = BACKENDS[backend]
    return {
      ...(postgres && entry?.usesPostgres && { postgres }),
      ...(entry?.redis && { redis: redis.get(entry.redis)! }),
    }
  }
  const [anyRedis] = redis.values()
  return {
    equipment: {
      postgres,
      redis: anyRedis && { version: anyRedis.version, notes: [...redis.values()].flatMap(({ notes }) => notes) },
    },
    addressesOf(backend) {
      const used = usedBy(backend)
      return {
        ...(used.postgres && { postgres: { url: used.postgres.url, pid: used.postgres.pid } }),
        ...(used.redis && { redis: { url: used.redis.url, pid: used.redis.pid } }),
      }
    },
    async clean(backend) {
      const used = usedBy(backend)
      await Promise.all([used.postgres?.clean(), used.redis?.clean()])
    },
    async stop() {
      postgres?.forget()
      for (const server of redis.values()) await server.stop()
      await removeRunDirectory(directory)
    },
  }
}
