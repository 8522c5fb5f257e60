// Redis alone on servers as people have them: a Cluster, Sentinel, TLS with a user who may do little. Real processes; in
// the middle of each run a server is killed.
import { readFileSync } from 'node:fs'
import { beforeAll, expect, onTestFinished, test, vi } from 'vitest'
import { createMillrace, redis as redisBackend } from '../../src/index.ts'
import type { Millrace, RedisOptions } from '../../src/index.ts'
import { openRun } from '../hybrid/topology.ts'
import { createJobs } from '../postgres/faults/fixtures/jobs.ts'
import { BALANCED } from '../postgres/faults/ledger.ts'
import { COMPILE_MAX_MS, compiledFixtures } from '../postgres/faults/start-process.ts'
import { withoutThread } from '../stores/place.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { replicationOf } from '../support/redis-replica.ts'
import { startRedisSentinels } from '../support/redis-sentinel.ts'
import { startRedisTls } from '../support/redis-tls.ts'
import { until } from '../support/until.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: COMPILE_MAX_MS })

const CLEAN = { ...BALANCED, repeated: [] }
const QUEUES = ['a', 'b', 'c', 'd', 'e', 'f']

beforeAll(async () => void (await compiledFixtures()))

function own<Server extends { stop(): Promise<void> }>(server: Server): Server {
  onTestFinished(() => server.stop())
  return server
}

/** For looking, and it does not work. */
async function look(redis: RedisOptions): Promise<Millrace> {
  const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve(), queues: QUEUES })
  const mill = await createMillrace({ jobs, backend: withoutThread(redisBackend(redis)) })
  onTestFinished(() => mill.stop({ deadline: 0 }))
  return mill
}

test('H6 a node of a Cluster is killed and comes back with its data: nothing is lost, nothing runs twice', async () => {
  const cluster = own(await startRedisCluster())
  const redis = { cluster: cluster.urls }
  const run = await openRun({ url: '', redis, queues: QUEUES })
  await run.flow(200)
  const node = await cluster.nodeOf('millrace:{a}:jobs')
  await node.restart()
  await cluster.ready()
  await run.flow(200)
  expect(await run.finishOn(await look(redis))).toMatchObject(CLEAN)
  expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
})

test('H6 after a failover through Sentinel what the replica had is done, and no old result is applied', async () => {
  const sentinels = own(await startRedisSentinels())
  const redis = { sentinel: { name: sentinels.name, urls: sentinels.urls } }
  const run = await openRun({ url: '', redis })
  await run.flow(200)
  const primary = await sentinels.primary()
  const replica = sentinels.servers.find((server) => server !== primary)!
  const acked = run.acked()
  const offset = Number((await replicationOf(primary)).get('master_repl_offset'))
  await until('the replica to have all of them', async () => {
    return Number((await replicationOf(replica)).get('slave_repl_offset')) >= offset
  })
  await run.flow(100)
  await primary.kill()
  await sentinels.switchedFrom(primary)
  await run.flow(200)
  const { lost, notOnce, unexpected } = await run.finishOn(await look(redis))
  expect({ notOnce, unexpected }).toEqual({ notOnce: [], unexpected: [] })
  expect(acked.filter((id) => lost.includes(id))).toEqual([])
})

test('H6 TLS and the permissions of docs/redis.md are enough, also when the server is killed', async () => {
  const text = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
  const rules = /```acl\nACL SETUSER \S+ on >\S+ (.*)\n```/.exec(text)?.[1] ?? ''
  const secured = own(await startRedisTls({ rules }))
  const redis = { url: secured.url, tls: { ca: secured.tls.ca } }
  const run = await openRun({ url: '', redis })
  await run.flow(200)
  await secured.server.restart()
  await run.flow(200)
  expect(await run.finishOn(await look(redis))).toMatchObject(CLEAN)
  expect(await secured.server.command('ACL', 'LOG')).toEqual([])
})
