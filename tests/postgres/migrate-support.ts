// What the tests of migrations share: a database and connections for each test.
import { Client } from 'pg'
import { afterEach } from 'vitest'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import type { Migrator, MigratorOptions } from '../../src/backends/postgres/migrate.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { PostgresServer, PostgresVersion } from '../support/postgres-server.ts'
import { SMALL_SET } from './migrate-sets.ts'

export interface MigrationTests {
  readonly server: PostgresServer
  /** A fresh database and a connection to it. */
  readonly setup: () => Promise<{ readonly url: string; readonly name: string; readonly client: Client }>
  readonly open: (url: string, applicationName?: string) => Promise<Client>
  /** With SMALL_SET unless told otherwise. */
  readonly migratorOf: (url: string, options?: MigratorOptions) => Migrator
  /** Run after the test, last first. */
  readonly ends: (() => Promise<unknown>)[]
}

export async function migrationTests(version: PostgresVersion = 18): Promise<MigrationTests> {
  const server = await sharedPostgres(version)
  const ends: (() => Promise<unknown>)[] = []
  afterEach(async () => {
    for (const end of ends.splice(0).reverse()) await end()
  })
  const open = async (url: string, applicationName = 'test'): Promise<Client> => {
    const client = new Client({ connectionString: url, application_name: applicationName })
    client.on('error', () => undefined)
    await client.connect()
    ends.push(() => client.end())
    return client
  }
  return {
    server,
    ends,
    open,
    setup: async () => {
      const database = await freshDatabase(server)
      const { url, name } = database
      ends.push(() => database.drop())
      return { url, name, client: await open(url) }
    },
    migratorOf: (url, options = {}) => {
      const migrator = createMigrator({ url, ...SMALL_SET, ...options })
      ends.push(() => migrator.close())
      return migrator
    },
  }
}

/** What is left in a database besides what PostgreSQL brings. */
export async function leftIn(client: Client): Promise<readonly string[]> {
  const { rows } = await client.query<{ what: string }>(
    `select 'schema ' || nspname as what from pg_namespace where nspname !~ '^pg_|^information_schema$|^public$'
      union all select 'relation ' || relname from pg_class c join pg_namespace n on n.oid = relnamespace
        where nspname !~ '^pg_|^information_schema$'
      union all select 'routine ' || proname from pg_proc p join pg_namespace n on n.oid = pronamespace
        where nspname !~ '^pg_|^information_schema$' order by 1`,
  )
  return rows.map(({ what }) => what)
}
