// The Redis servers of a benchmark, one per variant: as the tests start them, on loopback, each with a directory of
// its own and the default configuration but for what `notes` says. They are gone at the end.
import { startRedis } from '../tests/support/redis-server.ts'
import type { RedisVariant } from './backends.ts'
import { infoField } from './redis-info.ts'
import { rewriteLog } from './redis-log.ts'

export interface BenchRedis {
  readonly url: string
  readonly pid: number
  readonly dir: string
  readonly version: string
  readonly notes: readonly string[]
  /** Forgets everything and writes the log anew, so that the next measurement starts from rest. */
  clean(): Promise<void>
  stop(): Promise<void>
}

export async function startBenchRedis(variant: RedisVariant): Promise<BenchRedis> {
  const isLogged = variant === 'aof'
  const server = await startRedis({ appendOnly: isLogged })
  const setUp = isLogged ? 'save "", appendonly yes, appendfsync everysec' : 'save "", appendonly no'
  return {
    url: server.url,
    pid: server.pid,
    dir: server.dir,
    version: infoField(String(await server.command('INFO', 'server')), 'redis_version'),
    notes: [`Redis (${variant}) has its default configuration but for ${setUp}; it shares the machine too`],
    async clean() {
      await server.command('FLUSHALL', 'SYNC')
      await server.command('SCRIPT', 'FLUSH', 'SYNC')
      // Otherwise the log of one system would grow to the size at which Redis rewrites it while another is measured.
      await rewriteLog((...command) => server.command(...command))
    },
    stop: () => server.stop(),
  }
}
