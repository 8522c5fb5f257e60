-- What is left of jobs that are gone: the archive, logs that have had their time, daily sums. And deleting by hand.

-- One bounded step for logs: lines and attempts older than asked go, attempts into daily rows. The attempt that ended
-- a job stays as long as the job: it says how. True: there is more.
create or replace function millrace.expire_logs(logs_ms bigint, most int) returns boolean language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' set enable_seqscan = off set jit = off
as $$
declare
  now_at timestamptz := millrace.now_at();
  old_at timestamptz := millrace.after_ms(now_at, -logs_ms);
  mark millrace.retention_marks;
  until_at timestamptz;
  looked int;
  last_id uuid;
  gone int;
  more boolean := false;
begin
  -- Attempts, by time.
  mark := millrace.retention_mark('attempts', 0, logs_ms, '{}');
  if mark.scope is not null then
    until_at := least(old_at, millrace.after_ms(mark.through, mark.slice_ms));
    with picked as materialized (
      select a.job_id, a.no from millrace.job_attempts a
      where a.ended is null and a.finished_at > mark.through - interval '10 minutes' and a.finished_at <= until_at
      limit most for update skip locked
    ), old as (
      delete from millrace.job_attempts a using picked p where a.job_id = p.job_id and a.no = p.no
      returning a.job_id, a.queue_id, a.status, a.started_at, a.finished_at
    ), summed as (
      select (o.finished_at at time zone 'UTC')::date as day, q.name as queue_name, b.name, millrace.audit_word(o.status) as status, count(*) as n,
             sum(millrace.ran_ms(o.started_at, o.finished_at)) as total_ms, max(millrace.ran_ms(o.started_at, o.finished_at)) as max_ms
      from old o join millrace.job_queues q on q.id = o.queue_id
      cross join lateral (select j.name from millrace.job_bodies j where j.id = o.job_id offset 0) b
      group by 1, 2, 3, 4
    ), added as (
      insert into millrace.job_daily as d (day, queue_name, name, status, n, total_ms, max_ms)
      select s.day, s.queue_name, s.name, s.status, s.n, s.total_ms, s.max_ms from summed s order by 1, 2, 3, 4
      on conflict (day, queue_name, name, status)
      do update set n = d.n + excluded.n, total_ms = d.total_ms + excluded.total_ms, max_ms = greatest(d.max_ms, excluded.max_ms)
    )
    select count(*) into gone from old;
    more := gone >= most or until_at < old_at;
    update millrace.retention_marks m set
      through = case when gone >= most then mark.through else greatest(until_at, mark.through) end,
      slice_ms = case when gone >= most then greatest(1000, mark.slice_ms / 4) else least(86400000000, mark.slice_ms * 2) end
    where m.scope = 'attempts' and m.ended = 0 and m.age_ms = logs_ms;
  end if;

  -- Lines, by id, a round an hour; those of a job that a step did not see to the end are left to the next round.
  mark := millrace.retention_mark('lines', 0, 0, '{}');
  if mark.scope is not null and (mark.at_id is not null or mark.through <= now_at - interval '1 hour') then
    with seen as materialized (
      select l.job_id, l.lease, l.line_no, l.at from millrace.job_lines l
      where l.job_id > coalesce(mark.at_id, '00000000-0000-0000-0000-000000000000') and l.job_id < millrace.uuid_at(now_at - interval '1 hour')
      order by l.job_id limit most * 10
    ), dropped as (
      delete from millrace.job_lines l using seen s
      where l.job_id = s.job_id and l.lease = s.lease and l.line_no = s.line_no and (l.at <= old_at
        or not exists (select 1 from millrace.job_bodies b where b.id = l.job_id) and not exists (select 1 from millrace.job_archive b where b.id = l.job_id))
    )
    select count(*), max(s.job_id::text)::uuid into looked, last_id from seen s;
    update millrace.retention_marks m set at_id = case when looked >= most * 10 then last_id end,
      through = case when looked >= most * 10 then m.through else now_at end
    where m.scope = 'lines' and m.ended = 0 and m.age_ms = 0;
    more := more or looked >= most * 10;
  end if;

  delete from millrace.job_daily d where d.day < (now_at - interval '5 years')::date;
  return more;
end $$;

-- One bounded step for the archive: partitions whose time is over are dropped (the few jobs in them that ended much
-- later go to the rest), the rest is deleted from. 'none', 'busy' or 'expired': call again.
create or replace function millrace.expire_archive(archive_ms bigint, logs_ms bigint, most int) returns text language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '80ms' set enable_seqscan = off set jit = off
as $$
declare
  now_at timestamptz := millrace.now_at();
  old_at timestamptz := millrace.after_ms(now_at, -coalesce(archive_ms, 0));
  old_leaf text;
  young bigint;
  gone int;
  trails int;
begin
  if not pg_try_advisory_xact_lock(hashtextextended('millrace.partitions', 0)) then return 'busy'; end if;
  for old_leaf in
    select p.leaf from millrace.time_partitions('job_archive') p where p.upper <= millrace.uuid_at(old_at - interval '1 hour') order by p.lower
  loop
    execute format('select count(*) from (select 1 from millrace.%I a where a.finished_at > $1 limit 5001) y', old_leaf) into young using old_at;
    continue when young > 5000;
    if millrace.is_in_long_use(array['job_archive', 'job_archive_rest', old_leaf]) then return 'busy'; end if;
    execute format('alter table millrace.job_archive detach partition millrace.%I', old_leaf);
    execute format('insert into millrace.job_archive select * from millrace.%I a where a.finished_at > $1', old_leaf) using old_at;
    execute format('drop table millrace.%I', old_leaf);
    return 'expired';
  end loop;
  delete from millrace.job_archive_rest where id in (select r.id from millrace.job_archive_rest r where r.finished_at <= old_at limit most);
  get diagnostics gone = row_count;
  update millrace.job_archive set trail = null where id in (
    select a.id from millrace.job_archive a where a.trail is not null and a.finished_at <= millrace.after_ms(now_at, -logs_ms) limit most);
  get diagnostics trails = row_count;
  return case when gone >= most or trails >= most then 'expired' else 'none' end;
exception when lock_not_available or deadlock_detected then
  return 'busy';
end $$;

-- The columns of job_records, as far as they make sense, and the parents.
create or replace view millrace.archived_records as
select a.id, q.name as queue_name, a.queue_id, a.name,
       case a.ended when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end as status,
       a.priority::int as priority, a.payload, a.attempt_count, a.max_attempts, a.crash_count::int as crash_count, a.timeout_ms, a.run_at, a.enqueued_at,
       greatest(a.finished_at, a.replayed_at) as updated_at, a.started_at, a.finished_at, a.last_error, a.result, null::json as progress,
       a.worker_no, case when a.worker_no is null then 0 else a.no end as lease, a.batch_id, a.tags, a.meta, a.group_key, a.limit_key, a.unique_key,
       a.schedule_name, a.schedule_tick, a.replay_of, null::smallint as waits_for, null::smallint as gate, false as cancel_requested,
       a.replayed_at, a.replayed_by, a.replayed_into, null::uuid as orphan_of, null::smallint as orphan_status, null::smallint as orphan_policy,
       null::timestamptz as visible_until, null::timestamptz as ready_at, a.parents
from millrace.job_archive a join millrace.job_queues q on q.id = a.queue_id;

-- The columns of jobs.
create or replace view millrace.archived_jobs as
select j.id, j.queue_name, j.name, j.status, j.priority, j.payload, j.attempt_count, j.max_attempts, j.run_at, j.started_at,
       case when j.status = 'completed' then j.finished_at end as completed_at,
       case when j.status = 'failed' then j.finished_at end as failed_at,
       j.last_error->>'message' as last_error_message,
       w.id as worker_id, j.batch_id, j.result, j.enqueued_at as created_at, j.updated_at, j.tags, j.finished_at
from millrace.archived_records j left join millrace.workers w on w.no = j.worker_no;

-- The attempts of archived jobs: the trail while it is kept, then the one that ended the job.
create or replace view millrace.archived_attempts as
select a.id as job_id, a.queue_id, t.no, t.attempt, t.status, t.worker_no, t.started_at, t.finished_at, t.error, t.note
from millrace.job_archive a
cross join lateral (
  select * from json_to_recordset(a.trail) as t(no bigint, attempt int, status int, worker_no int, started_at timestamptz, finished_at timestamptz, error json, note text)
  union all
  select a.no, a.attempt_count, case a.ended when 1 then 1 when 2 then 3 else 4 end, a.worker_no, a.started_at, a.finished_at, null, null where a.trail is null
) t;

-- The columns of job_logs.
create or replace view millrace.archived_job_logs as
select a.no as id, a.job_id, millrace.audit_word(a.status) as status, coalesce(a.error->>'message', a.note) as log_message,
       a.attempt as attempt_number, w.id as worker_id, a.started_at, a.finished_at, a.finished_at - a.started_at as duration, a.finished_at as created_at
from millrace.archived_attempts a left join millrace.workers w on w.no = a.worker_no;

create or replace function millrace.archived_of(ids uuid[]) returns setof millrace.archived_records language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$ select r.* from millrace.archived_records r where r.id = any(ids) $$;

-- `delete from millrace.jobs where …` does what `remove` does (src/core/edges.ts), with all that hangs on it.
create or replace function millrace.delete_job() returns trigger language plpgsql as $$
declare
  job millrace.job_place := millrace.lock_job(old.id);
begin
  if job.id is null then return null; end if;
  if job.status in ('running', 'dispatched') then
    raise exception 'job % (%) is running and cannot be deleted', old.id, old.name using errcode = 'object_in_use',
      hint = 'cancel it first and delete it when it has ended, or let Millrace do both: mill.jobs.remove(id)';
  end if;
  perform millrace.leave_place(job);
  perform millrace.erase_job(job, millrace.now_at());
  return old;
end $$;

create or replace trigger delete_job instead of delete on millrace.jobs for each row execute function millrace.delete_job();
