// Who stands in the way of a migration. `pg_blocking_pids` knows exactly, but only while the migration
// waits, and then its own connection cannot ask: so a second one asks. Without a second one we name all who hold
// locks on tables of the schema.
import type { ClientBase } from 'pg'
import { MillraceError } from '../../core/errors.ts'
import { sleep } from '../../runtime/clock.ts'
import type { Clock } from '../../runtime/clock.ts'
import { lockKey } from './migrate-sql.ts'

export interface Blocker {
  readonly pid: number
  /** Empty where the user may not look. */
  readonly applicationName: string
  readonly user: string
  /** `active`, `idle in transaction`, … */
  readonly state: string
  readonly transactionAgeMs: number | null
}

const BLOCKERS_MAX = 10

const SESSION = `select a.pid, coalesce(a.application_name, '') as "applicationName", coalesce(a.usename, '') as "user",
  coalesce(a.state, 'unknown') as state,
  floor(extract(epoch from clock_timestamp() - a.xact_start) * 1000)::float8 as "transactionAgeMs"
  from pg_stat_activity a`

export async function blockersOf(client: ClientBase, pid: number): Promise<readonly Blocker[]> {
  return sessions(client, `${SESSION} where a.pid = any(pg_blocking_pids($1))`, [pid])
}

/** A guess: whoever holds a lock on a relation of the schema now. */
export async function lockHolders(client: ClientBase, schema: string): Promise<readonly Blocker[]> {
  return sessions(
    client,
    `${SESSION} where a.pid <> pg_backend_pid() and a.pid in (
      select l.pid from pg_locks l join pg_class c on c.oid = l.relation
      where l.granted and l.locktype = 'relation' and c.relnamespace = to_regnamespace($1)
        and l.database = (select oid from pg_database where datname = current_database()))`,
    [schema],
  )
}

/** Whoever migrates this schema now. */
export async function migrationHolders(client: ClientBase, schema: string): Promise<readonly Blocker[]> {
  const key = BigInt.asUintN(64, lockKey(schema))
  return sessions(
    client,
    `${SESSION} where a.pid in (
      select l.pid from pg_locks l where l.granted and l.locktype = 'advisory' and l.objsubid = 1
        and l.classid::bigint = $1 and l.objid::bigint = $2
        and l.database = (select oid from pg_database where datname = current_database()))`,
    [String(key >> 32n), String(key & 0xffff_ffffn)],
  )
}

/** Asks again and again, on its own connection, until `work` ends, and tells whom it sees. */
export async function watchBlockers<Value>(
  watcher: { readonly client: ClientBase; readonly pid: number; readonly clock: Clock; readonly everyMs: number },
  work: () => Promise<Value>,
  seen: (blockers: readonly Blocker[]) => void,
): Promise<Value> {
  const done = new AbortController()
  const watch = async (): Promise<void> => {
    // Ends with the work, which is bounded by its own timeouts.
    while (!done.signal.aborted) {
      await sleep(watcher.clock, watcher.everyMs, done.signal)
      if (done.signal.aborted) return
      const blockers = await blockersOf(watcher.client, watcher.pid)
      if (blockers.length > 0) seen(blockers)
    }
  }
  // It only explains: a failure is no matter, and nobody waits for its last question. Behind a pooler with a single
  // connection to give, the answer comes when our own transaction has ended.
  watch().catch(() => undefined)
  try {
    return await work()
  } finally {
    done.abort()
  }
}

export function blockedError(what: string, blockers: readonly Blocker[], cause?: unknown): MillraceError {
  const names = blockers.map(describe).join('; ')
  const who = names === '' ? 'nobody holds it any more' : `held by ${names}`
  const [first] = blockers
  const advice =
    first === undefined
      ? 'try again'
      : `wait for it, or end it with \`select pg_terminate_backend(${first.pid})\`, then try again`
  return new MillraceError('MIGRATION_BLOCKED', `${what}; ${who}: ${advice}`, {
    cause,
    retryable: true,
    details: { blockers },
  })
}

function describe({ pid, applicationName, user, state, transactionAgeMs }: Blocker): string {
  const age = transactionAgeMs === null ? '' : `, transaction of ${Math.round(transactionAgeMs / 1000)} s`
  return `pid ${pid} (${applicationName === '' ? 'no application_name' : applicationName}, user ${user}, ${state}${age})`
}

async function sessions(client: ClientBase, text: string, values: unknown[]): Promise<readonly Blocker[]> {
  const { rows } = await client.query<Blocker>(`${text} order by a.xact_start nulls last limit ${BLOCKERS_MAX}`, values)
  return rows
}
