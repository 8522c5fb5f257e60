// pg: Client and PoolClient, with and without the transaction status that newer versions keep.
import pg from 'pg'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import { transactionRunner } from '../../src/backends/postgres/transactions/runner.ts'
import { START_MAX_MS, caught, expectRefusal, insert } from './probe.ts'
import { createProbeDatabase } from './probe-database.ts'
import type { ProbeDatabase } from './probe-database.ts'
import { keepsPromises } from './promises.ts'
import type { Subject } from './promises.ts'

const EXAMPLE = "await client.query('BEGIN'); await mill.in(client).enqueue(job, input)"

/** As in pg before 8.21. */
class OldClient extends pg.Client {
  override readonly getTransactionStatus = undefined as never
}

let database: ProbeDatabase
let pool: pg.Pool
let oldPool: pg.Pool

beforeAll(async () => {
  database = await createProbeDatabase()
  pool = new pg.Pool({ connectionString: database.url })
  oldPool = new pg.Pool({ connectionString: database.url, Client: OldClient })
}, START_MAX_MS)

afterAll(async () => {
  await Promise.all([pool.end(), oldPool.end()])
  await database.drop()
})

describe('a client of a pool', () => keepsPromises(() => subjectOf(pool)))

describe('a client that does not tell its status', () => keepsPromises(() => subjectOf(oldPool)))

describe('refused is', () => {
  test.each(['pool', 'oldPool'])('a Pool: %s', async (which) => {
    const problem = 'this is a pg Pool, and each of its queries may use another connection'
    const example = `const client = await pool.connect(); ${EXAMPLE}`
    await expectRefusal(which === 'pool' ? pool : oldPool, problem, example)
  })

  test('a Client without BEGIN', async () => {
    await withClient(new pg.Client(database.url), async (client) => {
      await expectRefusal(client, 'this pg client has no open transaction', EXAMPLE)
    })
    await withClient(new OldClient(database.url), async (client) => {
      await expectRefusal(client, 'this pg transaction is over, or never began', EXAMPLE)
    })
    expect(await database.ids()).toEqual([])
  })

  test.each([pg.Client, OldClient])('a Client that was never connected: %o', async (Client) => {
    await expectRefusal(new Client(database.url), 'this pg client is not connected', EXAMPLE)
  })
})

describe('a Client', () => {
  beforeEach(() => database.clear())

  test('is taken when its BEGIN is still on its way', async () => {
    await withClient(new pg.Client(database.url), async (client) => {
      const begun = client.query('begin')
      await insert(transactionRunner(client), 'a')
      await begun
      await client.query('rollback')
    })
    expect(await database.ids()).toEqual([])
  })

  test('is refused when its COMMIT is on its way', async () => {
    await withClient(new pg.Client(database.url), async (client) => {
      await client.query('begin')
      const runner = transactionRunner(client)
      const committed = client.query('commit')
      expect(await caught(() => insert(runner, 'late'))).toMatchObject({ code: 'NOT_A_TRANSACTION' })
      await committed
    })
    expect(await database.ids()).toEqual([])
  })

  test('runs an enqueue beside the other statements of its transaction', async () => {
    await withClient(new pg.Client(database.url), async (client) => {
      await client.query('begin')
      await Promise.all([client.query('select 1'), insert(transactionRunner(client), 'a')])
      await client.query('commit')
    })
    expect(await database.ids()).toEqual(['a'])
  })
})

function subjectOf(from: pg.Pool): Subject {
  return {
    ...database,
    library: 'pg',
    async transaction(body) {
      const client = await from.connect()
      try {
        await client.query('begin')
        await body(client)
        await client.query('commit')
      } catch (error) {
        await client.query('rollback')
        throw error
      } finally {
        client.release()
      }
    },
    async savepoint(tx, body) {
      const client = tx as pg.PoolClient
      await client.query('savepoint inside')
      try {
        await body(client)
      } catch (error) {
        await client.query('rollback to inside')
        throw error
      }
    },
    own: (tx, sql) => (tx as pg.PoolClient).query(sql),
  }
}

async function withClient(client: pg.Client, act: (client: pg.Client) => Promise<void>): Promise<void> {
  await client.connect()
  try {
    await act(client)
  } finally {
    await client.end()
  }
}
