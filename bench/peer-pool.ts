// A pool of the peers' own `pg`, for the peers that take one and for asking their tables.
import { loadPeer } from './peers.ts'

export interface Pool {
  query(text: string): Promise<{ readonly rows: readonly Readonly<Record<string, unknown>>[] }>
  on(event: string, listener: (arg: { on(event: string, listener: () => void): void }) => void): void
  end(): Promise<void>
}

interface Pg {
  readonly default: { readonly Pool: new (options: { connectionString: string; max: number }) => Pool }
}

export async function createPool(connectionString: string, max: number): Promise<Pool> {
  const { default: pg } = await loadPeer<Pg>('pg')
  const pool = new pg.Pool({ connectionString, max })
  // Graphile Worker warns about a pool without listeners. What fails shows in the query that fails.
  pool.on('error', () => undefined)
  pool.on('connect', (client) => client.on('error', () => undefined))
  return pool
}

/** `text` answers one row with a number named `count`. */
export async function countOf(pool: Pool, text: string): Promise<number> {
  const { rows } = await pool.query(text)
  return Number(rows[0]?.['count'])
}
