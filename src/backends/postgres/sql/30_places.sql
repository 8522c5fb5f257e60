-- Finding a job and taking it out of its place. Locks are taken in one order: batches, the gates of queues, rows of jobs,
-- keys (`lock_around` in 50_settle.sql). What cannot keep it ends as a deadlock that is broken and made again.

-- The job with its place locked; id null: there is none. A job that moves meanwhile is looked for again. Without its gates
-- only what hangs on the row itself may be changed.
create or replace function millrace.lock_job(of_job uuid, with_gates boolean default true) returns millrace.job_place language plpgsql as $$
declare
  job millrace.job_place;
  limited boolean;
begin
  select b.id, b.queue_id, b.priority, b.group_key, b.limit_key, b.unique_key, b.unique_mode, b.batch_id, q.is_limited
  into job.id, job.queue_id, job.priority, job.group_key, job.limit_key, job.unique_key, job.unique_mode, job.batch_id, limited
  from millrace.job_bodies b join millrace.job_queues q on q.id = b.queue_id where b.id = of_job;
  if not found then return null; end if;
  if with_gates and (limited or job.group_key is not null) then perform millrace.lock_gates(array[job.queue_id]); end if;

  for look in 1..100 loop
    select case r.worker_no when 0 then 'dispatched' else 'running' end, r.lease, nullif(r.worker_no, 0),
           case when r.worker_no <> 0 then r.started_at end, r.seq, r.run_at, r.ready_at, r.visible_until, r.priority, r.attempts, r.crashes, r.hooks
    into job.status, job.lease, job.worker_no, job.started_at, job.seq, job.run_at, job.ready_at, job.visible_until,
         job.priority, job.attempts, job.crashes, job.hooks
    from millrace.running r where r.id = of_job for update;
    if found then return job; end if;
    select 'queued', r.seq, r.run_at, r.ready_at, r.priority, r.attempts, r.crashes, r.hooks
    into job.status, job.seq, job.run_at, job.ready_at, job.priority, job.attempts, job.crashes, job.hooks
    from millrace.ready r where r.id = of_job for update;
    if found then return job; end if;
    select 'scheduled', s.run_at, s.waits_for, s.priority, s.attempts, s.crashes, s.hooks
    into job.status, job.run_at, job.waits_for, job.priority, job.attempts, job.crashes, job.hooks
    from millrace.scheduled s where s.id = of_job for update;
    if found then return job; end if;
    select 'blocked', b.seq, b.run_at, b.gate, b.pending_parents, b.orphan_of, b.orphan_status, b.orphan_policy, b.priority, b.attempts, b.crashes, b.hooks
    into job.status, job.seq, job.run_at, job.gate, job.pending_parents, job.orphan_of, job.orphan_status, job.orphan_policy,
         job.priority, job.attempts, job.crashes, job.hooks
    from millrace.blocked b where b.id = of_job for update;
    if found then return job; end if;
    select case a.ended when 1 then 'completed' when 2 then 'failed' else 'cancelled' end, a.no, a.attempt_count, a.crash_count,
           coalesce(a.run_at, b.first_run_at), b.priority,
           (case when b.batch_id is null then 0 else 16 end)
             + (case when b.group_key is null and b.limit_key is null then 0 else 512 end)
             + (case when exists (select 1 from millrace.job_parents p where p.child = of_job) then 1024 else 0 end),
           -- The lease of its last run, which need not be the row that ended it.
           case when a.worker_no is not null then a.no else (select s.lease from millrace.job_states s where s.id = of_job) end
    into job.status, job.seq, job.attempts, job.crashes, job.run_at, job.priority, job.hooks, job.lease
    from millrace.job_attempts a join millrace.job_bodies b on b.id = a.job_id
    where a.job_id = of_job and a.ended is not null for update of a;
    if found then return job; end if;
    perform 1 from millrace.job_bodies where id = of_job;
    if not found then return null; end if;
  end loop;
  raise exception 'job % is in no place', of_job using errcode = 'MR002', hint = 'run: millrace doctor';
end $$;

-- Takes the job out of the place that `lock_job` found it in.
create or replace function millrace.leave_place(job millrace.job_place) returns void language plpgsql as $$
begin
  case job.status
    when 'running', 'dispatched' then delete from millrace.running where id = job.id;
    when 'queued' then delete from millrace.ready where id = job.id;
    when 'scheduled' then delete from millrace.scheduled where id = job.id;
    when 'blocked' then delete from millrace.blocked where id = job.id;
    else
      update millrace.job_attempts set ended = null where job_id = job.id and no = job.seq;
      insert into millrace.final_counts (queue_id, ended, n)
      values (job.queue_id, case job.status when 'completed' then 1 when 'failed' then 2 else 3 end, -1);
  end case;
end $$;

-- Marks a job as one whose end others wait for.
create or replace function millrace.hook_place(job millrace.job_place, bits int) returns void language plpgsql as $$
begin
  case job.status
    when 'running', 'dispatched' then update millrace.running set hooks = hooks | bits where id = job.id and hooks & bits <> bits;
    when 'queued' then update millrace.ready set hooks = hooks | bits where id = job.id and hooks & bits <> bits;
    when 'scheduled' then update millrace.scheduled set hooks = hooks | bits where id = job.id and hooks & bits <> bits;
    when 'blocked' then update millrace.blocked set hooks = hooks | bits where id = job.id and hooks & bits <> bits;
    else null;
  end case;
end $$;

-- Gives the unique key back, if the job holds it.
create or replace function millrace.free_key(job millrace.job_place) returns void language plpgsql as $$
begin
  if job.unique_key is not null and job.unique_mode <> 3 then
    delete from millrace.unique_keys where queue_id = job.queue_id and key = job.unique_key and holder = job.id;
  end if;
end $$;
