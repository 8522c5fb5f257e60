// The statements with which a migration keeps its books, as text for `sqlText`: the runner sends them and
// `migrate sql` prints them, so a database migrated by hand is in no way different.
import { createHash } from 'node:crypto'
import { escapeLiteral } from 'pg'

/** Only a schema that bears this mark is dropped with its last migration: others were made by somebody else. */
const SCHEMA_MARK = 'Millrace: background jobs. Created, and dropped when empty, by its migrations.'

/** One key per schema; advisory locks are per database already. Taken for a transaction, so poolers do not matter. */
export function lockKey(schema: string): bigint {
  return createHash('sha256').update(`millrace migrations of ${schema}`).digest().readBigInt64BE(0)
}

/** Names in texts of the catalog (`pg_get_functiondef`) must not depend on who looks. */
export const PIN_SEARCH_PATH = 'set local search_path = pg_catalog'

export interface StepTimes {
  readonly lockTimeoutMs: number
  readonly statementTimeoutMs: number
  readonly idleTimeoutMs: number
}

export function settings({ lockTimeoutMs, statementTimeoutMs, idleTimeoutMs }: StepTimes): string {
  return [
    PIN_SEARCH_PATH,
    `set local lock_timeout = ${lockTimeoutMs}`,
    `set local statement_timeout = ${statementTimeoutMs}`,
    `set local idle_in_transaction_session_timeout = ${idleTimeoutMs}`,
    'set local client_min_messages = warning',
  ].join('; ')
}

/** `create schema if not exists` would ask for rights on the database even when the schema is there. */
export const BOOTSTRAP = `do $bootstrap$
begin
  if to_regnamespace(:'schema') is null then
    create schema :schema;
    comment on schema :schema is '${SCHEMA_MARK}';
  end if;
  if to_regclass('millrace.schema_migrations') is null then
    create table millrace.schema_migrations (
      id bigint generated always as identity primary key,
      event text not null check (event in ('up', 'down', 'functions')),
      version int not null,
      name text not null,
      checksum text not null,
      functions_checksum text,
      objects jsonb,
      server_major int not null default current_setting('server_version_num')::int / 10000,
      applied_at timestamptz not null default clock_timestamp(),
      applied_by text not null default session_user
    );
    comment on table millrace.schema_migrations is
      'one row per event: a migration applied or taken back, the functions created; the last row of a version counts';
  end if;
end $bootstrap$`

/** The versions that are in force: those whose last event is an up. */
const IN_FORCE = `select distinct on (version) version, event, name, checksum, applied_at, applied_by
  from millrace.schema_migrations where event in ('up', 'down') order by version, id desc`

export const READ_APPLIED = `select version, name, checksum, applied_by as by,
  floor(extract(epoch from applied_at) * 1000)::float8 as "atMs"
  from (${IN_FORCE}) as last where event = 'up' order by version`

export const READ_FUNCTIONS = `select functions_checksum as checksum, objects, server_major as "serverMajor"
  from millrace.schema_migrations where event = 'functions' order by id desc limit 1`

export const READ_HISTORY = `select event, version, name, applied_by as by,
  floor(extract(epoch from applied_at) * 1000)::float8 as "atMs"
  from millrace.schema_migrations order by id desc limit $1`

export function guard(version: number): string {
  return `do $guard$
declare found int;
begin
  select coalesce(max(version), 0) into found from (${IN_FORCE}) as last where event = 'up';
  if found <> ${version} then
    raise exception 'this part goes from schema version ${version}, but the database is at version %', found;
  end if;
end $guard$`
}

export interface EventRow {
  readonly event: 'up' | 'down'
  readonly version: number
  readonly name: string
  readonly checksum: string
}

export function recordEvent({ event, version, name, checksum }: EventRow, by: string | undefined): string {
  return `insert into millrace.schema_migrations (event, version, name, checksum, applied_by)
  values ('${event}', ${version}, ${escapeLiteral(name)}, '${checksum}', ${appliedBy(by)})`
}

/** Every function, view and trigger of the schema, with what it says. */
export const CATALOG = `select case prokind when 'p' then 'procedure' else 'function' end as kind,
    oid::regprocedure::text as id, md5(pg_get_functiondef(oid)) as hash, xmin::text as seen
  from pg_proc where pronamespace = to_regnamespace(:'schema') and prokind <> 'a'
  union all
  select 'view', c.oid::regclass::text, md5(pg_get_viewdef(c.oid)), r.xmin::text
  from pg_class c join pg_rewrite r on r.ev_class = c.oid and r.rulename = '_RETURN'
  where c.relnamespace = to_regnamespace(:'schema') and c.relkind = 'v'
  union all
  select 'trigger', format('%I on %s', t.tgname, t.tgrelid::regclass), md5(pg_get_triggerdef(t.oid)), t.xmin::text
  from pg_trigger t join pg_class c on c.oid = t.tgrelid
  where c.relnamespace = to_regnamespace(:'schema') and not t.tgisinternal and t.tgparentid = 0`

/** What the catalog held before the functions were run: afterwards a new row version tells what they wrote. */
export const REMEMBER_CATALOG = `select set_config('millrace_migrate.before',
  coalesce((select jsonb_agg(distinct kind || ' ' || id || ' ' || seen) from (${CATALOG}) as now), '[]')::text, true)`

const WRITTEN = `select kind, id, hash from (${CATALOG}) as now
  where not current_setting('millrace_migrate.before')::jsonb ? (kind || ' ' || id || ' ' || seen)`

/** Objects that the functions of before wrote and those of now do not. */
const LEFT_OVER = `select kind, id from jsonb_to_recordset(coalesce((
    select objects from millrace.schema_migrations where event = 'functions' order by id desc limit 1
  ), '[]')) as old(kind text, id text)
  except select kind, id from (${WRITTEN}) as written`

export const DROP_LEFT_OVER = dropAll(LEFT_OVER)

/** Retention puts triggers on partitions that it is about to drop; they would keep the functions they call. */
const DROP_PARTITION_TRIGGERS = `do $triggers$
declare command text;
begin
  for command in
    select format('drop trigger %I on %s', t.tgname, t.tgrelid::regclass)
    from pg_trigger t join pg_class c on c.oid = t.tgrelid join pg_proc p on p.oid = t.tgfoid
    where c.relnamespace = to_regnamespace(:'schema') and c.relispartition and p.pronamespace = c.relnamespace and not t.tgisinternal
  loop
    execute command;
  end loop;
end $triggers$`

/** Nothing was written since a moment ago, so all that is on record is left over. */
export const DROP_FUNCTIONS = `${DROP_PARTITION_TRIGGERS};\n${REMEMBER_CATALOG};\n${DROP_LEFT_OVER}`

/** Only the schema stands between a function and everybody; a grant of usage must not open them all. */
export const CLOSE_FUNCTIONS = 'revoke execute on all routines in schema :schema from public'

/** With the checksum of no functions at all, this records that they were dropped. */
export function recordFunctions(version: number, checksum: string, by: string | undefined): string {
  return `insert into millrace.schema_migrations (event, version, name, checksum, functions_checksum, objects, applied_by)
  select 'functions', ${version}, 'functions', '', '${checksum}',
    coalesce((select jsonb_agg(jsonb_build_object('kind', kind, 'id', id, 'hash', hash) order by kind, id)
      from (${WRITTEN}) as written), '[]'), ${appliedBy(by)}`
}

export const READ_CHANGED = `select old.kind, old.id, now.hash is null as "isMissing"
  from jsonb_to_recordset($1::jsonb) as old(kind text, id text, hash text)
  left join (${CATALOG}) as now on now.kind = old.kind and now.id = old.id
  where now.hash is distinct from old.hash order by 1, 2`

export const READ_INVALID_INDEXES = `select i.indexrelid::regclass::text as name
  from pg_index i join pg_class c on c.oid = i.indexrelid
  where c.relnamespace = to_regnamespace(:'schema') and not i.indisvalid and c.relkind = 'i'
    and not exists (select from pg_stat_progress_create_index p where p.index_relid = i.indexrelid) order by 1`

/** The last thing a way down to 0 does. What others put into the schema keeps it. */
export const REMOVE_BOOKS = `drop table millrace.schema_migrations;
do $remove$
begin
  if obj_description(to_regnamespace(:'schema'), 'pg_namespace') = '${SCHEMA_MARK}' then
    drop schema :schema;
  end if;
exception when dependent_objects_still_exist or insufficient_privilege then
  raise warning 'schema % is kept: %', :'schema', sqlerrm;
end $remove$`

/** Drops what can be dropped until nothing is left; what others built on these objects stops it, never cascades. */
function dropAll(listed: string): string {
  return `do $drop$
declare
  waiting text[] := array(select format('drop %s if exists %s', kind, id) from (${listed}) as doomed order by kind, id);
  stuck text[];
  command text;
  reason text;
  reasons text;
begin
  while cardinality(waiting) > 0 loop
    stuck := '{}';
    reasons := '';
    foreach command in array waiting loop
      begin
        execute command;
      exception when dependent_objects_still_exist then
        get stacked diagnostics reason = pg_exception_detail;
        stuck := stuck || command;
        reasons := reasons || E'\\n' || reason;
      end;
    end loop;
    if cardinality(stuck) = cardinality(waiting) then
      raise exception using errcode = 'dependent_objects_still_exist',
        message = 'something outside of Millrace depends on its functions or views: drop it first' || reasons;
    end if;
    waiting := stuck;
  end loop;
end $drop$`
}

function appliedBy(by: string | undefined): string {
  return by === undefined ? 'session_user' : `session_user || ${escapeLiteral(` from ${by}`)}`
}
