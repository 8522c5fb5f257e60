// The Redis backend against the model. It has lanes instead of exact priorities, so which job a claim takes is left to
// the conformance suite; how many it takes, and all that follows, is compared.
import { afterAll, beforeAll } from 'vitest'
import { createTestRedis } from '../redis/test-store.ts'
import type { TestRedis } from '../redis/test-store.ts'
import { modelSuite } from './model-suite.ts'

let server: TestRedis

beforeAll(async () => {
  server = await createTestRedis()
})

afterAll(() => server.close())

modelSuite({ name: 'redis', runs: 40, exactShare: false, create: () => server.create() })
