// What the feature tests on Postgres stand on: a database per test, processes over it that are stopped at its end, and
// plain SQL.
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { createMigrator } from '../../../src/backends/postgres/migrate.ts'
import { postgres } from '../../../src/index.ts'
import type { Backend, PostgresOptions } from '../../../src/index.ts'
import { openPlace, withoutThread } from '../../stores/place.ts'
import type { Place } from '../../stores/place.ts'
import { freshDatabase, sharedPostgres } from '../../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../../support/postgres-server.ts'

export interface PostgresPlace extends Place {
  readonly url: string
  /** Plain SQL, as a person at a console would write it. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

/** Call it at the top of a test file: each call of what it answers is an empty database, a copy of a migrated one. */
export function usePostgres(): () => Promise<PostgresPlace> {
  let server: PostgresServer
  let template: FreshDatabase

  beforeAll(async () => {
    server = await sharedPostgres(18)
    template = await freshDatabase(server)
    const migrator = createMigrator({ url: template.url })
    await migrator.up()
    await migrator.close()
  })
  afterAll(() => template.drop())

  return async () => openDatabase(await freshDatabase(server, template.name))
}

export function backendOf(options: PostgresOptions): Backend {
  return withoutThread(postgres({ poolMax: 4, ...options }))
}

async function openDatabase(database: FreshDatabase): Promise<PostgresPlace> {
  const { url } = database
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  const backend = (other?: string): Backend => backendOf({ url, ...(other !== undefined && { schema: other }) })
  const place = openPlace({ url }, backend, async () => {
    await client.end()
    await database.drop()
  })
  return { ...place, url, query: async (text, values = []) => (await client.query(text, [...values])).rows }
}
