// What the tests of the Redis backend share: links that are closed at the end of a file, and patience.
import { randomBytes } from 'node:crypto'
import { afterAll } from 'vitest'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import type { LinkOptions } from '../../src/backends/redis/ioredis-link.ts'
import type { RedisLink, RedisServer } from '../../src/backends/redis/link.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess, RedisServerOptions } from '../support/redis-server.ts'

/** At the top of a test file: servers and links that end with it. */
export function useRedis() {
  const ends: (() => Promise<void>)[] = []
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
  })

  return {
    async server(options?: RedisServerOptions): Promise<RedisProcess> {
      const server = await startRedis(options)
      ends.push(() => server.stop())
      return server
    },
    link(server: RedisServer, options: Partial<LinkOptions> = {}): RedisLink {
      const link = createLink({ server, name: newName(), connectTimeoutMs: 2_000, logger: silentLogger, ...options })
      ends.push(() => link.close())
      return link
    },
    onEnd: (end: () => Promise<void>): void => void ends.push(end),
  }
}

export function newName(): string {
  return `test-${randomBytes(4).toString('hex')}`
}

/** Polls what no event tells. */
export async function until(holds: () => boolean | Promise<boolean>, what: string, withinMs = 5_000): Promise<void> {
  const untilMs = performance.now() + withinMs
  while (!(await holds())) {
    if (performance.now() > untilMs) throw new Error(`waited ${withinMs} ms in vain for ${what}`)
    await new Promise((resolve) => setTimeout(resolve, 3))
  }
}
