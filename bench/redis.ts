// The Redis servers of a benchmark, one per variant: as the tests start them, on loopback, each with a directory of
// its own and the default configuration but for what `notes` says. They are gone at the end.
import { setTimeout as pause } from 'node:timers/promises'
import { startRedis } from '../tests/support/redis-server.ts'
import type { RedisProcess } from '../tests/support/redis-server.ts'
import type { RedisVariant } from './backends.ts'
import { infoField, isRewriting } from './redis-info.ts'

const REWRITE_MAX_MS = 60_000
const REWRITE_POLL_MS = 20
/** Not by itself: it would do so in the middle of a measurement or not, which took a third off a rate and was luck. */
const REWRITES = ['auto-aof-rewrite-percentage', '0'] as const

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
  if (isLogged) await server.command('CONFIG', 'SET', ...REWRITES)
  const setUp = isLogged
    ? `save "", appendonly yes, appendfsync everysec, ${REWRITES.join(' ')} (the log is written anew between measurements)`
    : 'save "", appendonly no'
  return {
    url: server.url,
    pid: server.pid,
    dir: server.dir,
    version: infoField(String(await server.command('INFO', 'server')), 'redis_version'),
    notes: [`Redis (${variant}) has its default configuration but for ${setUp}; it shares the machine too`],
    async clean() {
      await server.command('FLUSHALL', 'SYNC')
      await server.command('SCRIPT', 'FLUSH', 'SYNC')
      if (isLogged) await rewriteLog(server)
    },
    stop: () => server.stop(),
  }
}

async function rewriteLog(server: RedisProcess): Promise<void> {
  const deadlineMs = performance.now() + REWRITE_MAX_MS
  await server.command('BGREWRITEAOF')
  while (isRewriting(String(await server.command('INFO', 'persistence')))) {
    if (performance.now() > deadlineMs) throw new Error('Redis does not finish rewriting its log')
    await pause(REWRITE_POLL_MS)
  }
}
