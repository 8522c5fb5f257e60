// Health on Redis, and what it says when the server is killed.
import { describe, expect, test } from 'vitest'
import { defineJob, redis as redisBackend } from '../../../src/index.ts'
import type { HealthReport } from '../../../src/index.ts'
import { health, portOf } from '../../stores/health.ts'
import { until } from '../../support/until.ts'
import { useRedis } from '../support.ts'
import { useRedisPlaces } from './support.ts'

const place = useRedisPlaces()
const redis = useRedis()
const noop = defineJob({ name: 'noop', run: () => undefined })

describe('redis', () => {
  health(place, ['redis'])

  test('O3 a server that is killed: live, not ready, failed, and well again by itself; a full one is a warning', async () => {
    const server = await redis.server({ config: { maxmemory: '100mb' } })
    await using at = await place()
    const mill = await at.process([noop], { backend: redisBackend({ url: server.url }) })
    const ask = await portOf(mill)
    expect((await ask('/ready')).status).toBe(200)
    expect((await ask<HealthReport>('/health')).body).toMatchObject({
      state: 'ok',
      servers: [{ name: `127.0.0.1:${server.port}`, memory: { maxBytes: 100 * 1024 * 1024 } }],
    })

    await server.kill()
    await until('it not to be ready', async () => (await ask('/ready')).status === 503)
    expect((await ask('/live')).status).toBe(200)
    await until('the report to fail', async () => (await ask('/health')).status === 503)
    expect((await ask<HealthReport>('/health')).body).toMatchObject({
      state: 'failed',
      problems: [{ code: 'store-down' }],
      servers: [{ kind: 'redis', pingMs: null }],
    })

    await server.restart()
    await until('it to be ready', async () => (await ask('/ready')).status === 200)
    const info = String(await server.command('info', 'memory'))
    const used = Number(/^used_memory:(\d+)/m.exec(info)?.[1])
    await server.command('config', 'set', 'maxmemory', Math.round(used * 1.1))
    const isFull = async (): Promise<boolean> =>
      (await ask<HealthReport>('/health')).body.problems.some(({ code }) => code === 'redis-memory')
    await until('the memory to be told', isFull)
    expect((await ask<HealthReport>('/health')).body.state).toBe('ok')
  })
})
