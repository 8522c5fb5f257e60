-- What plain SQL sees. `job_records` is everything a job is, `jobs` and `job_logs` are the reporting views.

create or replace view millrace.job_records as
select b.id, q.name as queue_name, b.queue_id, b.name,
       case when r.id is not null then case r.worker_no when 0 then 'dispatched' else 'running' end when w.id is not null then 'queued' when s.id is not null then 'scheduled'
            when k.id is not null then 'blocked'
            else case f.ended when 1 then 'completed' when 2 then 'failed' when 3 then 'cancelled' end end as status,
       coalesce(r.priority, w.priority, s.priority, k.priority, b.priority)::int as priority,
       b.payload,
       coalesce(r.attempts, w.attempts, s.attempts, k.attempts, f.attempt_count)::int as attempt_count,
       b.max_attempts,
       coalesce(r.crashes, w.crashes, s.crashes, k.crashes, f.crash_count)::int as crash_count,
       b.timeout_ms,
       coalesce(r.run_at, w.run_at, s.run_at, k.run_at, f.run_at, b.first_run_at) as run_at,
       b.enqueued_at,
       greatest(b.enqueued_at, r.started_at, f.finished_at, x.updated_at) as updated_at,
       coalesce(case when r.worker_no <> 0 then r.started_at end, f.started_at, x.started_at) as started_at,
       f.finished_at,
       x.last_error,
       f.result,
       case when x.lease = coalesce(r.lease, case when f.worker_no is not null then f.no end, x.lease) then x.progress end as progress,
       coalesce(nullif(r.worker_no, 0), f.worker_no, x.worker_no) as worker_no,
       coalesce(r.lease, case when f.worker_no is not null then f.no end, x.lease, 0) as lease,
       b.batch_id, b.tags, b.meta, b.group_key, b.limit_key, b.unique_key, b.schedule_name, b.schedule_tick, b.replay_of,
       case when s.id is not null then s.waits_for end as waits_for,
       k.gate,
       coalesce(r.hooks & 128 <> 0, false) as cancel_requested,
       x.replayed_at, x.replayed_by, x.replayed_into,
       k.orphan_of, k.orphan_status, k.orphan_policy, r.visible_until, w.ready_at
from millrace.job_bodies b
join millrace.job_queues q on q.id = b.queue_id
left join millrace.running r on r.id = b.id
left join millrace.ready w on w.id = b.id
left join millrace.scheduled s on s.id = b.id
left join millrace.blocked k on k.id = b.id
left join millrace.job_attempts f on f.job_id = b.id and f.ended is not null
left join millrace.job_states x on x.id = b.id;

create or replace view millrace.jobs as
select j.id, j.queue_name, j.name, j.status, j.priority, j.payload, j.attempt_count, j.max_attempts, j.run_at, j.started_at,
       case when j.status = 'completed' then j.finished_at end as completed_at,
       case when j.status = 'failed' then j.finished_at end as failed_at,
       j.last_error->>'message' as last_error_message,
       w.id as worker_id, j.batch_id, j.result, j.enqueued_at as created_at, j.updated_at, j.tags, j.finished_at
from millrace.job_records j left join millrace.workers w on w.no = j.worker_no;

create or replace view millrace.job_logs as
select a.no as id, a.job_id,
       case a.status when 1 then 'success' when 2 then 'retry' when 3 then 'failed' when 4 then 'cancelled' when 5 then 'expired'
                     when 6 then 'released' when 7 then 'replayed' end as status,
       coalesce(a.error->>'message', a.note) as log_message, a.attempt as attempt_number, w.id as worker_id,
       a.started_at, a.finished_at, a.finished_at - a.started_at as duration, a.finished_at as created_at
from millrace.job_attempts a left join millrace.workers w on w.no = a.worker_no
union all
select r.lease, r.id, 'attempting', null, r.attempts + 1, w.id, r.started_at, null, null, r.started_at
from millrace.running r left join millrace.workers w on w.no = r.worker_no where r.worker_no <> 0;

-- Reading by id never scans a table, however wrong its statistics are. The plan is made once per session: making it takes
-- longer than reading a job.
create or replace function millrace.records_of(ids uuid[]) returns setof millrace.job_records language plpgsql stable
security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan
as $$
begin
  return query select r.* from millrace.job_records r where r.id = any(ids);
end $$;

-- The field at this path equals this JSON text. A payload that SQL cannot take apart (\u0000 in a string) has no fields.
create or replace function millrace.payload_has(payload json, path json, equals text) returns boolean language plpgsql stable as $$
begin
  return (payload::jsonb #> array(select json_array_elements_text(path))) = equals::jsonb;
exception when untranslatable_character or invalid_text_representation then
  return false;
end $$;
