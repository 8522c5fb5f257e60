// Drizzle over pg, postgres.js and PGlite.
import { PGlite } from '@electric-sql/pglite'
import { sql as statement } from 'drizzle-orm'
import { drizzle as overPg } from 'drizzle-orm/node-postgres'
import type { PgDatabase, PgQueryResultHKT, PgTransaction } from 'drizzle-orm/pg-core'
import { pgTable, text } from 'drizzle-orm/pg-core'
import { drizzle as overPglite } from 'drizzle-orm/pglite'
import { drizzle as overPostgresJs } from 'drizzle-orm/postgres-js'
import pg from 'pg'
import postgres from 'postgres'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { PROBE_IDS, PROBE_SCHEMA, START_MAX_MS, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { keepsPromises } from './promises.ts'
import type { Subject } from './promises.ts'

type Database = PgDatabase<PgQueryResultHKT>
type Transaction = PgTransaction<PgQueryResultHKT, Record<string, never>, Record<string, never>>

const EXAMPLE = 'await db.transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })'

let database: ProbeDatabase
let pool: pg.Pool
let sql: postgres.Sql
let lite: PGlite

beforeAll(async () => {
  database = await createProbeDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  sql = postgres(database.url)
  lite = await PGlite.create()
  await lite.exec(PROBE_SCHEMA)
}, START_MAX_MS)

afterAll(async () => {
  await Promise.all([pool.end(), sql.end(), lite.close()])
  await database.drop()
})

describe('over node-postgres', () => {
  keepsPromises(() => subjectOf(overPg({ client: pool }), database))

  test('over a single client, too', async () => {
    const client = await pool.connect()
    let kept: unknown
    try {
      await overPg({ client }).transaction(async (tx) => {
        kept = tx
        await insert(transactionRunner(tx), 'single')
      })
      await expectRefusal(kept, 'this Drizzle transaction is over', EXAMPLE)
    } finally {
      client.release()
    }
    expect(await database.ids()).toEqual(['single'])
  })
})

describe('over postgres.js', () => keepsPromises(() => subjectOf(overPostgresJs({ client: sql }), database)))

describe('over PGlite', () => {
  keepsPromises(() =>
    subjectOf(overPglite({ client: lite }), {
      clear: async () => void (await lite.exec('truncate probe')),
      ids: async () => (await lite.query<{ id: string }>(PROBE_IDS)).rows.map(({ id }) => id),
    }),
  )
})

describe('refused is', () => {
  test.each([
    ['NodePgDatabase', () => overPg({ client: pool })],
    ['PostgresJsDatabase', () => overPostgresJs({ client: sql })],
    ['PgliteDatabase', () => overPglite({ client: lite })],
    ['PgTable', () => pgTable('orders', { id: text().primaryKey() })],
  ])('a %s', async (kind, make) => {
    await expectRefusal(make(), `this is a ${kind} of Drizzle and no transaction`, EXAMPLE)
  })

  test('a transaction of another database', async () => {
    class MySql2Transaction {
      execute(): void {}
    }
    Object.assign(MySql2Transaction, { [Symbol.for('drizzle:entityKind')]: 'MySql2Transaction' })
    const problem = 'this MySql2Transaction of Drizzle is not on PostgreSQL'
    await expectRefusal(new MySql2Transaction(), problem, EXAMPLE)
  })
})

function subjectOf(db: Database, outside: Pick<Subject, 'clear' | 'ids'>): Subject {
  return {
    ...outside,
    library: 'Drizzle',
    transaction: (body) => db.transaction(body),
    savepoint: (tx, body) => (tx as Transaction).transaction(body),
    own: async (tx, query) => (tx as Transaction).execute(statement.raw(query)),
  }
}
