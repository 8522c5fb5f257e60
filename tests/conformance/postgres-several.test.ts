// The promises of the contract, each call made by another of three Postgres backends on one schema: nothing depends
// on what a process remembers.
import { afterAll, beforeAll } from 'vitest'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { backendSuite } from './suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase({ version: 18, instances: 3 })
})

afterAll(() => database.close())

backendSuite({ name: 'postgres, three backends in turn', create: () => database.create() })
