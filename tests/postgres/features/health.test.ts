// Health on PostgreSQL, and what it says when the server goes silent.
import { describe, expect, onTestFinished, test } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import type { HealthReport } from '../../../src/index.ts'
import { health, portOf } from '../../stores/health.ts'
import { startTcpProxy } from '../../support/tcp-proxy.ts'
import { until } from '../../support/until.ts'
import { backendOf, usePostgres } from './support.ts'

const place = usePostgres()
const noop = defineJob({ name: 'noop', run: () => undefined })

describe('postgres', () => {
  health(place, ['postgres'])

  test('O3 a server that goes silent: live, not ready, failed, and well again by itself', async () => {
    await using at = await place()
    const direct = new URL(at.url)
    const proxy = await startTcpProxy(Number(direct.port))
    onTestFinished(() => proxy.close())
    const through = new URL(at.url)
    through.port = String(proxy.port)
    const mill = await at.process([noop], { backend: backendOf({ url: through.href }) })
    const ask = await portOf(mill)
    expect((await ask('/ready')).status).toBe(200)

    proxy.blackhole(true)
    const fromMs = performance.now()
    expect((await ask('/ready')).status).toBe(503)
    expect(performance.now() - fromMs, 'within its bound').toBeLessThan(4_500)
    expect((await ask('/live')).status).toBe(200)
    const isFailed = async (): Promise<boolean> => (await ask('/health')).status === 503
    await until('the report to fail', isFailed)
    const { body } = await ask<HealthReport>('/health')
    expect(body).toMatchObject({
      state: 'failed',
      problems: [{ code: 'store-down', severity: 'critical' }],
      servers: [{ kind: 'postgres', name: `${through.hostname}:${proxy.port}`, pingMs: null }],
    })
    expect(JSON.stringify(body)).not.toContain(through.password || 'no password')

    proxy.blackhole(false)
    await until('it to be ready', async () => (await ask('/ready')).status === 200)
    await until('the report to be fine', async () => (await ask<HealthReport>('/health')).body.state === 'ok')
  })
})
