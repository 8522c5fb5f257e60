-- What happens by itself: time comes, limits change, jobs grow old. Bounded passes; any number of callers.

-- Brings the jobs of queues whose limits were changed in line with them (docs/backend-contract.md §6). How many moved.
-- Refines src/backends/memory/limit-change.ts. A queue is looked at for a minute: an insert that did not know of the
-- new limits may commit a little later than they do.
create or replace function millrace.apply_limits(most int, now_at timestamptz) returns int language plpgsql as $$
declare
  queue millrace.job_queues;
  slotless record;
  job millrace.job_place;
  line_of record;
  needs int;
  room boolean;
  moved int := 0;
begin
  for queue in select * from millrace.job_queues where relimit_until is not null order by id for no key update skip locked loop
    exit when moved >= most;
    -- Running jobs count at once.
    for slotless in
      select r.id, b.limit_key, r.hooks from millrace.running r join millrace.job_bodies b on b.id = r.id
      where r.queue_id = queue.id and ((queue.concurrency is not null and r.hooks & 4 = 0)
        or (queue.per_key_concurrency is not null and b.limit_key is not null and r.hooks & 2 = 0))
      for update of r skip locked
    loop
      needs := 0;
      if queue.per_key_concurrency is not null and slotless.limit_key is not null and slotless.hooks & 2 = 0 then
        needs := needs | 2;
        perform millrace.use_slot(queue.id, slotless.limit_key, 1);
      end if;
      if queue.concurrency is not null and slotless.hooks & 4 = 0 then
        needs := needs | 4;
        perform millrace.use_slot(queue.id, '', 1);
      end if;
      update millrace.running set hooks = hooks | needs where id = slotless.id;
    end loop;
    -- Ready jobs, in their order, get a slot where they stand or go back behind the gate.
    if queue.concurrency is not null or queue.per_key_concurrency is not null then
      for slotless in
        select r.*, b.limit_key, b.group_key from millrace.ready r join millrace.job_bodies b on b.id = r.id
        where r.queue_id = queue.id and ((queue.concurrency is not null and r.hooks & 4 = 0)
          or (queue.per_key_concurrency is not null and r.hooks & 512 <> 0 and b.limit_key is not null and r.hooks & 2 = 0))
        order by r.priority, r.seq limit most - moved for update of r skip locked
      loop
        moved := moved + 1;
        needs := 0;
        room := true;
        if queue.per_key_concurrency is not null and slotless.limit_key is not null and slotless.hooks & 2 = 0 then
          needs := needs | 2;
          room := millrace.slots_free(queue.id, slotless.limit_key, queue.per_key_concurrency) > 0;
        end if;
        if room and queue.concurrency is not null and slotless.hooks & 4 = 0 then
          needs := needs | 4;
          room := millrace.slots_free(queue.id, '', queue.concurrency) > 0;
        end if;
        if room then
          if needs & 2 <> 0 then perform millrace.use_slot(queue.id, slotless.limit_key, 1); end if;
          if needs & 4 <> 0 then perform millrace.use_slot(queue.id, '', 1); end if;
          update millrace.ready set hooks = hooks | needs where id = slotless.id;
        else
          delete from millrace.ready where id = slotless.id;
          job := null;
          job.id := slotless.id;
          job.queue_id := queue.id;
          job.priority := slotless.priority;
          job.attempts := slotless.attempts;
          job.crashes := slotless.crashes;
          -- It was ready, so its rate line is behind it: only the slots may hold it now.
          job.hooks := slotless.hooks | 8;
          job.run_at := slotless.run_at;
          job.pending_parents := 0;
          job.limit_key := slotless.limit_key;
          job.group_key := slotless.group_key;
          -- Behind a gate it holds no slot of those behind it.
          job := millrace.release_slots(job, now_at);
          perform millrace.admit(job, now_at);
        end if;
      end loop;
    end if;
    -- Waiters of a wider limit go on.
    for line_of in
      select distinct b.line from millrace.blocked b where b.queue_id = queue.id and b.gate = 3 limit 1000
    loop
      exit when moved >= most;
      moved := moved + millrace.admit_waiting(queue.id, 3, line_of.line, queue.per_key_concurrency, most - moved, now_at);
    end loop;
    if moved < most then
      moved := moved + millrace.admit_waiting(queue.id, 4, '', queue.concurrency, most - moved, now_at);
    end if;
    if moved < most and queue.relimit_until <= now_at then
      update millrace.job_queues set relimit_until = null where id = queue.id;
    end if;
  end loop;
  return moved;
end $$;

create or replace function millrace.promote_jobs(most int, out promoted int, out next_due_ms bigint, out rings text) language plpgsql
set enable_seqscan = off set jit = off
as $$
declare
  now_at timestamptz := millrace.now_at();
  asked int[];
  gated int[];
  busy int[];
  due record;
  job millrace.job_place;
  entry bigint;
  ready_queues int[];
begin
  -- Gates before rows: the queues of due jobs that have any.
  asked := array(
    select distinct s.queue_id from (select x.queue_id, x.hooks from millrace.scheduled x where x.run_at <= now_at order by x.run_at limit most) s
    join millrace.job_queues q on q.id = s.queue_id where q.is_limited or s.hooks & 512 <> 0);
  -- A gate that somebody's transaction holds keeps its own queue waiting, not all others.
  gated := array(select q.id from millrace.job_queues q where q.id = any(asked) order by q.id for no key update skip locked);
  busy := array(select a.id from unnest(asked) as a(id) where a.id <> all(gated));

  entry := nextval('millrace.entry_seq');
  with due as (
    select x.ctid as place, x.queue_id, x.hooks from millrace.scheduled x
    where x.run_at <= now_at and x.queue_id <> all(busy) order by x.run_at limit most for update skip locked
  ), moved as (
    delete from millrace.scheduled s where s.ctid = any(array(
      select d.place from due d join millrace.job_queues q on q.id = d.queue_id
      where not q.is_limited and d.hooks & 512 = 0 and d.queue_id <> all(gated)))
    returning s.id, s.run_at, s.queue_id, s.priority, s.attempts, s.crashes, s.hooks
  ), entered as (
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
    select entry + row_number() over (order by m.run_at, m.id) - 1, m.run_at, now_at, m.id, m.queue_id, m.priority, m.attempts, m.crashes, m.hooks
    from moved m
  )
  select count(*)::int, array_agg(distinct m.queue_id) into promoted, ready_queues from moved m;
  if promoted > 0 then
    perform millrace.ring('ready:' || q.name) from millrace.job_queues q where q.id = any(ready_queues);
  end if;

  if cardinality(gated) > 0 then
    for due in
      select s.*, b.group_key, b.limit_key from millrace.scheduled s join millrace.job_bodies b on b.id = s.id
      where s.run_at <= now_at and s.queue_id = any(gated) order by s.run_at limit most - promoted for update of s skip locked
    loop
      delete from millrace.scheduled where id = due.id;
      job := null;
      job.id := due.id;
      job.queue_id := due.queue_id;
      job.priority := due.priority;
      job.attempts := due.attempts;
      job.crashes := due.crashes;
      job.hooks := due.hooks;
      job.run_at := due.run_at;
      job.pending_parents := 0;
      job.group_key := due.group_key;
      job.limit_key := due.limit_key;
      perform millrace.admit(job, now_at);
      promoted := promoted + 1;
    end loop;
  end if;
  if promoted < most and exists (select 1 from millrace.job_queues where relimit_until is not null) then
    promoted := promoted + millrace.apply_limits(most - promoted, now_at);
  end if;
  perform millrace.fold_counts();
  select case when min(s.run_at) is not null then greatest(millrace.ms_of(min(s.run_at)) - millrace.ms_of(now_at), 0) end into next_due_ms
  from millrace.scheduled s;
  rings := millrace.rung();
end $$;

-- Live jobs of cancelled batches, but for running ones that have been told. Batch by batch and job by job: without the
-- fences the planner reads all bodies although no batch is cancelled.
create or replace function millrace.jobs_of_cancelled(most int) returns setof uuid language sql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off
as $$
  select b.id from (select t.id from millrace.batches t where t.is_cancelled and t.finished_at is null offset 0) t
  cross join lateral (
    select o.id from millrace.job_bodies o where o.batch_id = t.id
      and not exists (select 1 from millrace.job_attempts a where a.job_id = o.id and a.ended is not null)
      and not exists (select 1 from millrace.running r where r.id = o.id and r.hooks & 128 <> 0)
    offset 0) b
  limit most
$$;

-- Sums the differences up when there are many of them.
create or replace function millrace.fold_counts() returns void language plpgsql as $$
begin
  -- Every queue keeps a row for each end.
  if (select count(*) from (select 1 from millrace.final_counts limit 100000) c) < 200 + 3 * (select count(*) from millrace.job_queues) then return; end if;
  with old as (
    delete from millrace.final_counts where ctid in (select ctid from millrace.final_counts limit 5000 for update skip locked)
    returning queue_id, ended, n
  )
  insert into millrace.final_counts (queue_id, ended, n) select queue_id, ended, sum(n) from old group by queue_id, ended;
end $$;

-- One tick of a schedule: compare-and-set, and its jobs in the same atom.
create or replace function millrace.fire_schedule(of_name text, expected timestamptz, next_at timestamptz, jobs json, unless_live boolean, ran_at timestamptz)
returns text language plpgsql as $$
declare
  found_one millrace.schedules;
begin
  select * into found_one from millrace.schedules where name = of_name for update;
  if not found or not found_one.is_enabled or found_one.next_run_at is distinct from expected then return 'stale'; end if;
  if json_array_length(jobs) = 0 or (unless_live and found_one.last_job_id is not null
       and exists (select 1 from millrace.job_bodies where id = found_one.last_job_id)
       and not exists (select 1 from millrace.job_attempts where job_id = found_one.last_job_id and ended is not null)) then
    update millrace.schedules set next_run_at = next_at, version = version + 1 where name = of_name;
    return 'skipped';
  end if;
  perform millrace.insert_inside(jobs);
  update millrace.schedules set next_run_at = next_at, last_run_at = ran_at, version = version + 1,
    last_job_id = (jobs->(json_array_length(jobs) - 1)->>'id')::uuid
  where name = of_name;
  return 'fired';
end $$;
