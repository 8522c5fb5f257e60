// Every library that can be passed to `mill.in`, opened on one database: the same tests run with each.
import { sql as statement } from 'drizzle-orm'
import { drizzle as overPg } from 'drizzle-orm/node-postgres'
import type { NodePgDatabase } from 'drizzle-orm/node-postgres'
import { drizzle as overPostgresJs } from 'drizzle-orm/postgres-js'
import knex from 'knex'
import type { Knex } from 'knex'
import { CompiledQuery, Kysely, PostgresDialect } from 'kysely'
import type { Transaction } from 'kysely'
import pg from 'pg'
import postgres from 'postgres'
import { createPrisma } from './prisma-client.ts'
import type { PrismaTransaction } from './prisma-client.ts'

export interface Library {
  /** Commits when the body resolves; rolls back when it rejects, and rejects with the same. */
  transaction(body: (tx: object) => Promise<void>): Promise<void>
  /** A statement by the library itself, in that transaction. */
  own(tx: object, sql: string): Promise<unknown>
  close(): Promise<unknown>
}

/** By name; opened when a test asks for it. */
export const LIBRARIES: Readonly<Record<string, (url: string) => Library>> = {
  pg: openPg,
  'postgres.js'(url) {
    const sql = postgres(url, { max: 2, onnotice: () => undefined })
    return {
      transaction: (body) => sql.begin((tx) => body(tx)),
      own: async (tx, text) => (tx as postgres.TransactionSql).unsafe(text),
      close: () => sql.end(),
    }
  },
  Drizzle(url) {
    const pool = new pg.Pool({ connectionString: url, max: 2 })
    const db = overPg({ client: pool })
    return {
      transaction: (body) => db.transaction(body),
      own: async (tx, text) => (tx as NodePgDatabase).execute(statement.raw(text)),
      close: () => pool.end(),
    }
  },
  'Drizzle over postgres.js'(url) {
    const sql = postgres(url, { max: 2, onnotice: () => undefined })
    const db = overPostgresJs({ client: sql })
    return {
      transaction: (body) => db.transaction(body),
      own: async (tx, text) => (tx as typeof db).execute(statement.raw(text)),
      close: () => sql.end(),
    }
  },
  Kysely(url) {
    const db = new Kysely<object>({
      dialect: new PostgresDialect({ pool: new pg.Pool({ connectionString: url, max: 2 }) }),
    })
    return {
      transaction: (body) => db.transaction().execute(body),
      own: (tx, text) => (tx as Transaction<object>).executeQuery(CompiledQuery.raw(text)),
      close: () => db.destroy(),
    }
  },
  Knex(url) {
    const db = knex({ client: 'pg', connection: url, pool: { min: 0, max: 2 } })
    return {
      transaction: (body) => db.transaction(body),
      own: async (tx, text) => (tx as Knex.Transaction).raw(text),
      close: () => db.destroy(),
    }
  },
  Prisma(url) {
    const prisma = createPrisma(url)
    return {
      transaction: (body) => prisma.$transaction(body),
      own: (tx, text) => (tx as PrismaTransaction).$queryRawUnsafe(text),
      close: () => prisma.$disconnect(),
    }
  },
}

export function openPg(url: string): Library {
  const pool = new pg.Pool({ connectionString: url, max: 4 })
  return {
    async transaction(body) {
      const client = await pool.connect()
      // A connection that breaks is told by the statement that fails, too.
      const ignored = (): void => undefined
      client.on('error', ignored)
      try {
        await client.query('begin')
        await body(client)
        await client.query('commit')
      } catch (error) {
        await client.query('rollback').catch(ignored)
        throw error
      } finally {
        client.off('error', ignored)
        client.release()
      }
    },
    own: (tx, text) => (tx as pg.PoolClient).query(text),
    close: () => pool.end(),
  }
}
