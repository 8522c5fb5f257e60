// Is the server there: one small question with a bound, for health and alerts. Whatever goes wrong is part of the answer.
import { LIMITS } from '../../core/limits.ts'
import { withoutPasswords } from '../../core/secrets.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Served } from '../../store/diagnosis.ts'
import { prepared } from './store.ts'
import type { PostgresStore } from './store.ts'

export function postgresServers(store: PostgresStore, url: string): Served['servers'] {
  const { clock } = store
  const ask = prepared(
    store,
    'servers',
    'select d.numbackends from pg_catalog.pg_stat_database d where d.datname = current_database()',
  )
  const own = { kind: 'postgres', name: placeOf(url) } as const
  return async () => {
    const startMs = clock.monoMs()
    try {
      const [row] = await bounded(clock, LIMITS.pingMaxMs, 'PostgreSQL', ask())
      return [{ ...own, pingMs: clock.monoMs() - startMs, clients: Number(row?.[0] ?? 0) }]
    } catch (error) {
      const message = error instanceof Error ? error.message : String(error)
      return [{ ...own, pingMs: null, error: withoutPasswords(message) }]
    }
  }
}

/** What the URL leaves out comes from the environment, and is not worth a look here. */
function placeOf(url: string): string {
  try {
    const { hostname, port } = new URL(url)
    return `${hostname || 'localhost'}:${port || '5432'}`
  } catch {
    return 'postgres'
  }
}
