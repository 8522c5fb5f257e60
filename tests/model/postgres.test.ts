// The Postgres backend against the model. The share of lower lanes is counted per process there, so which start a
// lower lane gets is open; the bound is checked by the conformance suite.
import { afterAll, beforeAll } from 'vitest'
import { createTestSchema } from '../postgres/test-store.ts'
import type { TestSchema } from '../postgres/test-store.ts'
import { modelSuite } from './model-suite.ts'

let schema: TestSchema

beforeAll(async () => {
  const url = process.env.MRPG ?? 'postgres://postgres@127.0.0.1:54180/postgres'
  schema = await createTestSchema(url, `model_${process.pid}`)
})

afterAll(() => schema.close())

modelSuite({ name: 'postgres', runs: 40, exactShare: false, create: () => schema.create() })
