-- What scalers outside ask for, as rows: refines src/core/scale-signal.ts. Cheap with a million ready jobs: counting ends at
-- 100 000 (LIMITS.scaleReadyMax), and the oldest is looked for at the head of each priority, never in the whole table.

-- Of one queue. Statistics of `ready` are always old, so the planner is not asked. With the rights of the owner: whoever may
-- read the view has none on the table.
create or replace function millrace.ready_of(of_queue int, out ready bigint, out oldest timestamptz) language plpgsql stable
security definer set search_path = pg_catalog, pg_temp set enable_seqscan = off set enable_bitmapscan = off set jit = off
as $$
declare
  -- Jobs that waited for a place come in with an older number than they have been ready for: so more than the first is looked at.
  looked_at constant int := 20;
  priorities_max constant int := 64;
  at_priority int := -1;
  first timestamptz;
begin
  select count(*) into ready from (select 1 from millrace.ready r where r.queue_id = of_queue limit 100000) c;
  for step in 1 .. priorities_max loop
    select r.priority into at_priority from millrace.ready r
    where r.queue_id = of_queue and r.priority > at_priority order by r.queue_id, r.priority, r.seq limit 1;
    exit when not found;
    select min(f.ready_at) into first from (
      select r.ready_at from millrace.ready r where r.queue_id = of_queue and r.priority = at_priority
      order by r.queue_id, r.priority, r.seq limit looked_at) f;
    oldest := least(oldest, first);
  end loop;
end $$;

create or replace view millrace.scale_hint as
select q.name as queue, not q.is_active as paused, n.ready, n.running,
       greatest(0, floor(extract(epoch from millrace.now_at() - n.oldest)))::bigint as oldest_ready_seconds,
       coalesce(s.workers, 0) as workers, coalesce(s.slots, 0) as slots,
       n.value,
       -- Consumers by hand are workers without slots.
       ceil(n.value * coalesce(s.workers::numeric / nullif(s.slots, 0), 0.1))::bigint as wanted_workers
from millrace.job_queues q
cross join lateral millrace.ready_of(q.id) w
left join (
  select r.queue_id, count(*) filter (where r.worker_no = 0) as dispatched, count(*) filter (where r.worker_no <> 0) as running,
         min(r.ready_at) filter (where r.worker_no = 0) as oldest
  from millrace.running r group by 1
) r on r.queue_id = q.id
left join (
  -- Those that live, as src/core/liveness.ts sees it.
  select u.queue, count(*) as workers, sum(a.concurrency) as slots
  from millrace.workers a cross join lateral unnest(a.queues) as u(queue)
  where a.is_alive and a.last_beat_at >= millrace.now_at() - interval '15 seconds' group by 1
) s on s.queue = q.name
cross join lateral (
  select least(w.ready + coalesce(r.dispatched, 0), 100000) as ready, coalesce(r.running, 0) as running, least(w.oldest, r.oldest) as oldest,
         case when q.is_active then least(w.ready + coalesce(r.dispatched, 0), 100000) else 0 end + coalesce(r.running, 0) as value
) n;
comment on view millrace.scale_hint is 'one row per queue for outside scalers: value is how many jobs want a slot now';
