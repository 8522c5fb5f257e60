// Knex: transactions with a callback, by hand, and nested.
import knex from 'knex'
import type { Knex } from 'knex'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { START_MAX_MS, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { keepsPromises } from './promises.ts'

const EXAMPLE = 'await knex.transaction(async (trx) => { await mill.in(trx).enqueue(job, input) })'

let database: ProbeDatabase
let db: Knex

beforeAll(async () => {
  database = await createProbeDatabase()
  db = knex({ client: 'pg', connection: database.url })
}, START_MAX_MS)

afterAll(async () => {
  await db.destroy()
  await database.drop()
})

describe('a transaction', () => {
  keepsPromises(() => ({
    ...database,
    library: 'Knex',
    transaction: (body) => db.transaction(body),
    savepoint: (tx, body) => (tx as Knex.Transaction).transaction(body),
    own: async (tx, text) => (tx as Knex.Transaction).raw(text),
  }))
})

describe('a transaction by hand', () => {
  beforeEach(() => database.clear())

  test('is taken until its commit', async () => {
    const trx = await db.transaction()
    await insert(transactionRunner(trx), 'a')
    await trx.commit()
    await expectRefusal(trx, 'this Knex transaction is over', EXAMPLE)
    expect(await database.ids()).toEqual(['a'])
  })
})

describe('refused is', () => {
  test('the instance', () => expectRefusal(db, 'this is a Knex instance and no transaction', EXAMPLE))

  test('a transaction of another database', async () => {
    const trx = await db.transaction()
    const client = { dialect: 'mysql' }
    const other = new Proxy(trx, { get: (target, name) => (name === 'client' ? client : Reflect.get(target, name)) })
    try {
      await expectRefusal(other, 'this Knex transaction is on mysql and not on PostgreSQL', EXAMPLE)
    } finally {
      await trx.rollback()
    }
  })
})
