// The promises of the contract on the oldest server that is supported, each call made by another of three backends on one
// schema: nothing depends on what a process remembers.
import { afterAll, beforeAll } from 'vitest'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { backendSuite } from './suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase({ version: 15, instances: 3 })
})

afterAll(() => database.close())

backendSuite({ name: 'postgres 15, three backends in turn', create: () => database.create() })
