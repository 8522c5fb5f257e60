// What `millrace doctor` asks a PostgreSQL: is the schema ours, is the server set up to keep jobs, does anything hold
// it back, is every job where it should be. Each check is one bounded read.
import type { Check, Finding } from '../../store/diagnosis.ts'
import { createMigrator } from './migrate.ts'
import { replicaChecks } from './replica-lag.ts'
import { statement } from './store.ts'
import type { PostgresStore } from './store.ts'
import type { Row } from './row.ts'

const CLOCK_SKEW_WARN_MS = 1_000
const HELD_WARN_S = 60
const DEAD_ROWS_WARN = 200_000
const ORPHANS_LOOKED_AT = 100_000

export function diagnosePostgres(store: PostgresStore, url: string): () => Promise<readonly Check[]> {
  const read = (what: string, sql: string) => store.connections.run(statement(store, `doctor.${what}`, sql), [])

  const checks: readonly Check[] = [
    { name: 'schema', run: () => checkSchemaVersion(url, store.schema) },
    {
      name: 'durability',
      run: async () => durability((await read('durability', DURABILITY_SQL))[0]),
    },
    {
      name: 'held transactions',
      run: async () => heldTransactions(await read('held', HELD_SQL)),
    },
    {
      name: 'dead rows',
      run: async () => deadRows(await read('dead-rows', DEAD_ROWS_SQL)),
    },
    {
      name: 'connections',
      run: async () => connections((await read('connections', CONNECTIONS_SQL))[0]),
    },
    {
      name: 'clock',
      run: async () =>
        clockSkew((await read('clock', 'select millrace.ms_of(millrace.now_at())'))[0], store.clock.nowMs()),
    },
    {
      name: 'orphans',
      run: async () => orphans(await read('orphans', ORPHANS_SQL)),
    },
    {
      name: 'dispatched',
      run: async () => dispatched((await read('dispatched', DISPATCHED_SQL))[0]),
    },
    {
      name: 'counters',
      run: async () => counters((await read('counters', COUNTERS_SQL))[0]),
    },
    ...replicaChecks(store),
  ]
  return () => Promise.resolve(checks)
}

async function checkSchemaVersion(url: string, schema: string): Promise<Finding> {
  const migrator = createMigrator({ url, schema })
  try {
    const { version, latest, pending, drift, functions } = await migrator.status()
    if (drift.length > 0) return { level: 'warn', message: drift.join('; '), fix: 'millrace migrate status' }
    if (pending.length > 0) {
      return { level: 'fail', message: `version ${version}, this package has ${latest}`, fix: 'millrace migrate up' }
    }
    if (version > latest) {
      return { level: 'fail', message: `version ${version}, this package knows ${latest}`, fix: 'upgrade the package' }
    }
    if (functions === 'outdated') {
      return { level: 'fail', message: 'the functions are those of another release', fix: 'millrace migrate up' }
    }
    return { level: 'ok', message: `version ${version} of ${latest}` }
  } finally {
    await migrator.close()
  }
}

const DURABILITY_SQL = `select current_setting('fsync'), current_setting('synchronous_commit'), current_setting('full_page_writes'),
  current_setting('server_version')`

function durability(row: Row | undefined): Finding {
  const [fsync, synchronous, fullPages, version] = row ?? []
  if (fsync === 'off' || fullPages === 'off') {
    const message = `fsync ${fsync}, full_page_writes ${fullPages}: a crash of the machine loses acknowledged jobs or the database`
    return {
      level: 'fail',
      message,
      fix: 'alter system set fsync = on; alter system set full_page_writes = on; select pg_reload_conf()',
    }
  }
  if (synchronous === 'off') {
    const message = 'synchronous_commit off: a crash of the server may lose the last acknowledged writes (about 0.6 s)'
    return { level: 'warn', message, fix: 'alter system set synchronous_commit = on; select pg_reload_conf()' }
  }
  return { level: 'ok', message: `fsync on, synchronous_commit ${synchronous}, PostgreSQL ${version}` }
}

/** Who keeps old row versions alive: sessions, prepared transactions, replication slots. */
const HELD_SQL = `
  select * from (
    select 'session ' || pid || ' (' || coalesce(nullif(application_name, ''), usename::text, 'unknown') || ', ' || coalesce(state, '?') || ')' as who,
           extract(epoch from now() - coalesce(xact_start, backend_start))::int as seconds, 'select pg_terminate_backend(' || pid || ')' as fix
    from pg_stat_activity where backend_xmin is not null and pid <> pg_backend_pid() and backend_type = 'client backend'
    union all
    select 'prepared transaction ' || gid, extract(epoch from now() - prepared)::int, 'rollback prepared ''' || gid || '''' from pg_prepared_xacts
    union all
    select 'replication slot ' || slot_name, 2147483647, 'select pg_drop_replication_slot(''' || slot_name || ''')'
    from pg_replication_slots where xmin is not null and not active
  ) h where h.seconds > ${HELD_WARN_S} order by h.seconds desc limit 5`

function heldTransactions(rows: readonly Row[]): Finding {
  const [oldest] = rows
  if (oldest === undefined) return { level: 'ok', message: `no transaction is older than ${HELD_WARN_S} s` }
  const names = rows.map(([who, seconds]) => `${who} for ${seconds} s`).join('; ')
  const message = `finished work cannot be cleaned up while these are open: ${names}`
  return { level: 'warn', message, fix: oldest[2] ?? 'end it, or set idle_in_transaction_session_timeout' }
}

const DEAD_ROWS_SQL = `
  select relname, n_dead_tup, to_char(greatest(last_autovacuum, last_vacuum), 'YYYY-MM-DD HH24:MI'), current_setting('autovacuum')
  from pg_stat_user_tables where schemaname = :'schema' order by n_dead_tup desc limit 1`

function deadRows(rows: readonly Row[]): Finding {
  const [table, dead, vacuumed, autovacuum] = rows[0] ?? []
  if (autovacuum === 'off') {
    return {
      level: 'fail',
      message: 'autovacuum is off: tables grow without end',
      fix: 'alter system set autovacuum = on',
    }
  }
  if (Number(dead ?? 0) < DEAD_ROWS_WARN) return { level: 'ok', message: `at most ${dead ?? 0} dead rows in a table` }
  const message = `${dead} dead rows in ${table}, vacuumed ${vacuumed ?? 'never'}: claims get slower`
  return { level: 'warn', message, fix: `look at "held transactions", then: vacuum ${table}` }
}

const CONNECTIONS_SQL = `select count(*), current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
  from pg_stat_activity where backend_type = 'client backend'`

function connections(row: Row | undefined): Finding {
  const [used, most] = [Number(row?.[0]), Number(row?.[1])]
  const message = `${used} of ${most} connections in use`
  if (used < most * 0.9) return { level: 'ok', message }
  return {
    level: 'warn',
    message,
    fix: 'lower poolMax of the processes, raise max_connections, or put PgBouncer in front',
  }
}

function clockSkew(row: Row | undefined, nowMs: number): Finding {
  const skewMs = Math.round(nowMs - Number(row?.[0]))
  const message = `this machine is ${Math.abs(skewMs)} ms ${skewMs < 0 ? 'behind' : 'ahead of'} the server`
  if (Math.abs(skewMs) < CLOCK_SKEW_WARN_MS) return { level: 'ok', message }
  return {
    level: 'warn',
    message: `${message}; a runAt of this machine means another moment there`,
    fix: 'run NTP on both',
  }
}

/** A sample of the newest jobs: each must be in exactly one place, and nothing may hang on a job that is not there. */
const ORPHANS_SQL = `
  with newest as (select id from millrace.job_bodies order by id desc limit ${ORPHANS_LOOKED_AT}),
  placed as (
    select n.id, (select count(*) from millrace.ready x where x.id = n.id) + (select count(*) from millrace.scheduled x where x.id = n.id)
      + (select count(*) from millrace.blocked x where x.id = n.id) + (select count(*) from millrace.running x where x.id = n.id)
      + (select count(*) from millrace.job_attempts x where x.job_id = n.id and x.ended is not null) as places from newest n)
  select 'jobs in ' || case when places = 0 then 'no place' else 'two places' end, count(*), min(id::text) from placed where places <> 1 group by 1
  union all
  select 'places without a job', count(*), min(p.id::text) from (
    select id from millrace.ready union all select id from millrace.scheduled union all select id from millrace.blocked
    union all select id from millrace.running limit ${ORPHANS_LOOKED_AT}) p
  where not exists (select 1 from millrace.job_bodies b where b.id = p.id) having count(*) > 0
  union all
  select 'log rows without a job', count(*), min(a.job_id::text) from (select job_id from millrace.job_attempts order by job_id desc limit ${ORPHANS_LOOKED_AT}) a
  where not exists (select 1 from millrace.job_bodies b where b.id = a.job_id) having count(*) > 0`

function orphans(rows: readonly Row[]): Finding {
  if (rows.length === 0)
    return { level: 'ok', message: `the newest jobs (up to ${ORPHANS_LOOKED_AT}) are each in one place` }
  const found = rows.map(([what, count, example]) => `${count} ${what} (such as ${example})`).join('; ')
  return {
    level: 'fail',
    message: found,
    fix: 'report this with the output of `millrace jobs get <id>`: it should not happen',
  }
}

/** Jobs that wait as tokens need a worker of the hybrid: those of PostgreSQL alone never touch them. */
const DISPATCHED_SQL = `
  select count(*), (select count(*) from millrace.workers w where w.is_alive and w.epoch_seen is not null)
  from (select 1 from millrace.running r where r.worker_no = 0 limit ${ORPHANS_LOOKED_AT}) d`

function dispatched(row: Row | undefined): Finding {
  const [jobs, workers] = [Number(row?.[0] ?? 0), Number(row?.[1] ?? 0)]
  if (jobs === 0 || workers > 0) return { level: 'ok', message: `${jobs} jobs wait as tokens, for ${workers} workers` }
  return {
    level: 'warn',
    message: `${jobs} jobs wait as tokens in Redis, and no worker that reads them is alive`,
    fix: 'start a worker with both postgres and redis; to go on without Redis: select millrace.recall_tokens()',
  }
}

/** Slots in use must equal the jobs that hold one. */
const COUNTERS_SQL = `
  with held as (
    select queue_id, count(*) as n from (
      select queue_id from millrace.ready where hooks & 4 <> 0 union all select queue_id from millrace.running where hooks & 4 <> 0) h group by queue_id)
  select count(*), min(q.name) from millrace.job_queues q
  left join held h on h.queue_id = q.id left join millrace.slot_counts s on s.queue_id = q.id and s.key = ''
  where coalesce(h.n, 0) <> coalesce(s.used, 0)`

function counters(row: Row | undefined): Finding {
  if (Number(row?.[0] ?? 0) === 0) return { level: 'ok', message: 'slots in use equal the jobs that hold them' }
  const message = `the slot counter of ${row?.[0]} queue(s), such as '${row?.[1]}', differs from its jobs`
  return {
    level: 'warn',
    message,
    fix: 'ask again: a change under way looks like this; if it stays, set the limits of the queue anew',
  }
}
