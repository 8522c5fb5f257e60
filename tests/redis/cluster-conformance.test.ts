// The promises of the contract in the way the backend works on a Cluster: queue by queue, with messages in between. One
// node owns all slots, so that scripts can read the clock of the test; cluster.test.ts has three nodes.
import { afterAll, beforeAll } from 'vitest'
import { backendSuite } from '../conformance/suite.ts'
import { startRedisCluster } from '../support/redis-cluster.ts'
import type { RedisCluster } from '../support/redis-cluster.ts'
import { createTestRedis } from './test-store.ts'
import type { TestRedis } from './test-store.ts'

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

backendSuite({ name: 'redis cluster', create: () => server.create() })
