// The Postgres backend against the model. The share of lower lanes is counted per process there, so which start a
// lower lane gets is open; the bound is checked by the conformance suite.
import { afterAll, beforeAll } from 'vitest'
import { createTestDatabase } from '../postgres/test-store.ts'
import type { TestDatabase } from '../postgres/test-store.ts'
import { modelSuite } from './model-suite.ts'

let database: TestDatabase

beforeAll(async () => {
  database = await createTestDatabase({ version: 18 })
})

afterAll(() => database.close())

modelSuite({ name: 'postgres', runs: 40, exactShare: false, create: () => database.create() })
