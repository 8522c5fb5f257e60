// The Postgres backend keeps the promises of the contract on a real server.
import { afterAll, beforeAll } from 'vitest'
import { createTestSchema } from '../postgres/test-store.ts'
import type { TestSchema } from '../postgres/test-store.ts'
import { backendSuite } from './suite.ts'

let schema: TestSchema

beforeAll(async () => {
  const url = process.env.MRPG ?? 'postgres://postgres@127.0.0.1:54180/postgres'
  schema = await createTestSchema(url, `conformance_${process.pid}`)
})

afterAll(() => schema.close())

backendSuite({ name: 'postgres', create: () => schema.create() })
