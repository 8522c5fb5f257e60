-- Exact deletion of finished jobs, in bounded steps: what they leave behind, and the rules by which they go. A rule is
-- (queue or null, ended, milliseconds); one without a queue holds for the queues that no other rule of that end names.

create or replace function millrace.audit_word(status int) returns text language sql immutable parallel safe as $$
  select case status when 1 then 'success' when 2 then 'retry' when 3 then 'failed' when 4 then 'cancelled' when 5 then 'expired'
                     when 6 then 'released' when 7 then 'replayed' end
$$;

create or replace function millrace.ran_ms(started_at timestamptz, finished_at timestamptz) returns bigint language sql immutable parallel safe
as $$ select greatest(round(date_part('epoch', finished_at - coalesce(started_at, finished_at)) * 1000), 0)::bigint $$;

-- The attempts of these jobs as daily rows.
create or replace function millrace.daily_of(ids uuid[])
returns table (day date, queue_name text, name text, status text, n bigint, total_ms numeric, max_ms bigint) language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select d.day, q.name, d.name, millrace.audit_word(d.status), d.n, d.total_ms, d.max_ms from (
    select (a.finished_at at time zone 'UTC')::date as day, a.queue_id, b.name, a.status, count(*) as n,
           sum(millrace.ran_ms(a.started_at, a.finished_at)) as total_ms, max(millrace.ran_ms(a.started_at, a.finished_at)) as max_ms
    from (select o.id, o.name from millrace.job_bodies o where o.id = any(ids)) b
    cross join lateral (select r.* from millrace.job_attempts r where r.job_id = b.id offset 0) a
    group by 1, 2, 3, 4) d
  join millrace.job_queues q on q.id = d.queue_id
$$;

create or replace function millrace.add_daily(new_day date, of_queue text, of_name text, of_status text, more bigint, more_ms numeric, longest_ms bigint)
returns void language sql as $$
  insert into millrace.job_daily as d (day, queue_name, name, status, n, total_ms, max_ms)
  values (new_day, of_queue, of_name, of_status, more, more_ms, longest_ms)
  on conflict (day, queue_name, name, status)
  do update set n = d.n + excluded.n, total_ms = d.total_ms + excluded.total_ms, max_ms = greatest(d.max_ms, excluded.max_ms)
$$;

-- These finished jobs as rows of the archive.
create or replace function millrace.archive_rows(ids uuid[]) returns setof millrace.job_archive language sql stable
-- A few thousand rows of each, read by id and joined by hashing.
set enable_seqscan = off set enable_nestloop = off set enable_mergejoin = off set jit = off
as $$
  with attempts as materialized (
    select a.* from millrace.job_attempts a where a.job_id = any(ids)
  ), states as materialized (
    select x.* from millrace.job_states x where x.id = any(ids)
  ), parents as (
    select p.child, array_agg(p.parent order by p.position) as list from millrace.job_parents p where p.child = any(ids) group by p.child
  ), trails as (
    -- A job without a state went the quick way: one attempt, of which the row in the archive says everything.
    select a.job_id, json_agg(json_build_object('no', a.no, 'attempt', a.attempt, 'status', a.status, 'worker_no', a.worker_no,
             'started_at', a.started_at, 'finished_at', a.finished_at, 'error', a.error, 'note', a.note) order by a.no) as trail
    from attempts a join states x on x.id = a.job_id
    group by a.job_id having count(*) > 1 or bool_or(a.error is not null or a.note is not null)
  )
  select b.id, b.enqueued_at, coalesce(f.run_at, b.first_run_at), coalesce(f.started_at, x.started_at), f.finished_at, b.schedule_tick, x.replayed_at,
         f.no, b.queue_id, coalesce(f.worker_no, x.worker_no), b.timeout_ms, b.max_attempts, f.attempt_count, f.crash_count, b.priority, f.ended,
         b.name, b.payload, f.result, x.last_error, b.meta, b.tags, p.list, b.batch_id, b.replay_of, x.replayed_into, x.replayed_by,
         b.group_key, b.limit_key, b.unique_key, b.schedule_name, t.trail
  from millrace.job_bodies b join attempts f on f.job_id = b.id and f.ended is not null
  left join states x on x.id = b.id left join parents p on p.child = b.id left join trails t on t.job_id = b.id
  where b.id = any(ids)
$$;

-- Takes finished jobs out, whose last rows the caller has locked: into the archive or not, with all that hangs on them.
-- Log lines of archived jobs have their own time.
create or replace function millrace.forget_jobs(ids uuid[], to_archive boolean) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
begin
  if to_archive then
    insert into millrace.job_archive select * from millrace.archive_rows(ids) on conflict (id) do nothing;
  else
    delete from millrace.job_lines where job_id = any(ids);
  end if;
  perform millrace.add_daily(d.day, d.queue_name, d.name, d.status, d.n, d.total_ms, d.max_ms)
  from (select * from millrace.daily_of(ids) order by 1, 2, 3, 4) d;
  with gone as (
    delete from millrace.job_attempts where job_id = any(ids) returning queue_id, ended
  )
  insert into millrace.final_counts (queue_id, ended, n) select queue_id, ended, -count(*) from gone where ended is not null group by queue_id, ended;
  delete from millrace.job_states where id = any(ids);
  delete from millrace.job_parents where child = any(ids);
  with gone as (
    delete from millrace.job_bodies where id = any(ids) returning batch_id
  )
  update millrace.batches b set kept = b.kept - g.jobs
  from (select batch_id, count(*)::int as jobs from gone where batch_id is not null group by batch_id) g where b.id = g.batch_id;
end $$;

-- What is over by itself.
create or replace function millrace.sweep(longest_ms bigint, most int) returns void language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
begin
  delete from millrace.unique_keys where (queue_id, key) in (
    select queue_id, key from millrace.unique_keys where until <= now_at and until < 'infinity' limit most * 10)
    -- Again: somebody may have taken it over meanwhile.
    and until <= now_at and until < 'infinity';
  delete from millrace.rate_lines where (queue_id, key) in (
    select queue_id, key from millrace.rate_lines
    where start_tat_ms < millrace.ms_of(now_at) and admit_tat_ms < millrace.ms_of(now_at) limit most * 10)
    and start_tat_ms < millrace.ms_of(now_at) and admit_tat_ms < millrace.ms_of(now_at);
  delete from millrace.batches where id in (
    select id from millrace.batches where kept = 0 and finished_at <= millrace.after_ms(now_at, -longest_ms) limit most);
end $$;

-- Lives that nothing tells of any more: what they ran is older than all that is kept. The oldest have the lowest numbers.
create or replace function millrace.forget_workers(kept_ms bigint, most int) returns void language plpgsql as $$
declare
  gone int[];
begin
  gone := array(
    select w.no from (select d.no, d.last_beat_at from millrace.workers d where not d.is_alive order by d.no limit most) w
    join millrace.worker_claims c on c.worker_no = w.no
    where w.last_beat_at <= millrace.after_ms(millrace.now_at(), -kept_ms) and c.is_empty);
  if cardinality(gone) = 0 then return; end if;
  delete from millrace.worker_commands where worker_no = any(gone);
  delete from millrace.worker_claims where worker_no = any(gone);
  delete from millrace.workers where no = any(gone);
end $$;

-- The contract's prune: whatever is old enough now, wherever it is, without an archive. How many.
create or replace function millrace.prune_jobs(rule_queues text[], rule_ended int[], rule_ages bigint[], most int) returns int language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  old_ids uuid[] := '{}';
  rule record;
begin
  for rule in select r.queue, r.ended, r.age from unnest(rule_queues, rule_ended, rule_ages) as r(queue, ended, age) loop
    exit when cardinality(old_ids) >= most;
    old_ids := old_ids || array(
      select a.job_id from millrace.job_attempts a join millrace.job_queues q on q.id = a.queue_id
      where a.ended = rule.ended and a.finished_at <= millrace.after_ms(now_at, -rule.age)
        and case when rule.queue is not null then q.name = rule.queue
                 else not exists (select 1 from unnest(rule_queues, rule_ended) as o(queue, ended) where o.queue = q.name and o.ended = rule.ended) end
      limit most - cardinality(old_ids) for update of a skip locked);
  end loop;
  if cardinality(old_ids) > 0 then perform millrace.forget_jobs(old_ids, false); end if;
  perform millrace.sweep((select max(age) from unnest(rule_ages) as r(age)), most);
  return cardinality(old_ids);
end $$;

-- The rules, by queue. Rules without a queue may be held: jobs under them leave with their partition as far as they are
-- in one, which costs up to one width more time. Not when that would more than double it, and not by more than a width.
create or replace function millrace.retention_rules(rule_queues text[], rule_ended int[], rule_ages bigint[], width_ms bigint)
returns table (queue_id int, ended smallint, age_ms bigint, is_own boolean, is_held boolean) language sql stable as $$
  with rules as (select r.queue, r.ended, r.age from unnest(rule_queues, rule_ended, rule_ages) as r(queue, ended, age)),
  bulk as (select max(age) as age from rules where queue is null and ended in (1, 3))
  select q.id, e.ended::smallint, coalesce(o.age, s.age), o.age is not null,
         o.age is null and s.age >= width_ms and s.age <= b.age and s.age >= b.age - width_ms
  from millrace.job_queues q cross join (values (1), (2), (3)) as e(ended) cross join bulk b
  left join rules o on o.queue = q.name and o.ended = e.ended
  left join rules s on s.queue is null and s.ended = e.ended
  where coalesce(o.age, s.age) is not null
$$;

-- One bounded step of exact deletion for maintenance. It goes through time from mark to mark with the BRIN index over
-- finished_at, so that no step looks at history again. True: there is more.
create or replace function millrace.expire_jobs(
  rule_queues text[], rule_ended int[], rule_ages bigint[], archive_ms bigint, width_ms bigint, most int, out deleted int, out more boolean
) language plpgsql security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s'
set enable_seqscan = off set jit = off
as $$
declare
  now_at timestamptz := millrace.now_at();
  started_at timestamptz := clock_timestamp();
  kind record;
  mark millrace.retention_marks;
  until_at timestamptz;
  looked_at timestamptz;
  ids uuid[];
begin
  deleted := 0;
  more := false;
  for kind in
    select case when r.is_held then 'held' else 'all' end as scope, r.ended, r.age_ms, array_agg(r.queue_id order by r.queue_id) as queue_ids,
           not r.is_own and r.ended in (1, 3) and coalesce(archive_ms, 0) > r.age_ms as is_archived
    from millrace.retention_rules(rule_queues, rule_ended, rule_ages, width_ms) r group by 1, 2, 3, 5
  loop
    mark := millrace.retention_mark(kind.scope || case when kind.is_archived then ' archived' else '' end, kind.ended, kind.age_ms, kind.queue_ids);
    continue when mark.scope is null;
    for look in 1..20 loop
      until_at := least(millrace.after_ms(now_at, -kind.age_ms), millrace.after_ms(mark.through, mark.slice_ms));
      exit when until_at <= mark.through;
      looked_at := clock_timestamp();
      ids := millrace.ended_between(kind.scope = 'held', kind.ended, kind.queue_ids, mark.through - interval '10 minutes', until_at, most - deleted);
      if cardinality(ids) > 0 then perform millrace.forget_jobs(ids, kind.is_archived); end if;
      deleted := deleted + cardinality(ids);
      if deleted >= most then
        -- The same slice again, then: a smaller one has fewer dead rows to pass by.
        mark.slice_ms := greatest(1000, mark.slice_ms / 4);
        exit;
      end if;
      mark.through := until_at;
      mark.slice_ms := case when clock_timestamp() - looked_at > interval '100 milliseconds' then greatest(1000, mark.slice_ms / 2)
                            else least(86400000000, mark.slice_ms * 2) end;
      exit when clock_timestamp() - started_at > interval '1 second';
    end loop;
    more := more or mark.through < millrace.after_ms(now_at, -kind.age_ms);
    update millrace.retention_marks m set through = mark.through, slice_ms = mark.slice_ms
    where m.scope = mark.scope and m.ended = mark.ended and m.age_ms = mark.age_ms;
    exit when deleted >= most;
  end loop;
  perform millrace.sweep((select max(age) from unnest(rule_ages) as r(age)), most);
  -- Unless jobs of some status are kept for ever.
  if (select count(*) from unnest(rule_queues) as r(queue) where r.queue is null) = 3 then
    perform millrace.forget_workers(
      greatest((select max(age) from unnest(rule_ages) as r(age)), archive_ms) + width_ms + 86400000, most);
  end if;
end $$;

-- The mark of these queues, locked; null: somebody else is at it. Queues that came under the rule and are older than
-- the mark were not looked at: then it begins anew.
create or replace function millrace.retention_mark(of_scope text, of_ended int, of_age bigint, of_queues int[]) returns millrace.retention_marks language plpgsql as $$
declare
  mark millrace.retention_marks;
  first_at timestamptz := (select min(q.created_at) - interval '1 day' from millrace.job_queues q);
begin
  insert into millrace.retention_marks (scope, ended, age_ms, queue_ids, through, slice_ms)
  values (of_scope, of_ended, of_age, of_queues, coalesce(first_at, millrace.now_at()), 3600000) on conflict do nothing;
  select * into mark from millrace.retention_marks m where m.scope = of_scope and m.ended = of_ended and m.age_ms = of_age for update skip locked;
  if not found then return null; end if;
  if mark.queue_ids <> of_queues then
    if exists (select 1 from millrace.job_queues q where q.id = any(of_queues) and q.id <> all(mark.queue_ids) and q.created_at < mark.through) then
      mark.through := first_at;
    end if;
    mark.queue_ids := of_queues;
    update millrace.retention_marks m set queue_ids = of_queues, through = mark.through where m.scope = of_scope and m.ended = of_ended and m.age_ms = of_age;
  end if;
  return mark;
end $$;

-- Locked rows of jobs that ended so, in that time. Those under a held rule only outside of the partitions that wait to
-- be retired.
create or replace function millrace.ended_between(is_held boolean, of_ended int, of_queues int[], from_at timestamptz, until_at timestamptz, most int)
returns uuid[] language plpgsql set enable_seqscan = off set jit = off as $$
declare
  ids uuid[] := '{}';
  own uuid[];
  leaf text;
begin
  if not is_held then
    return array(
      select a.job_id from millrace.job_attempts a
      where a.ended = of_ended and a.finished_at > from_at and a.finished_at <= until_at and a.queue_id = any(of_queues)
      limit most for update skip locked);
  end if;
  for leaf in
    select 'job_attempts_rest' union all
    select p.leaf from millrace.time_partitions('job_attempts') p
    where exists (select 1 from millrace.kept_partitions k where k.lower = p.lower)
      and not exists (select 1 from millrace.retirements r where r.lower <= p.lower and r.upper >= p.upper and not r.is_swapped)
  loop
    execute format('select array(select a.job_id from millrace.%I a where a.ended = $1 and a.finished_at > $2 and a.finished_at <= $3
                                   and a.queue_id = any($4) limit $5 for update skip locked)', leaf)
    into own using of_ended, from_at, until_at, of_queues, most - cardinality(ids);
    ids := ids || own;
    exit when cardinality(ids) >= most;
  end loop;
  return ids;
end $$;
