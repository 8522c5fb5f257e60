// What a backup asks the server before it begins: which version it is, how large the tables of the schema are, and
// what time it is there.
import { endClient } from '../backends/postgres/end-client.ts'
import { placeOf } from '../backends/postgres/migrate-connect.ts'
import { storeError } from '../backends/postgres/pg-errors.ts'
import { clientOf } from './pg-env.ts'

export interface ServerFacts {
  /** 180004. */
  readonly versionNumber: number
  readonly tableBytes: number
  readonly nowMs: number
}

const QUERY = `select current_setting('server_version_num')::int as version,
  coalesce(sum(pg_table_size(c.oid)), 0)::float8 as bytes,
  (date_part('epoch', now()) * 1000)::float8 as at
  from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind = 'r'`
const QUERY_MAX_MS = 30_000

export async function askServer(url: string, schema: string): Promise<ServerFacts> {
  const client = clientOf(url)
  // Whoever waits for an answer is told of it too.
  client.on('error', () => undefined)
  try {
    await client.connect()
    const query = { text: QUERY, values: [schema], query_timeout: QUERY_MAX_MS }
    const { rows } = await client.query<{ version: number; bytes: number; at: number }>(query)
    const { version = 0, bytes = 0, at = 0 } = rows[0] ?? {}
    return { versionNumber: version, tableBytes: bytes, nowMs: at }
  } catch (error) {
    throw storeError(error, `asking PostgreSQL at ${placeOf(client)}`)
  } finally {
    await endClient(client)
  }
}
