-- Retiring partitions. When a time range is older than the rules without a queue, its partitions are replaced by the
-- rows in it that must stay: jobs that are not over, failed ones, those of queues with longer periods. Rows cannot go
-- to the default partition while a partition has their range, so the survivors are copied to tables beside it, part by
-- part, in id order; archived jobs and sums are collected likewise. A trigger on the partitions of the range tells
-- which parts were changed meanwhile, and those are copied again. Then one short transaction, under the lock of both
-- parents, drops the old partitions and attaches the new ones, or puts a few survivors into the default partition.
-- Nothing is deleted row by row, and no reader sees half of it. Counters follow part by part.
--
--   none → begin_retirement → walk_chunk … (again for changed parts) → swap_partitions → count_chunk … → none
--                                        ↘ leave_partitions: most of it must stay, so a copy would gain nothing

-- One bounded step: 'none' there is nothing to do, 'busy' somebody is in the way, else what was done: call again.
create or replace function millrace.retire_step(
  rule_queues text[], rule_ended int[], rule_ages bigint[], archive_ms bigint, width_ms bigint, most int
) returns text language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '80ms' set client_min_messages = warning
set enable_seqscan = off set jit = off
as $$
declare
  current millrace.retirements;
  judged_by text := md5(row(rule_queues, rule_ended, rule_ages, archive_ms, width_ms)::text);
  chunk_end uuid;
  chunk record;
  judged int := 0;
begin
  -- One leader at a time.
  if not pg_try_advisory_xact_lock(hashtextextended('millrace.partitions', 0)) then return 'busy'; end if;
  select * into current from millrace.retirements limit 1;
  if not found then
    return millrace.begin_retirement(rule_queues, rule_ended, rule_ages, width_ms, judged_by);
  end if;
  if current.is_swapped then return millrace.count_chunk(current, most); end if;
  if current.rules <> judged_by then
    -- Judged by other rules: all parts anew.
    delete from millrace.retired_chunks;
    delete from millrace.job_bodies_next;
    delete from millrace.job_attempts_next;
    delete from millrace.job_archive_next;
    update millrace.retirements set walked = current.lower, rules = judged_by, started_at = millrace.now_at(), jobs = 0, kept_rows = 0;
    return 'walked';
  end if;
  if current.walked < current.upper then
    select b.id into chunk_end from millrace.job_bodies b where b.id >= current.walked and b.id < current.upper order by b.id offset most limit 1;
    chunk_end := coalesce(chunk_end, current.upper);
    perform millrace.walk_chunk(current, current.walked, chunk_end, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
    update millrace.retirements r set walked = chunk_end, jobs = r.jobs + c.jobs, kept_rows = r.kept_rows + c.kept_rows
    from millrace.retired_chunks c where c.lower = current.walked and r.lower = current.lower returning r.* into current;
    if current.jobs >= 20000 and current.kept_rows > current.jobs then perform millrace.leave_partitions(current); end if;
    return 'walked';
  end if;
  if (select sum(c.jobs) from millrace.changed_chunks() c) > 20 then
    for chunk in select * from millrace.changed_chunks() c order by c.jobs desc loop
      perform millrace.walk_changed(current, chunk.lower, chunk.upper, chunk.jobs, chunk.changed, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
      judged := judged + chunk.jobs;
      exit when judged >= most;
    end loop;
    return 'walked';
  end if;
  return millrace.swap_partitions(current, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
exception when lock_not_available or deadlock_detected then
  return 'busy';
end $$;

-- Finds the oldest range that is due and makes the tables beside it. Partitions that were retired before are joined
-- with the one after them up to 13 widths (a quarter of a year), if that one is no smaller, so that a long period of
-- failed jobs is a handful of partitions; they go when the longest rule is over.
create or replace function millrace.begin_retirement(rule_queues text[], rule_ended int[], rule_ages bigint[], width_ms bigint, rules text)
returns text language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  bulk_ms bigint := (select max(r.age) from unnest(rule_queues, rule_ended, rule_ages) as r(queue, ended, age) where r.queue is null and r.ended in (1, 3));
  -- Jobs end a little later than they begin.
  bulk_id uuid := millrace.uuid_at(millrace.after_ms(now_at, -bulk_ms - 3600000));
  longest_id uuid := millrace.uuid_at(millrace.after_ms(now_at, -(select max(age) from unnest(rule_ages) as r(age)) - 3600000));
  lower_id uuid;
  upper_id uuid;
  archive_id uuid;
  one record;
begin
  if bulk_ms is null then return 'none'; end if;
  delete from millrace.kept_partitions k where not exists (select 1 from millrace.time_partitions('job_bodies') p where p.lower = k.lower);
  select p.lower, p.upper, p.lower into lower_id, upper_id, archive_id from millrace.time_partitions('job_bodies') p
  where p.upper <= bulk_id and not exists (select 1 from millrace.kept_partitions k where k.lower = p.lower) order by p.lower limit 1;
  if found then
    select k.lower into lower_id from millrace.kept_partitions k
    where k.upper = archive_id and millrace.ms_of(millrace.time_of(upper_id)) - millrace.ms_of(millrace.time_of(k.lower)) <= 13 * width_ms
      and millrace.bytes_in(k.lower, k.upper) <= millrace.bytes_in(archive_id, upper_id);
    lower_id := coalesce(lower_id, archive_id);
  else
    select k.lower, k.upper, k.upper into lower_id, upper_id, archive_id from millrace.kept_partitions k
    where k.upper <= longest_id order by k.lower limit 1;
    if not found then return 'none'; end if;
  end if;

  if millrace.is_in_long_use(millrace.leaves_in(lower_id, upper_id)) then return 'busy'; end if;
  drop table if exists millrace.job_bodies_next, millrace.job_attempts_next, millrace.job_archive_next;
  for one in select p.name, p.key, p.name <> 'job_archive' as is_marked
             from (select t.name, t.key from millrace.partitioned() t union all values ('job_archive', 'id')) p loop
    execute format('create table millrace.%1$I (like millrace.%2$I including all, constraint in_range check (%3$I >= %4$L and %3$I < %5$L))',
                   one.name || '_next', one.name, one.key, case when one.is_marked then lower_id else archive_id end, upper_id);
  end loop;
  for one in
    select t.key, p.leaf from millrace.partitioned() t cross join lateral millrace.time_partitions(t.name) p
    where p.lower >= lower_id and p.upper <= upper_id
  loop
    execute format('create or replace trigger mark_change after insert or update or delete on millrace.%I for each row execute function millrace.mark_change(%L)',
                   one.leaf, one.key);
  end loop;
  delete from millrace.retired_changes;
  delete from millrace.retired_chunks;
  insert into millrace.retirements (lower, upper, archive_lower, walked, rules, started_at) values (lower_id, upper_id, archive_id, lower_id, rules, now_at);
  return 'begun';
end $$;

-- The trigger on partitions of the range that is being retired.
create or replace function millrace.mark_change() returns trigger language plpgsql as $$
begin
  if tg_argv[0] = 'id' then
    insert into millrace.retired_changes (id) values (case when tg_op = 'DELETE' then old.id else new.id end);
  else
    insert into millrace.retired_changes (id) values (case when tg_op = 'DELETE' then old.job_id else new.job_id end);
  end if;
  return null;
end $$;

create or replace function millrace.leaves_in(lower_id uuid, upper_id uuid) returns text[] language sql stable as $$
  select array_agg(p.leaf) from millrace.partitioned() t cross join lateral millrace.time_partitions(t.name) p
  where p.lower >= lower_id and p.upper <= upper_id
$$;

create or replace function millrace.bytes_in(lower_id uuid, upper_id uuid) returns numeric language sql stable as $$
  select sum(pg_total_relation_size(to_regclass('millrace.' || quote_ident(l.leaf)))) from unnest(millrace.leaves_in(lower_id, upper_id)) as l(leaf)
$$;

-- Parts that were judged before a change in them, with one of the jobs that were changed.
create or replace function millrace.changed_chunks() returns table (lower uuid, upper uuid, jobs int, changed uuid) language sql stable as $$
  select distinct on (c.lower) c.lower, c.upper, c.jobs, x.id from (select distinct id from millrace.retired_changes) x
  cross join lateral (select r.* from millrace.retired_chunks r where r.lower <= x.id order by r.lower desc limit 1) c
  where c.upper > x.id order by c.lower
$$;

-- Judges the jobs of one part and writes down what becomes of them; what was written of this range before is replaced.
create or replace function millrace.walk_chunk(
  current millrace.retirements, lower_id uuid, upper_id uuid, rule_queues text[], rule_ended int[], rule_ages bigint[], archive_ms bigint, width_ms bigint
) returns void language plpgsql
-- Ranges of a few thousand rows, each read once and joined by hashing.
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set jit = off
as $$
declare
  now_at timestamptz := millrace.now_at();
  archived uuid[];
begin
  -- First: a change that commits from here on leaves its mark for the next time.
  delete from millrace.retired_changes x where x.id >= lower_id and x.id < upper_id;
  if current.walked >= upper_id then
    delete from millrace.job_bodies_next n where n.id >= lower_id and n.id < upper_id;
    delete from millrace.job_attempts_next n where n.job_id >= lower_id and n.job_id < upper_id;
    delete from millrace.job_archive_next n where n.id >= lower_id and n.id < upper_id;
  end if;
  with rules as materialized (
    select * from millrace.retention_rules(rule_queues, rule_ended, rule_ages, width_ms)
  ), bodies as materialized (
    select b.* from millrace.job_bodies b where b.id >= lower_id and b.id < upper_id
  ), attempts as materialized (
    select a.* from millrace.job_attempts a where a.job_id >= lower_id and a.job_id < upper_id
  ), fates as materialized (
    -- 0 it stays, 1 it goes, 2 it goes to the archive. Late ones of a range whose archive is there already stay:
    -- exact deletion takes them.
    select b.id, case when f.finished_at is null or r.age_ms is null or f.finished_at > millrace.after_ms(now_at, -r.age_ms) then 0
                      when r.is_own or r.ended = 2 or coalesce(archive_ms, 0) <= r.age_ms then 1
                      when b.id < current.archive_lower then 0 else 2 end as fate
    from bodies b
    left join attempts f on f.job_id = b.id and f.ended is not null
    left join rules r on r.queue_id = b.queue_id and r.ended = f.ended
  ), kept_bodies as (
    insert into millrace.job_bodies_next select b.* from bodies b join fates f on f.id = b.id where f.fate = 0 returning 1
  ), kept_attempts as (
    insert into millrace.job_attempts_next select a.* from attempts a join fates f on f.id = a.job_id where f.fate = 0 returning 1
  ), noted as (
    insert into millrace.retired_chunks (lower, upper, jobs, kept_rows, counts, daily, batches)
    select lower_id, upper_id, (select count(*) from fates), (select count(*) from kept_bodies) + (select count(*) from kept_attempts),
      (select json_agg(g) from (select a.queue_id, a.ended, count(*) as n from attempts a join fates f on f.id = a.job_id
                                where f.fate > 0 and a.ended is not null group by 1, 2) g),
      (select json_agg(g) from (
         select (a.finished_at at time zone 'UTC')::date as day, q.name as queue_name, b.name, millrace.audit_word(a.status) as status, count(*) as n,
                sum(millrace.ran_ms(a.started_at, a.finished_at)) as total_ms, max(millrace.ran_ms(a.started_at, a.finished_at)) as max_ms
         from attempts a join fates f on f.id = a.job_id join bodies b on b.id = a.job_id join millrace.job_queues q on q.id = a.queue_id
         where f.fate > 0 group by 1, 2, 3, a.status) g),
      (select json_agg(g) from (select b.batch_id, count(*) as n from bodies b join fates f on f.id = b.id
                                where f.fate > 0 and b.batch_id is not null group by 1) g)
    on conflict (lower) do update set upper = excluded.upper, jobs = excluded.jobs, kept_rows = excluded.kept_rows, counts = excluded.counts, daily = excluded.daily, batches = excluded.batches
  )
  select coalesce(array_agg(f.id), '{}') into archived from fates f where f.fate = 2;
  insert into millrace.job_archive_next select * from millrace.archive_rows(archived);
end $$;

-- The same for a part in which a job was changed: this one gets a part of its own, so that little is judged again should
-- it change again. What is left of changes then is small enough for the swap.
create or replace function millrace.walk_changed(
  current millrace.retirements, lower_id uuid, upper_id uuid, jobs int, changed uuid,
  rule_queues text[], rule_ended int[], rule_ages bigint[], archive_ms bigint, width_ms bigint
) returns void language plpgsql as $$
declare
  next_id uuid := upper_id;
begin
  if jobs > 10 then
    next_id := coalesce((select b.id from millrace.job_bodies b where b.id > changed and b.id < upper_id order by b.id limit 1), upper_id);
    if next_id < upper_id then
      perform millrace.walk_chunk(current, next_id, upper_id, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
    end if;
    if lower_id < changed then
      perform millrace.walk_chunk(current, lower_id, changed, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
      lower_id := changed;
    end if;
  end if;
  perform millrace.walk_chunk(current, lower_id, next_id, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
end $$;

-- The old partitions go, what stays takes their place.
create or replace function millrace.swap_partitions(
  current millrace.retirements, rule_queues text[], rule_ended int[], rule_ages bigint[], archive_ms bigint, width_ms bigint
) returns text language plpgsql as $$
declare
  kept_rows bigint := (select coalesce(sum(c.kept_rows), 0) from millrace.retired_chunks c);
  -- A few survivors go to the default partition, more keep a partition.
  are_few boolean := kept_rows <= 5000 and pg_total_relation_size(to_regclass('millrace.job_bodies_next'))
                       + pg_total_relation_size(to_regclass('millrace.job_attempts_next')) <= 16 * 1024 * 1024;
  has_archive boolean := archive_ms is not null and current.archive_lower < current.upper;
  chunk record;
  leaf text;
  waits text;
begin
  if millrace.is_in_long_use(millrace.leaves_in(current.lower, current.upper) || '{job_attempts,job_bodies,job_attempts_rest,job_bodies_rest}'::text[]) then
    return 'busy';
  end if;
  if not are_few then
    if current.kept_rows > current.jobs then
      perform millrace.leave_partitions(current);
      return 'left';
    end if;
    waits := millrace.ready_rest('swap', current.lower, current.upper);
    if waits is not null then return waits; end if;
  end if;
  -- What stays may have ended before the mark of exact deletion: it was not there to be looked at.
  update millrace.retention_marks m set through = least(m.through, millrace.after_ms(current.started_at, -m.age_ms)) where m.scope like 'held%';
  -- The archive first: nobody on the hot path waits for it.
  if has_archive then
    lock table only millrace.job_archive, only millrace.job_archive_rest in access exclusive mode;
    with late as (delete from millrace.job_archive_rest where id >= current.archive_lower and id < current.upper returning *)
    insert into millrace.job_archive_next select * from late on conflict (id) do nothing;
    execute format('alter table millrace.job_archive attach partition millrace.job_archive_next for values from (%L) to (%L)', current.archive_lower, current.upper);
  end if;

  lock table only millrace.job_attempts in access exclusive mode;
  lock table only millrace.job_bodies in access exclusive mode;
  -- Nobody is on his way any more: the last changes, if they are small.
  if (select coalesce(sum(c.jobs), 0) from millrace.changed_chunks() c) > 20 then raise lock_not_available; end if;
  for chunk in select c.lower, c.upper from millrace.changed_chunks() c loop
    perform millrace.walk_chunk(current, chunk.lower, chunk.upper, rule_queues, rule_ended, rule_ages, archive_ms, width_ms);
  end loop;
  foreach leaf in array millrace.leaves_in(current.lower, current.upper) loop
    execute format('drop table millrace.%I', leaf);
  end loop;
  delete from millrace.kept_partitions k where k.lower >= current.lower and k.upper <= current.upper;
  if are_few then
    insert into millrace.job_bodies select * from millrace.job_bodies_next;
    insert into millrace.job_attempts select * from millrace.job_attempts_next;
    drop table millrace.job_bodies_next, millrace.job_attempts_next;
  else
    for leaf in select p.name from millrace.partitioned() p loop
      execute format('alter table millrace.%I attach partition millrace.%I for values from (%L) to (%L)', leaf, leaf || '_next', current.lower, current.upper);
      execute format('alter table millrace.%I drop constraint if exists awaits_swap', leaf || '_rest');
      perform millrace.name_next(leaf, current.lower);
    end loop;
    insert into millrace.kept_partitions (lower, upper) values (current.lower, current.upper);
  end if;
  if exists (select 1 from millrace.job_archive_next) then
    perform millrace.name_next('job_archive', current.archive_lower);
  else
    drop table millrace.job_archive_next;
  end if;
  update millrace.retirements set is_swapped = true where lower = current.lower;
  return 'swapped';
end $$;

-- Too much of it must stay: what is due in it is deleted exactly from now on. It is looked at again when the longest rule
-- is over.
create or replace function millrace.leave_partitions(current millrace.retirements) returns void language plpgsql as $$
declare
  leaf text;
begin
  foreach leaf in array millrace.leaves_in(current.lower, current.upper) loop
    execute format('drop trigger mark_change on millrace.%I', leaf);
  end loop;
  insert into millrace.kept_partitions (lower, upper) select p.lower, p.upper from millrace.time_partitions('job_bodies') p
  where p.lower >= current.lower and p.upper <= current.upper on conflict do nothing;
  drop table millrace.job_bodies_next, millrace.job_attempts_next, millrace.job_archive_next;
  delete from millrace.retired_chunks;
  delete from millrace.retired_changes;
  delete from millrace.retirements where lower = current.lower;
  update millrace.retention_marks m set through = least(m.through, millrace.time_of(current.lower)) where m.scope like 'held%';
end $$;

-- It is attached: the name for the next one is free again, and the constraint that said where its rows belong has done
-- its work.
create or replace function millrace.name_next(of_table text, lower_id uuid) returns void language plpgsql as $$
declare
  leaf text := of_table || to_char(millrace.time_of(lower_id) at time zone 'UTC', '_YYYYMMDD_HH24MISS');
begin
  execute format('alter table millrace.%I rename to %I', of_table || '_next', leaf);
  execute format('alter table millrace.%I drop constraint in_range', leaf);
end $$;

-- After the swap: the sums of one part, and what else hung on its jobs. At most `most` * 10 log lines at once.
create or replace function millrace.count_chunk(current millrace.retirements, most int) returns text language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
declare
  chunk millrace.retired_chunks;
  lines bigint;
begin
  select * into chunk from millrace.retired_chunks order by lower limit 1;
  if not found then
    delete from millrace.retired_changes;
    delete from millrace.retirements where lower = current.lower;
    return 'done';
  end if;
  insert into millrace.final_counts (queue_id, ended, n)
  select g.queue_id, g.ended, -g.n from json_to_recordset(chunk.counts) as g(queue_id int, ended smallint, n bigint);
  perform millrace.add_daily(g.day, g.queue_name, g.name, g.status, g.n, g.total_ms, g.max_ms)
  from (select * from json_to_recordset(chunk.daily) as d(day date, queue_name text, name text, status text, n bigint, total_ms numeric, max_ms bigint)
        order by 1, 2, 3, 4) g;
  perform 1 from millrace.batches where id in (select g.batch_id from json_to_recordset(chunk.batches) as g(batch_id uuid)) order by id for update;
  update millrace.batches b set kept = b.kept - g.n
  from json_to_recordset(chunk.batches) as g(batch_id uuid, n int) where b.id = g.batch_id;
  delete from millrace.job_states s where s.id >= chunk.lower and s.id < chunk.upper
    and not exists (select 1 from millrace.job_bodies b where b.id = s.id);
  delete from millrace.job_parents p where p.child >= chunk.lower and p.child < chunk.upper
    and not exists (select 1 from millrace.job_bodies b where b.id = p.child);
  delete from millrace.job_lines where (job_id, lease, line_no) in (
    select l.job_id, l.lease, l.line_no from millrace.job_lines l where l.job_id >= chunk.lower and l.job_id < chunk.upper
      and not exists (select 1 from millrace.job_bodies b where b.id = l.job_id)
      and not exists (select 1 from millrace.job_archive b where b.id = l.job_id) limit most * 10);
  get diagnostics lines = row_count;
  if lines >= most * 10 then
    update millrace.retired_chunks set counts = null, daily = null, batches = null where lower = chunk.lower;
  else
    delete from millrace.retired_chunks where lower = chunk.lower;
  end if;
  return 'counted';
end $$;
