// Health on PostgreSQL with Redis before it: without Redis it is degraded and goes on.
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import type { HealthReport } from '../../../src/index.ts'
import { health, portOf } from '../../stores/health.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { until } from '../../support/until.ts'
import { useHybrid } from './support.ts'

let redis: RedisProcess
beforeAll(async () => {
  redis = await startRedis({ appendOnly: false, config: { maxmemory: '100mb' } })
})
afterAll(() => redis.stop())

const noop = defineJob({ name: 'noop', run: () => undefined })

describe('hybrid', { timeout: 40_000 }, () => {
  health(useHybrid(), ['postgres', 'redis'])

  const place = useHybrid({ redisUrl: () => redis.url })

  test('O3 without Redis it stays ready, is degraded, and says which server is away', async () => {
    await using at = await place()
    const mill = await at.process([noop])
    await mill.work()
    await mill.result((await mill.enqueue(noop, undefined)).id)
    const ask = await portOf(mill)
    expect((await ask<HealthReport>('/health')).body).toMatchObject({ state: 'ok', problems: [] })

    await redis.kill()
    const isDegraded = async (): Promise<boolean> => (await ask<HealthReport>('/health')).body.state === 'degraded'
    await until('it to be degraded', isDegraded)
    const { status, body } = await ask<HealthReport>('/health')
    expect(status).toBe(200)
    expect(body.problems.map(({ code }) => code)).toContain('redis-down')
    expect(body.servers).toMatchObject([{ kind: 'postgres' }, { kind: 'redis', pingMs: null }])
    expect(body.servers[0]?.pingMs).toBeGreaterThan(0)
    expect((await ask('/ready')).status).toBe(200)
    await mill.result((await mill.enqueue(noop, undefined)).id)

    await redis.restart()
    await until('it to be well again', async () => (await ask<HealthReport>('/health')).body.state === 'ok', {
      withinMs: 20_000,
    })
  })
})
