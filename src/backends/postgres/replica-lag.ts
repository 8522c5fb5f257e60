// How far the replica for reports is behind, for `millrace doctor`: what the primary has written by now must be seen there
// within seconds. Measured by waiting for it: the age of the last transaction there says nothing while nobody writes.
import { sleep } from '../../runtime/clock.ts'
import type { Check, Finding } from '../../store/diagnosis.ts'
import type { Connections } from './connections.ts'
import type { Row } from './row.ts'
import { statement } from './store.ts'
import type { PostgresStore } from './store.ts'

const LAG_WARN_MS = 3_000
const ASK_EVERY_MS = 100

const WRITTEN_SQL = 'select pg_current_wal_flush_lsn()::text'
/** Null: not a replica. */
const BEHIND_SQL = `select case when pg_is_in_recovery() then greatest(pg_wal_lsn_diff($1::pg_lsn, pg_last_wal_replay_lsn()), 0)::bigint end,
  case when pg_is_in_recovery() then pg_is_wal_replay_paused() end,
  to_char(pg_last_xact_replay_timestamp() at time zone 'UTC', 'YYYY-MM-DD HH24:MI:SS "UTC"')`

/** Where there is a replica. */
export function replicaChecks(store: PostgresStore): readonly Check[] {
  const { replica } = store.reads
  return replica === undefined ? [] : [{ name: 'replica', run: () => replicaLag(store, replica) }]
}

async function replicaLag(store: PostgresStore, replica: Connections): Promise<Finding> {
  const { clock, connections } = store
  const [written] = await connections.run(statement(store, 'doctor.written', WRITTEN_SQL), [])
  const ask = statement(store, 'doctor.replica', BEHIND_SQL)
  const fromMs = clock.monoMs()
  for (;;) {
    let row: Row | undefined
    try {
      row = (await replica.run(ask, [written?.[0] ?? '0/0']))[0]
    } catch (error) {
      return away(error)
    }
    const waitedMs = Math.round(clock.monoMs() - fromMs)
    const bytes = row?.[0] ?? null
    if (bytes === null) return notOne()
    if (bytes === '0') return { level: 'ok', message: `the replica showed everything within ${waitedMs} ms` }
    if (waitedMs >= LAG_WARN_MS) return behind(bytes, row)
    await sleep(clock, ASK_EVERY_MS)
  }
}

function behind(bytes: string, row: Row | undefined): Finding {
  const isPaused = row?.[1] === 't'
  const last = row?.[2] ?? 'unknown'
  return {
    level: 'warn',
    message: `the replica is ${bytes} bytes behind after ${LAG_WARN_MS} ms (its last transaction: ${last})${isPaused ? ', and its replay is paused' : ''}: lists and counts are old`,
    fix: isPaused
      ? 'on the replica: select pg_wal_replay_resume()'
      : 'look at pg_stat_replication on the primary, and at pg_stat_wal_receiver and long queries on the replica; until then leave replicaUrl out',
  }
}

function notOne(): Finding {
  return {
    level: 'warn',
    message: 'the server of replicaUrl is no replica (any more): lists and counts are those of that server',
    fix: 'name a standby of the primary under replicaUrl, or leave it out',
  }
}

function away(error: unknown): Finding {
  const said = error instanceof Error ? error.message : String(error)
  return {
    level: 'warn',
    message: `the replica does not answer, and reports are read from the primary (${said})`,
    fix: 'check that it runs, and the host, port, user and password of replicaUrl',
  }
}
