// The Redis backend keeps the promises of the contract on a real server.
import { afterAll, beforeAll } from 'vitest'
import { backendSuite } from '../conformance/suite.ts'
import { createTestRedis } from './test-store.ts'
import type { TestRedis } from './test-store.ts'

let server: TestRedis

beforeAll(async () => {
  server = await createTestRedis()
})

afterAll(() => server.close())

backendSuite({ name: 'redis', create: () => server.create() })
