// Databases and connections of one test, gone when it ends.
import pg from 'pg'
import { onTestFinished } from 'vitest'
import { freshDatabase } from '../../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../../support/postgres-server.ts'

export async function useDatabase(server: PostgresServer): Promise<FreshDatabase> {
  const database = await freshDatabase(server)
  onTestFinished(() => database.drop())
  return database
}

/** For looking from outside; it does not mind being cut off. */
export async function useClient(url: string, applicationName = 'test'): Promise<pg.Client> {
  const client = new pg.Client({ connectionString: url, application_name: applicationName })
  client.on('error', () => undefined)
  await client.connect()
  onTestFinished(() => client.end())
  return client
}

/** The connections of Millrace to a database, by their names in pg_stat_activity. */
export async function connectionsOf(client: pg.Client, database: string): Promise<Readonly<Record<string, number>>> {
  const { rows } = await client.query<{ name: string; count: number }>(
    `select application_name as name, count(*)::int as count from pg_stat_activity
     where datname = $1 and application_name like 'millrace%' group by 1`,
    [database],
  )
  return Object.fromEntries(rows.map(({ name, count }) => [name, count]))
}
