// The hybrid on servers as people have them: a Redis Cluster, Sentinel, TLS with a user who may do little, PgBouncer, a
// PostgreSQL with a standby. Real processes; in the middle of each run something breaks.
import { readFileSync, readdirSync } from 'node:fs'
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { createLink } from '../../src/backends/redis/ioredis-link.ts'
import { silentLogger } from '../../src/index.ts'
import { BALANCED } from '../postgres/faults/ledger.ts'
import { COMPILE_MAX_MS, compiledFixtures } from '../postgres/faults/start-process.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { STANDBY_NAME, startPostgresPair } from '../support/postgres-standby.ts'
import type { PostgresPair } from '../support/postgres-standby.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { startReplicaOf } from '../support/redis-replica.ts'
import { startRedisSentinels } from '../support/redis-sentinel.ts'
import { startRedis } from '../support/redis-server.ts'
import { startRedisTls } from '../support/redis-tls.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import { until } from '../support/until.ts'
import { dispatchOf, flowsThroughRedis, onServer, openRun } from './topology.ts'
import type { Dispatched } from './topology.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: COMPILE_MAX_MS })

const CLEAN = { ...BALANCED, repeated: [] }
const LOGIN = { username: 'millrace', password: 'password' }
/** Nobody listens there. */
const NOBODY = 1

beforeAll(async () => {
  await compiledFixtures()
  await sharedPostgres(18)
})

function own<Server extends { stop(): Promise<void> }>(server: Server): Server {
  onTestFinished(() => server.stop())
  return server
}

async function useDatabase(): Promise<string> {
  const database = await freshDatabase(await sharedPostgres(18))
  onTestFinished(() => database.drop())
  return database.url
}

describe('a Redis Cluster of three masters', () => {
  const QUEUES = ['a', 'b', 'c', 'd', 'e', 'f']

  /** Its queues are in mode ledger; the others have not even changed their epoch. */
  async function onlyGone(url: string, before: readonly Dispatched[], gone: string): Promise<void> {
    const lost = before.filter(({ redis }) => redis === gone).map(({ queue }) => queue)
    await until('the queues of that node to be in mode ledger', async () => {
      const now = await dispatchOf(url)
      return now.every(({ queue, mode }) => !lost.includes(queue) || mode === 'ledger')
    })
    const others = (rows: readonly Dispatched[]) =>
      rows.filter(({ queue }) => QUEUES.includes(queue) && !lost.includes(queue))
    expect(others(await dispatchOf(url))).toEqual(others(before))
  }

  test.each(['yes', 'no'])(
    'H6 with full coverage %s a node is killed and comes back empty: nothing is lost, nothing runs twice',
    async (fullCoverage) => {
      const user = `on >password ${aclRules()} ${alsoFor('a Cluster')}`
      const config = { 'cluster-require-full-coverage': fullCoverage, 'user millrace': user }
      const cluster = own(await startRedisCluster({ config }))
      const url = await useDatabase()
      const nodes = new Set(await Promise.all(QUEUES.map((queue) => cluster.nodeOf(`millrace:{${queue}}:state`))))
      expect(nodes.size).toBe(3)
      const run = await openRun({ url, redis: { cluster: cluster.urls, ...LOGIN }, queues: QUEUES })
      await run.flow(300)
      const before = await flowsThroughRedis(url, QUEUES)
      expect(new Set(before.map(({ redis }) => redis)).size).toBe(3)

      const node = await cluster.nodeOf('millrace:{a}:state')
      const [gone] = before.filter(({ queue }) => queue === 'a')
      await node.kill()
      await run.flow(400)
      if (fullCoverage === 'no') await onlyGone(url, before, gone!.redis)
      await node.restart({ keepData: false })
      await cluster.ready()
      await run.flow(300)
      const after = await flowsThroughRedis(url, QUEUES)
      expect(new Set(after.map(({ redis }) => redis)).size).toBe(3)
      for (const one of cluster.nodes) expect(await one.command('ACL', 'LOG')).toEqual([])
      expect(await run.finish(url)).toMatchObject(CLEAN)
      expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
    },
  )
})

describe('Sentinel', () => {
  test('H6 a failover to a replica that lacks the last writes loses nothing and runs nothing twice', async () => {
    const sentinels = own(await startRedisSentinels())
    const url = await useDatabase()
    const rules = `${aclRules()} ${alsoFor('Sentinel')}`.split(' ')
    for (const server of sentinels.servers) {
      await server.command('ACL', 'SETUSER', 'millrace', 'on', '>password', ...rules)
    }
    const redis = { sentinel: { name: sentinels.name, urls: sentinels.urls }, ...LOGIN }
    const run = await openRun({ url, redis })
    await run.flow(300)
    const [before] = await flowsThroughRedis(url, ['faults'])
    const primary = await sentinels.primary()
    const replica = sentinels.servers.find((server) => server !== primary)!
    // It hears nothing more; soon enough nobody can mend that.
    await replica.command('REPLICAOF', '127.0.0.1', NOBODY)
    await run.flow(200)
    await primary.kill()
    expect((await sentinels.switchedFrom(primary)).port).toBe(replica.port)
    await run.flow(300)
    const [after] = await flowsThroughRedis(url, ['faults'])
    expect(after!.redis).not.toBe(before!.redis)
    expect(await replica.command('ACL', 'LOG')).toEqual([])
    expect(after!.epoch).toBeGreaterThan(before!.epoch)
    expect(await run.finish(url)).toMatchObject(CLEAN)
    expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
  })
})

describe('TLS and a user who may do little', () => {
  test('H6 the permissions of docs/hybrid.md are enough, also when Redis is wiped, and allow nothing else', async () => {
    const rules = aclRules()
    const secured = own(await startRedisTls({ rules }))
    const url = await useDatabase()
    const run = await openRun({ url, redis: { url: secured.url, tls: { ca: secured.tls.ca } } })
    await run.flow(200)
    const [before] = await flowsThroughRedis(url, ['faults'])
    expect(before!.redis).toHaveLength(40)
    await secured.server.command('FLUSHALL')
    await run.flow(200)
    const [after] = await flowsThroughRedis(url, ['faults'])
    expect(after!.epoch).toBeGreaterThan(before!.epoch)
    expect(await run.finish(url)).toMatchObject(CLEAN)
    const refusals = (await secured.server.command('ACL', 'LOG')) as readonly unknown[] // a list of what was refused
    expect(refusals).toEqual([])

    const link = createLink({
      server: { url: secured.url, tls: { ca: secured.tls.ca } },
      name: 'test',
      connectTimeoutMs: 5_000,
      logger: silentLogger,
    })
    await link.connect()
    onTestFinished(() => link.close())
    const forbidden = [
      ['FLUSHALL'],
      ['KEYS', '*'],
      ['GET', 'other'],
      ['PUBSUB', 'CHANNELS'],
      ['HGETALL', 'other'],
      ['CONFIG', 'GET', '*'],
    ]
    for (const [name, ...args] of forbidden) {
      await expect(link.command(name!, ...args), name).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    }
  })

  test('H6 that user may call what scripts call, and no other command on data', () => {
    const folder = new URL('../../src/backends/hybrid/lua/', import.meta.url)
    const scripts = readdirSync(folder).map((name) => readFileSync(new URL(name, folder), 'utf8'))
    const called = scripts.flatMap((text) =>
      [...text.matchAll(/redis\.p?call\(\s*'(PUBSUB', 'NUMSUB|\w+)'/g)].map(([, name]) =>
        name!.replace("', '", '|').toLowerCase(),
      ),
    )
    // Status and doctor ask for the size of what is held.
    const own = ['@connection', 'eval', 'evalsha', 'subscribe', 'unsubscribe', 'hlen']
    const allowed = [...aclRules().matchAll(/\+(\S+)/g)].map(([, name]) => name)
    expect(new Set(allowed)).toEqual(new Set([...own, ...called]))
  })
})

describe('a Redis that does not say who it is', () => {
  test('H2 tokens that an old copy hands out a second time are not started: claims are confirmed there', async () => {
    const first = own(await startRedis())
    const copy = own(await startReplicaOf(first))
    for (const server of [first, copy]) {
      await server.command('ACL', 'SETUSER', 'app', 'on', '>secret', '~*', '&*', '+@all', '-info')
    }
    const proxy = await startTcpProxy(first.port)
    onTestFinished(() => proxy.close())
    const url = await useDatabase()
    const run = await openRun({ url, redis: `redis://app:secret@127.0.0.1:${proxy.port}` })
    await run.flow(100)
    expect(await flowsThroughRedis(url, ['faults'])).toMatchObject([{ redis: '-' }])
    // Tokens that wait now are taken later: the copy does not hear of that.
    for (const worker of run.workers) worker.signal('SIGSTOP')
    await run.flow(50)
    await copy.caughtUp()
    await copy.promote()
    for (const worker of run.workers) worker.signal('SIGCONT')
    await run.flow(200)
    proxy.retarget(copy.port)
    proxy.resetAll()
    await run.flow(200)
    expect(await run.finish(url)).toMatchObject(CLEAN)
  })
})

describe('PgBouncer in transaction mode', () => {
  test('H6 its server connections end, and Redis is wiped: nothing is lost, nothing runs twice', async () => {
    const redis = own(await startRedis())
    const url = await useDatabase()
    const bouncer = own(await startPgBouncer(url, { poolMode: 'transaction', poolSize: 10 }))
    const run = await openRun({ url: bouncer.url, redis: redis.url })
    await run.flow(200)
    await flowsThroughRedis(url, ['faults'])
    await onServer(url, (client) =>
      client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`,
      ),
    )
    await run.flow(100)
    await redis.command('FLUSHALL')
    await run.flow(200)
    await flowsThroughRedis(url, ['faults'])
    expect(await run.finish(url)).toMatchObject(CLEAN)
    expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
  })
})

describe('a PostgreSQL with a standby', () => {
  interface Pair {
    readonly pair: PostgresPair
    /** Through the proxy, wherever that goes. */
    readonly url: string
    readonly failOver: () => Promise<void>
  }

  async function usePair(): Promise<Pair> {
    const pair = await startPostgresPair()
    // One of them is stopped by then.
    onTestFinished(() => pair.stop().catch(() => undefined))
    const proxy = await startTcpProxy(pair.primary.port)
    onTestFinished(() => proxy.close())
    const url = new URL(pair.primary.url)
    url.port = String(proxy.port)
    return {
      pair,
      url: url.href,
      async failOver() {
        await pair.primary.stop('immediate')
        await pair.standby.promote()
        // Nobody has told the new server of itself, so no lease is given out there.
        expect(await mayMint(pair.standby.url)).toEqual([{ may: false }])
        proxy.retarget(pair.standby.port)
        proxy.resetAll()
      },
    }
  }

  async function mayMint(url: string): Promise<readonly unknown[]> {
    return onServer(url, async (client) => {
      const asked = `select millrace.may_mint(d.queue_id, d.epoch || '.' || d.birth) as may from millrace.dispatch d where d.birth is not null`
      return (await client.query<{ may: boolean }>(asked)).rows
    })
  }

  test('H6 a synchronous standby is promoted: nothing is lost, nothing runs twice', async () => {
    const redis = own(await startRedis())
    const { pair, url, failOver } = await usePair()
    for (const text of [`alter system set synchronous_standby_names = '${STANDBY_NAME}'`, 'select pg_reload_conf()']) {
      await onServer(pair.primary.url, (client) => client.query(text))
    }
    const run = await openRun({ url, redis: redis.url })
    await run.flow(200)
    const [before] = await flowsThroughRedis(url, ['faults'])
    expect(await mayMint(pair.primary.url)).toEqual([{ may: true }])
    await failOver()
    await run.flow(200)
    const [after] = await flowsThroughRedis(url, ['faults'])
    expect(after!.epoch).toBeGreaterThan(before!.epoch + 2 ** 20)
    expect(await mayMint(pair.standby.url)).toEqual([{ may: true }])
    expect(await run.finish(url)).toMatchObject(CLEAN)
    expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
  })

  test('H6 a standby some thousand leases behind is promoted: what it had is done, and no old result is applied', async () => {
    const redis = own(await startRedis())
    const { pair, url, failOver } = await usePair()
    const run = await openRun({ url, redis: redis.url })
    await run.flow(200)
    await flowsThroughRedis(url, ['faults'])
    await pair.standby.cut()
    const behind = await leaseAt(pair.standby.url)
    const replicated = await jobsAt(pair.standby.url)
    // A worker that the standby has never heard of.
    await run.addWorker()
    await until('some thousand leases', async () => (await leaseAt(pair.primary.url)) > behind + 2_000, {
      withinMs: 30_000,
    })
    const last = await leaseAt(pair.primary.url)
    await failOver()
    await run.flow(200)
    await flowsThroughRedis(url, ['faults'])
    expect(await leaseAt(pair.standby.url)).toBeGreaterThan(last)
    const { lost, notOnce, unexpected } = await run.finish(url)
    expect({ notOnce, unexpected }).toEqual({ notOnce: [], unexpected: [] })
    const acked = run.acked()
    expect(acked.filter((id) => replicated.has(id) && lost.includes(id))).toEqual([])
    // All that is lost is what the standby never had.
    expect(lost.length).toBeGreaterThan(1_000)
    expect(acked.slice(acked.indexOf(lost.at(-1)!) + 1).length).toBeGreaterThan(100)
  })

  async function leaseAt(url: string): Promise<number> {
    return onServer(url, async (client) => {
      const { rows } = await client.query<{ last: string }>('select last_value as last from millrace.lease_seq')
      return Number(rows[0]?.last)
    })
  }

  async function jobsAt(url: string): Promise<ReadonlySet<string>> {
    return onServer(url, async (client) => {
      const { rows } = await client.query<{ id: string }>('select id::text from millrace.job_bodies')
      return new Set(rows.map(({ id }) => id))
    })
  }
})

/** What stands in docs/hybrid.md after the password. */
function aclRules(): string {
  const text = readFileSync(new URL('../../docs/hybrid.md', import.meta.url), 'utf8')
  return /```acl\nACL SETUSER \S+ on >\S+ (.*)\n```/.exec(text)?.[1] ?? ''
}

/** What the same document says is needed besides. */
function alsoFor(topology: string): string {
  const text = readFileSync(new URL('../../docs/hybrid.md', import.meta.url), 'utf8')
  return new RegExp(`${topology}(?: needs)? \`(\\+[^\`]+)\``).exec(text)?.[1] ?? 'nothing'
}
