// The hybrid on servers as people have them: a Redis Cluster, Sentinel, TLS with a user who may do little, PgBouncer, a
// PostgreSQL with a standby. Real processes; in the middle of each run something breaks.
import { beforeAll, describe, expect, onTestFinished, test, vi } from 'vitest'
import { BALANCED } from '../postgres/faults/ledger.ts'
import { COMPILE_MAX_MS, compiledFixtures } from '../postgres/faults/start-process.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import { flowsThroughRedis, openRun } from './topology.ts'

vi.setConfig({ testTimeout: 120_000, hookTimeout: COMPILE_MAX_MS })

const CLEAN = { ...BALANCED, repeated: [] }

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

  test.each(['yes', 'no'])(
    'H6 a node is killed and comes back empty, others needed for service: %s: nothing is lost, nothing runs twice',
    async (fullCoverage) => {
      const cluster = own(await startRedisCluster({ config: { 'cluster-require-full-coverage': fullCoverage } }))
      const url = await useDatabase()
      const nodes = new Set(await Promise.all(QUEUES.map((queue) => cluster.nodeOf(`millrace:{${queue}}:state`))))
      expect(nodes.size).toBe(3)
      const run = await openRun({ url, redis: { cluster: cluster.urls }, queues: QUEUES })
      await run.flow(300)
      const before = await flowsThroughRedis(url, QUEUES)
      expect(new Set(before.map(({ redis }) => redis)).size).toBe(3)

      const node = await cluster.nodeOf('millrace:{a}:state')
      await node.kill()
      await run.flow(600)
      await node.restart({ keepData: false })
      await cluster.ready()
      await run.flow(300)
      const after = await flowsThroughRedis(url, QUEUES)
      expect(new Set(after.map(({ redis }) => redis)).size).toBe(3)
      expect(await run.finish(url)).toMatchObject(CLEAN)
      expect(run.workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
    },
  )
})
