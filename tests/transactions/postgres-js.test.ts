// postgres.js: the `sql` of `sql.begin`.
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { START_MAX_MS, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { keepsPromises } from './promises.ts'

const EXAMPLE = 'await sql.begin(async (tx) => { await mill.in(tx).enqueue(job, input) })'

let database: ProbeDatabase
let sql: postgres.Sql

beforeAll(async () => {
  database = await createProbeDatabase()
  sql = postgres(database.url)
}, START_MAX_MS)

afterAll(async () => {
  await sql.end()
  await database.drop()
})

describe('a transaction', () => {
  keepsPromises(() => ({
    ...database,
    library: 'postgres.js',
    transaction: async (body) => sql.begin(body),
    savepoint: async (tx, body) => (tx as postgres.TransactionSql).savepoint(body),
    own: async (tx, text) => (tx as postgres.TransactionSql).unsafe(text),
  }))

  test('keeps the columns of a `sql` that changes the case of names', async () => {
    const camel = postgres(database.url, { transform: postgres.camel })
    try {
      await camel.begin(async (tx) => {
        expect(await insert(transactionRunner(tx), 'camel')).toEqual([{ id: 'camel', outcome: 'inserted' }])
      })
    } finally {
      await camel.end()
    }
  })
})

describe('refused is', () => {
  test('the `sql` outside of begin', async () => {
    await expectRefusal(sql, 'this is the `sql` of postgres.js outside of `sql.begin`', EXAMPLE)
  })

  test('a reserved connection', async () => {
    const reserved = await sql.reserve()
    try {
      await expectRefusal(reserved, 'this is a reserved connection of postgres.js', EXAMPLE)
    } finally {
      reserved.release()
    }
  })

  test('a `sql` after its begin', async () => {
    let kept: unknown
    await sql.begin(async (tx) => void (kept = tx))
    await expectRefusal(kept, 'this postgres.js transaction is over, or never began', EXAMPLE)
  })
})
