// Kysely: Transaction, ControlledTransaction and its savepoints.
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type { ControlledTransaction, KyselyPlugin, Transaction } from 'kysely'
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { START_MAX_MS, caught, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { keepsPromises } from './promises.ts'

interface Tables {
  readonly probe: { readonly id: string }
}

const EXAMPLE = 'await db.transaction().execute(async (trx) => { await mill.in(trx).enqueue(job, input) })'

/** Renames columns, as plugins do. */
const SHOUTING: KyselyPlugin = {
  transformQuery: ({ node }) => node,
  async transformResult({ result }) {
    const rows = result.rows.map((row) => Object.fromEntries(Object.entries(row).map(([k, v]) => [k.toUpperCase(), v])))
    return { ...result, rows }
  },
}

let database: ProbeDatabase
let db: Kysely<Tables>

beforeAll(async () => {
  database = await createProbeDatabase()
  const pool = new pg.Pool({ connectionString: database.url })
  db = new Kysely<Tables>({ dialect: new PostgresDialect({ pool }), plugins: [SHOUTING] })
}, START_MAX_MS)

afterAll(async () => {
  await db.destroy()
  await database.drop()
})

describe('a Transaction', () => {
  keepsPromises(() => ({
    ...database,
    library: 'Kysely',
    transaction: (body) => db.transaction().execute(body),
    async savepoint(tx, body) {
      const trx = tx as Transaction<Tables>
      await trx.executeQuery(CompiledQuery.raw('savepoint inside'))
      try {
        await body(trx.withSchema('public'))
      } catch (error) {
        await trx.executeQuery(CompiledQuery.raw('rollback to inside'))
        throw error
      }
    },
    own: (tx, text) => (tx as Transaction<Tables>).executeQuery(CompiledQuery.raw(text)),
  }))
})

describe('a ControlledTransaction', () => {
  keepsPromises(() => ({
    ...database,
    library: 'Kysely',
    async transaction(body) {
      const trx = await db.startTransaction().execute()
      try {
        await body(trx)
      } catch (error) {
        await trx.rollback().execute()
        throw error
      }
      await trx.commit().execute()
    },
    async savepoint(tx, body) {
      const inner = await (tx as ControlledTransaction<Tables>).savepoint('inside').execute()
      try {
        await body(inner)
      } catch (error) {
        await inner.rollbackToSavepoint('inside').execute()
        throw error
      }
    },
    own: (tx, text) => (tx as ControlledTransaction<Tables>).executeQuery(CompiledQuery.raw(text)),
  }))

  describe('that is over', () => {
    beforeEach(() => database.clear())

    test('is refused, and so is a copy that was not told', async () => {
      const trx = await db.startTransaction().execute()
      const copy = trx.withSchema('public')
      const runner = transactionRunner(copy)
      await trx.commit().execute()
      await expectRefusal(trx, 'this Kysely transaction is over', EXAMPLE)
      await expectRefusal(copy, 'this Kysely transaction is over, or never began', EXAMPLE)
      expect(await caught(() => insert(runner, 'late'))).toMatchObject({ code: 'NOT_A_TRANSACTION' })
      expect(await database.ids()).toEqual([])
    })
  })
})

describe('refused is', () => {
  const problem = 'this is a Kysely database and no transaction'

  test('the database', () => expectRefusal(db, problem, EXAMPLE))

  test('one connection of it', async () => {
    await db.connection().execute((one) => expectRefusal(one, problem, EXAMPLE))
  })
})
