// The Redis backend against the model in the way it works on a Cluster: queue by queue, with messages in between. One
// node owns all slots, so that scripts can read the clock of the test.
import { afterAll, beforeAll } from 'vitest'
import { createTestRedis } from '../redis/test-store.ts'
import type { TestRedis } from '../redis/test-store.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { modelSuite } from './model-suite.ts'

let cluster: RedisCluster
let server: TestRedis

beforeAll(async () => {
  cluster = await startRedisCluster({ masters: 1 })
  server = await createTestRedis({ clusterUrl: cluster.urls[0]! })
})

afterAll(async () => {
  await server.close()
  await cluster.stop()
})

modelSuite({ name: 'redis cluster', runs: 20, exactShare: false, create: () => server.create() })
