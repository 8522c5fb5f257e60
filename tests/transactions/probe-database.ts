// A database with the probe in it, and a second connection that looks at it from outside.
import pg from 'pg'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { PROBE_IDS, PROBE_SCHEMA } from './probe.ts'
import type { Subject } from './promises.ts'

export interface ProbeDatabase extends Pick<Subject, 'clear' | 'ids'> {
  readonly url: string
  drop(): Promise<void>
}

export async function createProbeDatabase(): Promise<ProbeDatabase> {
  const database = await freshDatabase(await sharedPostgres(18))
  const outside = new pg.Client(database.url)
  await outside.connect()
  await outside.query(PROBE_SCHEMA)
  return {
    url: database.url,
    clear: async () => void (await outside.query('truncate probe')),
    ids: async () => (await outside.query<{ id: string }>(PROBE_IDS)).rows.map(({ id }) => id),
    async drop() {
      await outside.end()
      await database.drop()
    },
  }
}
