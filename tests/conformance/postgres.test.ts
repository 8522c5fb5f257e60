// The Postgres backend keeps the promises of the contract on a real server.
import { afterAll, beforeAll } from 'vitest'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { backendSuite } from './suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase({ version: 18 })
})

afterAll(() => database.close())

backendSuite({ name: 'postgres 18', create: () => database.create() })
