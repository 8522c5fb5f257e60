// PGlite: PostgreSQL in this process.
import { PGlite } from '@electric-sql/pglite'
import type { Transaction } from '@electric-sql/pglite'
import { afterAll, beforeAll, describe, test } from 'vitest'
import { PROBE_IDS, PROBE_SCHEMA, START_MAX_MS, expectRefusal } from './probe.ts'
import { keepsPromises } from './promises.ts'

const EXAMPLE = 'await db.transaction(async (tx) => { await mill.in(tx).enqueue(job, input) })'

let db: PGlite

beforeAll(async () => {
  db = await PGlite.create()
  await db.exec(PROBE_SCHEMA)
}, START_MAX_MS)

afterAll(() => db.close())

describe('a transaction', () => {
  keepsPromises(() => ({
    library: 'PGlite',
    clear: async () => void (await db.exec('truncate probe')),
    ids: async () => (await db.query<{ id: string }>(PROBE_IDS)).rows.map(({ id }) => id),
    transaction: (body) => db.transaction(body),
    async savepoint(tx, body) {
      const outer = tx as Transaction
      await outer.exec('savepoint inside')
      try {
        await body(outer)
      } catch (error) {
        await outer.exec('rollback to inside')
        throw error
      }
    },
    own: (tx, text) => (tx as Transaction).exec(text),
  }))
})

describe('refused is', () => {
  test('the database', () => expectRefusal(db, 'this is a PGlite database and no transaction', EXAMPLE))

  test('a transaction that rolled itself back', async () => {
    await db.transaction(async (tx) => {
      await tx.rollback()
      await expectRefusal(tx, 'this PGlite transaction is over', EXAMPLE)
    })
  })
})
