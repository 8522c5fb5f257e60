// The Postgres backend keeps the promises of the contract on the oldest server that is supported.
import { afterAll, beforeAll } from 'vitest'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { backendSuite } from './suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase({ version: 15 })
})

afterAll(() => database.close())

backendSuite({ name: 'postgres 15', create: () => database.create() })
