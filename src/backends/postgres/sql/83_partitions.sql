-- Partitions of job_bodies and job_attempts by the time in their ids, with the same bounds for both, made ahead of
-- time; ids of skewed clocks live in the default partition. For a moment everybody is locked out: with the weaker lock
-- that PostgreSQL asks for, an insert on its way to the default partition would be refused when it belongs to the new
-- one. Nothing here waits longer than 80 ms for a lock: who cannot get it says 'busy' and is called again later.

-- The smallest id of a moment.
create or replace function millrace.uuid_at(at timestamptz) returns uuid language sql immutable parallel safe
as $$ select (lpad(to_hex(greatest(millrace.ms_of(at), 0)), 12, '0') || repeat('0', 20))::uuid $$;

create or replace function millrace.time_of(id uuid) returns timestamptz language sql immutable parallel safe
as $$ select millrace.at_ms(('x0000' || left(replace(id::text, '-', ''), 12))::bit(64)::bigint) $$;

-- All partitions of a table but the default one.
create or replace function millrace.time_partitions(of_table text) returns table (leaf text, lower uuid, upper uuid) language sql stable
as $$
  select c.relname::text, substring(b.bounds from 'FROM \(''([0-9a-f-]{36})''\)')::uuid, substring(b.bounds from 'TO \(''([0-9a-f-]{36})''\)')::uuid
  from pg_catalog.pg_inherits i join pg_catalog.pg_class c on c.oid = i.inhrelid
  cross join lateral (select pg_catalog.pg_get_expr(c.relpartbound, c.oid) as bounds) b
  where i.inhparent = to_regclass('millrace.' || of_table) and b.bounds <> 'DEFAULT'
$$;

-- Has somebody used one of these tables in one transaction for longer than a moment? A lock that waits behind a long
-- reader holds up everybody who comes after it, so it is not even asked for.
create or replace function millrace.is_in_long_use(tables text[]) returns boolean language plpgsql as $$
declare
  ids oid[] := array(select to_regclass('millrace.' || quote_ident(t.name))::oid from unnest(tables) as t(name));
  users text[] := array(
    select distinct l.virtualtransaction from pg_catalog.pg_locks l
    where l.locktype = 'relation' and l.relation = any(ids) and l.granted and l.pid is distinct from pg_backend_pid()
      and l.database = (select d.oid from pg_catalog.pg_database d where d.datname = current_database()));
begin
  if cardinality(users) = 0 then return false; end if;
  perform pg_sleep(0.1);
  return exists (
    select 1 from pg_catalog.pg_locks l
    where l.locktype = 'relation' and l.relation = any(ids) and l.granted and l.virtualtransaction = any(users));
end $$;

-- Makes what is missing of the partition of this moment and the one after it, at most one per call. 'made', or 'more':
-- call again; 'busy': somebody is in the way; 'none': nothing to do.
create or replace function millrace.extend_partitions(width_ms bigint) returns text language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '80ms' set client_min_messages = warning
as $$
declare
  now_ms bigint := millrace.ms_of(millrace.now_at());
  from_ms bigint;
  to_ms bigint;
  outcome text;
begin
  for ahead in 0..1 loop
    from_ms := (now_ms / width_ms + ahead) * width_ms;
    to_ms := from_ms + width_ms;
    -- The width may have been another one: then it begins where the last partition ends.
    select greatest(from_ms, max(millrace.ms_of(millrace.time_of(p.upper)))) into from_ms
    from millrace.time_partitions('job_bodies') p
    where p.lower < millrace.uuid_at(millrace.at_ms(to_ms)) and p.upper > millrace.uuid_at(millrace.at_ms(from_ms));
    continue when from_ms >= to_ms;
    outcome := millrace.add_partition(millrace.at_ms(from_ms), millrace.at_ms(to_ms));
    if outcome <> 'none' then return outcome; end if;
  end loop;
  return 'none';
exception when lock_not_available or deadlock_detected or check_violation then
  return 'busy';
end $$;

create or replace function millrace.add_partition(from_at timestamptz, to_at timestamptz) returns text language plpgsql as $$
declare
  lower_id uuid := millrace.uuid_at(from_at);
  upper_id uuid := millrace.uuid_at(to_at);
  stamp text := to_char(from_at at time zone 'UTC', case when from_at = date_trunc('day', from_at, 'UTC') then 'YYYYMMDD' else 'YYYYMMDD_HH24MISS' end);
  one record;
  strays record;
  strayed boolean := false;
  waits text;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('millrace.partitions', 0)) then return 'busy'; end if;
  if exists (select 1 from millrace.time_partitions('job_bodies') p where p.lower = lower_id) then return 'none'; end if;
  if millrace.is_in_long_use('{job_attempts,job_bodies,job_attempts_rest,job_bodies_rest}') then return 'busy'; end if;
  -- Ids of skewed clocks may be there before their partition. A few of them move; for many the lock would be held too
  -- long, and they are as well off where they are: then this range stays in the default partition.
  for one in select * from millrace.partitioned() loop
    execute format('select count(*) as n, coalesce(sum(pg_column_size(s.content)), 0) as bytes
                    from (select %1$I as content from millrace.%2$I where %3$I >= $1 and %3$I < $2 limit 5001) s', one.content, one.name || '_rest', one.key)
    into strays using lower_id, upper_id;
    if strays.n > 5000 or strays.bytes > 16 * 1024 * 1024 then return 'none'; end if;
    strayed := strayed or strays.n > 0;
  end loop;
  if not strayed then
    waits := millrace.ready_rest(stamp, lower_id, upper_id);
    if waits is not null then return waits; end if;
  end if;
  for one in select * from millrace.partitioned() loop
    execute format('create table millrace.%I (like millrace.%I including all)', one.name || '_' || stamp, one.name);
  end loop;
  lock table only millrace.job_attempts in access exclusive mode;
  lock table only millrace.job_bodies in access exclusive mode;
  for one in select * from millrace.partitioned() loop
    execute format('lock table millrace.%I in access exclusive mode', one.name || '_rest');
    if strayed then
      execute format('with moved as (delete from millrace.%1$I where %2$I >= %3$L and %2$I < %4$L returning *) insert into millrace.%5$I select * from moved',
                     one.name || '_rest', one.key, lower_id, upper_id, one.name || '_' || stamp);
    end if;
    execute format('alter table millrace.%I attach partition millrace.%I for values from (%L) to (%L)', one.name, one.name || '_' || stamp, lower_id, upper_id);
    execute format('alter table millrace.%I drop constraint if exists %I', one.name || '_rest', 'awaits_' || stamp);
  end loop;
  return 'made';
end $$;

-- In the order in which they are locked: that of a flush, which writes attempts before it reads bodies.
create or replace function millrace.partitioned() returns table (name text, key text, content text) language sql immutable
as $$ values ('job_attempts', 'job_id', 'result'), ('job_bodies', 'id', 'payload') $$;

-- PostgreSQL reads the whole default partition under its lock, to see that nothing in it belongs to a partition that is
-- attached, unless a constraint says so. A big one gets such a constraint first, checked without a lock. While it
-- stands, ids of that range that would go there are refused: for a range in the future those of skewed clocks, for one
-- that has its partition none. Null: it is small, or has it; else one step on the way there.
create or replace function millrace.ready_rest(stamp text, lower_id uuid, upper_id uuid) returns text language plpgsql as $$
declare
  one record;
  is_valid boolean;
begin
  if pg_relation_size(to_regclass('millrace.job_bodies_rest')) + pg_relation_size(to_regclass('millrace.job_attempts_rest')) <= 64 * 1024 * 1024 then
    return null;
  end if;
  select bool_and(c.convalidated) into is_valid from pg_constraint c
  where c.conname = 'awaits_' || stamp and c.conrelid = any(array[to_regclass('millrace.job_bodies_rest'), to_regclass('millrace.job_attempts_rest')]);
  if is_valid then return null; end if;
  for one in select * from millrace.partitioned() loop
    if is_valid is null then
      execute format('alter table millrace.%1$I add constraint %2$I check (not (%3$I >= %4$L and %3$I < %5$L)) not valid',
                     one.name || '_rest', 'awaits_' || stamp, one.key, lower_id, upper_id);
    else
      execute format('alter table millrace.%I validate constraint %I', one.name || '_rest', 'awaits_' || stamp);
    end if;
  end loop;
  return 'more';
exception when check_violation then
  -- One came in between.
  for one in select * from millrace.partitioned() loop
    execute format('alter table millrace.%I drop constraint if exists %I', one.name || '_rest', 'awaits_' || stamp);
  end loop;
  return 'busy';
end $$;
