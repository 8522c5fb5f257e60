-- Gates: a job on its way to ready, and what it gives back when it leaves. Refines src/core/gate.ts and
-- src/core/rate.ts; the order of the gates is that of `admit` there. Everything that a gate counts is changed under
-- the lock of its queue (`lock_gates`), which is always taken before the rows of its jobs.

create or replace function millrace.lock_gates(queue_ids int[]) returns void language plpgsql as $$
begin
  perform 1 from millrace.job_queues where id = any(queue_ids) order by id for no key update;
end $$;

-- src/core/rate.ts placeInLine: reserves a place in the line of one bucket; the wait in milliseconds.
create or replace function millrace.reserve_start(for_queue int, for_key text, interval_ms float8, burst int, now_ms float8)
returns float8 language plpgsql as $$
declare
  line millrace.rate_lines;
  tolerance_ms float8 := (ceil(burst / 2.0) - 1) * interval_ms;
  token_ms float8;
  line_ms float8;
begin
  select * into line from millrace.rate_lines where queue_id = for_queue and key = for_key;
  line.start_tat_ms := coalesce(line.start_tat_ms, now_ms);
  line.admit_tat_ms := coalesce(line.admit_tat_ms, now_ms);
  token_ms := line.start_tat_ms - (burst - 1) * interval_ms;
  line_ms := greatest(now_ms, line.admit_tat_ms - tolerance_ms);
  line.admit_tat_ms := interval_ms +
    case when token_ms > line_ms then token_ms + tolerance_ms else greatest(now_ms, line.admit_tat_ms) end;
  insert into millrace.rate_lines (queue_id, key, start_tat_ms, admit_tat_ms)
  values (for_queue, for_key, line.start_tat_ms, line.admit_tat_ms)
  on conflict (queue_id, key) do update set admit_tat_ms = excluded.admit_tat_ms;
  return ceil(greatest(line_ms, token_ms) - now_ms);
end $$;

-- src/core/rate.ts takeStart: null when a token is there, else the wait; `spend_start` takes it.
create or replace function millrace.take_start(for_queue int, for_key text, interval_ms float8, burst int, now_ms float8)
returns float8 language plpgsql as $$
declare
  start_ms float8;
  short_ms float8;
begin
  select start_tat_ms into start_ms from millrace.rate_lines where queue_id = for_queue and key = for_key;
  short_ms := coalesce(start_ms, now_ms) - (burst - 1) * interval_ms - now_ms;
  if short_ms <= 0 then return null; end if;
  if short_ms <= interval_ms / 4 then return ceil(short_ms); end if;
  return millrace.reserve_start(for_queue, for_key, interval_ms, burst, now_ms);
end $$;

create or replace function millrace.spend_start(for_queue int, for_key text, interval_ms float8, now_ms float8)
returns void language plpgsql as $$
begin
  insert into millrace.rate_lines as line (queue_id, key, start_tat_ms, admit_tat_ms)
  values (for_queue, for_key, now_ms + interval_ms, now_ms)
  on conflict (queue_id, key) do update set start_tat_ms = greatest(now_ms, line.start_tat_ms) + interval_ms;
end $$;

create or replace function millrace.use_slot(for_queue int, for_key text, change int) returns void language plpgsql as $$
begin
  insert into millrace.slot_counts as slot (queue_id, key, used) values (for_queue, for_key, change)
  on conflict (queue_id, key) do update set used = slot.used + change;
end $$;

create or replace function millrace.slots_free(for_queue int, for_key text, slots int) returns int language sql stable as $$
  select slots - coalesce((select used from millrace.slot_counts where queue_id = for_queue and key = for_key), 0)
$$;

create or replace function millrace.enter_ready(job millrace.job_place, now_at timestamptz) returns void language plpgsql as $$
begin
  insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
  values (nextval('millrace.entry_seq'), job.run_at, now_at, job.id, job.queue_id, job.priority, job.attempts, job.crashes, job.hooks);
  perform millrace.ring('ready:' || name) from millrace.job_queues where id = job.queue_id;
end $$;

create or replace function millrace.enter_scheduled(job millrace.job_place) returns void language plpgsql as $$
begin
  insert into millrace.scheduled (run_at, id, queue_id, waits_for, priority, attempts, crashes, hooks)
  values (job.run_at, job.id, job.queue_id, job.waits_for, job.priority, job.attempts, job.crashes, job.hooks);
  perform millrace.ring('scheduled');
end $$;

create or replace function millrace.enter_blocked(job millrace.job_place, at_gate int, at_line text) returns void language plpgsql as $$
begin
  insert into millrace.blocked (seq, run_at, id, queue_id, pending_parents, gate, priority, attempts, crashes, hooks,
                                orphan_status, orphan_policy, orphan_of, line)
  values (nextval('millrace.entry_seq'), job.run_at, job.id, job.queue_id, coalesce(job.pending_parents, 0), at_gate,
          job.priority, job.attempts, job.crashes, job.hooks, job.orphan_status, job.orphan_policy, job.orphan_of, at_line);
end $$;

-- Puts a job that is in no place into the place its gates allow. The caller holds the lock of the queue if the
-- queue is limited or the job has a group or a limit key.
create or replace function millrace.admit(job millrace.job_place, now_at timestamptz) returns void language plpgsql as $$
declare
  queue millrace.job_queues;
  now_ms float8;
  wait_ms float8 := 0;
begin
  if job.pending_parents > 0 then
    perform millrace.enter_blocked(job, 1, '');
    return;
  end if;
  if job.run_at > now_at then
    job.waits_for := coalesce(job.waits_for, 1);
    perform millrace.enter_scheduled(job);
    return;
  end if;
  select * into queue from millrace.job_queues where id = job.queue_id;
  if not queue.is_limited and job.group_key is null then
    perform millrace.enter_ready(job, now_at);
    return;
  end if;

  -- The rate line: a place is reserved once per job, and only when nothing but the rate could hold it.
  if job.hooks & 8 = 0 and (queue.rate is not null or (queue.per_key_rate is not null and job.limit_key is not null)) then
    now_ms := millrace.ms_of(now_at);
    if queue.rate is not null then
      wait_ms := millrace.reserve_start(queue.id, '', queue.rate_interval_ms, (queue.rate->>'burst')::int, now_ms);
    end if;
    if queue.per_key_rate is not null and job.limit_key is not null then
      wait_ms := greatest(wait_ms, millrace.reserve_start(queue.id, job.limit_key, queue.per_key_rate_interval_ms,
                                                          (queue.per_key_rate->>'burst')::int, now_ms));
    end if;
    job.hooks := job.hooks | 8;
    if wait_ms > 0 then
      job.run_at := millrace.after_ms(now_at, wait_ms::bigint);
      job.waits_for := 2;
      perform millrace.enter_scheduled(job);
      return;
    end if;
  end if;

  if job.group_key is not null and job.hooks & 1 = 0 then
    insert into millrace.group_holders (queue_id, key, holder) values (queue.id, job.group_key, job.id) on conflict do nothing;
    if not found then
      perform millrace.enter_blocked(job, 2, job.group_key);
      return;
    end if;
    job.hooks := job.hooks | 1;
  end if;

  if queue.per_key_concurrency is not null and job.limit_key is not null and job.hooks & 2 = 0 then
    if millrace.slots_free(queue.id, job.limit_key, queue.per_key_concurrency) <= 0 then
      perform millrace.enter_blocked(job, 3, job.limit_key);
      return;
    end if;
    perform millrace.use_slot(queue.id, job.limit_key, 1);
    job.hooks := job.hooks | 2;
  end if;

  if queue.concurrency is not null and job.hooks & 4 = 0 then
    if millrace.slots_free(queue.id, '', queue.concurrency) <= 0 then
      perform millrace.enter_blocked(job, 4, '');
      return;
    end if;
    perform millrace.use_slot(queue.id, '', 1);
    job.hooks := job.hooks | 4;
  end if;
  perform millrace.enter_ready(job, now_at);
end $$;

-- A blocked row as a job on its way.
create or replace function millrace.unblocked(row_of millrace.blocked) returns millrace.job_place language plpgsql as $$
declare
  job millrace.job_place;
begin
  job.id := row_of.id;
  job.queue_id := row_of.queue_id;
  job.priority := row_of.priority;
  job.attempts := row_of.attempts;
  job.crashes := row_of.crashes;
  job.hooks := row_of.hooks;
  job.run_at := row_of.run_at;
  job.pending_parents := row_of.pending_parents;
  select group_key, limit_key into job.group_key, job.limit_key from millrace.job_bodies where id = row_of.id;
  return job;
end $$;

-- Lets waiters of a slot gate go on while it has room, at most `most` of them; how many did. Slots null: no limit.
create or replace function millrace.admit_waiting(for_queue int, at_gate int, at_line text, slots int, most int, now_at timestamptz)
returns int language plpgsql as $$
declare
  waiter millrace.blocked;
  admitted int := 0;
begin
  while admitted < most loop
    if slots is not null and millrace.slots_free(for_queue, at_line, slots) <= 0 then exit; end if;
    delete from millrace.blocked where id = (
      select id from millrace.blocked
      where queue_id = for_queue and gate = at_gate and gate in (3, 4) and line = at_line order by priority, seq limit 1 for update
    ) returning * into waiter;
    if not found then exit; end if;
    perform millrace.admit(millrace.unblocked(waiter), now_at);
    admitted := admitted + 1;
  end loop;
  if admitted >= most then
    update millrace.job_queues set relimit_until = millrace.after_ms(now_at, 60000) where id = for_queue;
  end if;
  return admitted;
end $$;

-- Gives back the slots; those who wait for them go on.
create or replace function millrace.release_slots(inout job millrace.job_place, now_at timestamptz) language plpgsql as $$
declare
  queue millrace.job_queues;
begin
  if job.hooks & 6 = 0 then return; end if;
  select * into queue from millrace.job_queues where id = job.queue_id;
  if job.hooks & 2 <> 0 then
    job.hooks := job.hooks - 2;
    perform millrace.use_slot(queue.id, job.limit_key, -1);
    perform millrace.admit_waiting(queue.id, 3, job.limit_key, queue.per_key_concurrency, 1000, now_at);
    delete from millrace.slot_counts where queue_id = queue.id and key = job.limit_key and used <= 0;
  end if;
  if job.hooks & 4 <> 0 then
    job.hooks := job.hooks - 4;
    perform millrace.use_slot(queue.id, '', -1);
    perform millrace.admit_waiting(queue.id, 4, '', queue.concurrency, 1000, now_at);
  end if;
end $$;

-- Gives the group to the next in line.
create or replace function millrace.release_group(inout job millrace.job_place, now_at timestamptz) language plpgsql as $$
declare
  waiter millrace.blocked;
  next_job millrace.job_place;
begin
  if job.hooks & 1 = 0 then return; end if;
  job.hooks := job.hooks - 1;
  delete from millrace.blocked where id = (
    select id from millrace.blocked where queue_id = job.queue_id and gate = 2 and line = job.group_key order by seq limit 1 for update
  ) returning * into waiter;
  if not found then
    delete from millrace.group_holders where queue_id = job.queue_id and key = job.group_key and holder = job.id;
    return;
  end if;
  update millrace.group_holders set holder = waiter.id where queue_id = job.queue_id and key = job.group_key;
  next_job := millrace.unblocked(waiter);
  next_job.hooks := next_job.hooks | 1;
  perform millrace.admit(next_job, now_at);
end $$;
