// The topologies that other tests rely on are what they say they are. Real processes; each test starts and stops its own.
import { Cluster, Redis } from 'ioredis'
import pg from 'pg'
import { afterAll, describe, expect, test, vi } from 'vitest'
import { startPostgresPair } from './postgres-standby.ts'
import { startRedisCluster } from './redis-cluster.ts'
import { replicationOf, startReplicaOf } from './redis-replica.ts'
import { startRedisSentinels } from './redis-sentinel.ts'
import { startRedis } from './redis-server.ts'
import { startRedisTls } from './redis-tls.ts'

// For a busy machine, and for the first use, which may install packages.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const ends: (() => unknown)[] = []
afterAll(async () => {
  for (const end of ends.reverse()) await end()
})

function own<Server extends { stop(): Promise<void> }>(server: Server): Server {
  ends.push(() => server.stop())
  return server
}

function client(redis: Redis): Redis {
  redis.on('error', () => undefined) // calls fail by themselves
  ends.push(() => redis.disconnect())
  return redis
}

// They mostly wait: side by side.
describe.concurrent('topologies', () => {
  test('a cluster spreads keys over three masters, and is whole again after one of them was killed', async () => {
    const cluster = own(await startRedisCluster())
    const redis = new Cluster([...cluster.urls])
    redis.on('error', () => undefined)
    ends.push(() => redis.disconnect())
    const keys = Array.from({ length: 60 }, (_, index) => `key:${index}`)
    for (const key of keys) await redis.set(key, key)
    const sizes = await Promise.all(cluster.nodes.map((node) => node.command('DBSIZE')))
    expect(sizes.every((size) => Number(size) > 0)).toBe(true)
    expect(sizes.reduce<number>((sum, size) => sum + Number(size), 0)).toBe(60)

    const node = await cluster.nodeOf('key:7')
    expect(await node.command('GET', 'key:7')).toBe('key:7')
    const other = cluster.nodes.find(({ port }) => port !== node.port)!
    await expect(other.command('GET', 'key:7')).rejects.toThrow(`127.0.0.1:${node.port}`)
    await node.restart()
    await cluster.ready()
    expect(await node.command('GET', 'key:7')).toBe('key:7')
  })

  test('sentinels move the primary when they are asked to, and when it dies', async () => {
    const topology = own(await startRedisSentinels())
    const first = await topology.primary()
    const redis = client(
      new Redis({
        sentinels: topology.sentinels.map(({ port }) => ({ host: '127.0.0.1', port })),
        name: topology.name,
      }),
    )
    await redis.set('kept', 'yes')
    const second = await topology.failover()
    expect(second.port).not.toBe(first.port)
    expect(await second.command('GET', 'kept')).toBe('yes')

    expect((await replicationOf(first)).get('master_port')).toBe(String(second.port))
    await second.kill()
    const third = await topology.switchedFrom(second)
    expect(third.port).toBe(first.port)
    expect(await third.command('SET', 'written', 'yes')).toBe('OK')
  })

  test('a server that speaks TLS alone lets in who trusts it and knows the password, and allows little', async () => {
    const { url, tls, server } = own(await startRedisTls())
    const redis = client(new Redis(url, { tls: { ca: tls.ca }, protocol: 2, enableReadyCheck: false }))
    expect(await redis.set('mill:key', 'value')).toBe('OK')
    expect(await redis.eval("return redis.call('get', KEYS[1])", 1, 'mill:key')).toBe('value')
    await expect(redis.set('other', 'value')).rejects.toThrow('NOPERM')
    await expect(redis.call('FLUSHALL')).rejects.toThrow('NOPERM')
    await expect(redis.call('KEYS', 'mill:*')).rejects.toThrow('NOPERM')
    expect(await server.command('DBSIZE')).toBe(1)

    const once = { retryStrategy: () => null, lazyConnect: true, maxRetriesPerRequest: 0 }
    const refusals = [
      new Redis(url, { ...once }), // does not know who signed
      new Redis(url.replace('rediss', 'redis'), once), // speaks plainly
      new Redis(url.replace(/:[^:@/]+@/, ':wrong@'), { ...once, tls: { ca: tls.ca } }),
    ]
    for (const refused of refusals) await expect(client(refused).connect()).rejects.toThrow()
  })

  test('a server that asks for certificates refuses who has none', async () => {
    const { url, tls } = own(await startRedisTls({ asksForCertificates: true }))
    const once = { retryStrategy: () => null, lazyConnect: true, maxRetriesPerRequest: 0 }
    const shown = client(new Redis(url, { ...once, tls }))
    await shown.connect()
    expect(await shown.set('mill:key', 'value')).toBe('OK')
    const hidden = client(new Redis(url, { ...once, tls: { ca: tls.ca } }))
    await expect(hidden.connect().then(() => hidden.set('mill:key', 'other'))).rejects.toThrow()
  })

  test('a replica that is promoted has what it heard of, and lost what was acknowledged after the cut', async () => {
    const primary = own(await startRedis())
    const replica = own(await startReplicaOf(primary))
    await primary.command('SET', 'kept', 'yes')
    await replica.caughtUp()
    await replica.cut()
    expect(await primary.command('SET', 'lost', 'yes')).toBe('OK')
    await primary.kill()
    await replica.promote()
    expect(await replica.command('MGET', 'kept', 'lost')).toEqual(['yes', null])
    expect(await replica.command('SET', 'new', 'yes')).toBe('OK')

    await primary.restart()
    const back = own(await startReplicaOf(primary))
    await back.follow(replica)
    expect(await back.command('MGET', 'kept', 'lost', 'new')).toEqual(['yes', null, 'yes'])
  })

  test('a replica that stalls hears later what it missed, and a paused server answers when it goes on', async () => {
    const primary = own(await startRedis())
    const replica = own(await startReplicaOf(primary))
    const stall = replica.stall(300)
    await primary.command('SET', 'late', 'yes')
    await stall
    await replica.caughtUp()
    expect(await replica.command('GET', 'late')).toBe('yes')

    primary.pause()
    let answered = false
    const answer = primary.command('GET', 'late').then((value) => {
      answered = true
      return value
    })
    await new Promise((resolve) => setTimeout(resolve, 100))
    expect(answered).toBe(false)
    primary.resume()
    expect(await answer).toBe('yes')
  })

  test('a standby applies what its primary commits, and once promoted has all but what came after the cut', async () => {
    const pair = own(await startPostgresPair())
    await query(pair.primary.url, 'create table kept as select 1 as id')
    await pair.caughtUp()
    expect(await query(pair.standby.url, 'select id from kept')).toEqual([{ id: 1 }])
    await expect(query(pair.standby.url, 'insert into kept values (2)')).rejects.toThrow('read-only')

    await pair.standby.cut()
    await query(pair.primary.url, 'insert into kept values (2)')
    await pair.primary.stop('immediate')
    await pair.standby.promote()
    await query(pair.standby.url, 'insert into kept values (3)')
    expect(await query(pair.standby.url, 'select id from kept order by id')).toEqual([{ id: 1 }, { id: 3 }])
  })
})

async function query(url: string, text: string): Promise<readonly unknown[]> {
  const postgres = new pg.Client(url)
  postgres.on('error', () => undefined)
  await postgres.connect()
  try {
    return (await postgres.query<Record<string, unknown>>(text)).rows
  } finally {
    await postgres.end()
  }
}
