// What `millrace doctor` finds on real servers that are set up well, and badly.
import { beforeAll, describe, expect, test } from 'vitest'
import { diagnoseRedis } from '../../src/backends/redis/diagnose.ts'
import type { RedisServer } from '../../src/backends/redis/link.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Clock } from '../../src/runtime/clock.ts'
import type { Finding } from '../../src/store/diagnosis.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { until, useRedis } from './support.ts'

const redis = useRedis()

async function examine(server: RedisServer, clock: Clock = systemClock): Promise<Readonly<Record<string, Finding>>> {
  const link = redis.link(server)
  await link.connect()
  const checks = await diagnoseRedis({ link, clock })()
  const found: Record<string, Finding> = {}
  for (const { name, run } of checks) found[name] = await run()
  return found
}

describe('a server as docs/redis.md asks for', () => {
  let server: RedisProcess

  beforeAll(async () => {
    server = await redis.server({ config: { maxmemory: '200mb', 'maxmemory-policy': 'noeviction' } })
  })

  test('every check is content', async () => {
    const found = await examine({ url: server.url })
    expect(Object.values(found).filter(({ level }) => level !== 'ok')).toEqual([])
    expect(Object.keys(found)).toEqual([
      'round trip',
      'version',
      'memory',
      'eviction',
      'durability',
      'replication',
      'clock',
    ])
    expect(found['durability']?.message).toContain('everysec')
  })

  test('a clock that is off is told with its distance', async () => {
    const late = { ...systemClock, nowMs: () => systemClock.nowMs() - 60_000 }
    const { clock } = await examine({ url: server.url }, late)
    expect(clock).toMatchObject({ level: 'warn', message: /(59|60)\d{3} ms behind/, fix: /NTP/ })
  })

  test('a server that forbids CONFIG is examined as far as it goes', async () => {
    await server.command('ACL', 'SETUSER', 'guest', 'on', '>word', '~*', '&*', '+@all', '-config')
    const found = await examine({ url: server.url.replace('//', '//guest:word@') })
    expect(found['durability']).toMatchObject({ level: 'ok', message: /not told/ })
  })
})

describe('a server that would lose jobs', () => {
  test('no limit of memory, no AOF, and keys that may be evicted', async () => {
    const server = await redis.server({ appendOnly: false, config: { 'maxmemory-policy': 'allkeys-lru' } })
    const found = await examine({ url: server.url })
    expect(found['memory']).toMatchObject({ level: 'warn', fix: /maxmemory/ })
    expect(found['eviction']).toMatchObject({ level: 'fail', fix: /noeviction/ })
    expect(found['durability']).toMatchObject({ level: 'warn', message: /AOF is off/ })
  })

  test('nearly no memory left, and evictions in the past', async () => {
    const server = await redis.server({ config: { maxmemory: '3mb', 'maxmemory-policy': 'allkeys-lru' } })
    for (let no = 0; no < 60; no++) await server.command('SET', `k${no}`, 'x'.repeat(50_000))
    await server.command('CONFIG', 'SET', 'maxmemory-policy', 'noeviction')
    const found = await examine({ url: server.url })
    expect(found['memory']).toMatchObject({ level: 'warn', message: /of 3 MB/ })
    expect(found['eviction']).toMatchObject({ level: 'warn', message: /keys were evicted/ })
  })

  test('an fsync that is left to chance', async () => {
    const server = await redis.server({ config: { appendfsync: 'no' } })
    expect((await examine({ url: server.url }))['durability']).toMatchObject({
      level: 'warn',
      message: /appendfsync no/,
    })
  })

  test('a replica is no place to write to; a primary tells of its replicas', async () => {
    const primary = await redis.server({ config: { 'repl-diskless-sync-delay': '0' } })
    const replica = await redis.server({ config: { replicaof: `127.0.0.1 ${primary.port}` } })
    const replicated = async () => String(await primary.command('INFO', 'replication')).includes('state=online')
    await until(replicated, 'the replica')
    expect((await examine({ url: replica.url }))['replication']).toMatchObject({ level: 'fail', message: /replica/ })
    expect((await examine({ url: primary.url }))['replication']).toMatchObject({ level: 'ok', message: /1 replica/ })
  })
})
