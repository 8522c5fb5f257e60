-- Apply: one guarded transition with all its consequences, in the order of docs/backend-contract.md §8. Refines
-- src/core/apply.ts (judge, patch, auditRow) and src/backends/memory/settle.ts. What a transition means was decided
-- before; here a guard is compared and rows move.

create or replace function millrace.settle_one(change millrace.job_change, now_at timestamptz) returns text language plpgsql as $$
declare
  job millrace.job_place;
begin
  if change.edge = 'report' then return millrace.report_one(change, now_at); end if;
  job := millrace.lock_job(change.job_id);
  if job.id is null then return 'missing'; end if;
  if change.edge = 'markReplayed' and change.into_id is not null
     and exists (select 1 from millrace.job_states s where s.id = job.id and s.replayed_into = change.into_id) then
    return 'already';
  end if;
  if job.status = 'dispatched' then
    if change.guard_lease = job.lease or change.edge = 'requestCancel' then
      -- Who knows its lease has it, though nobody said so here; a cancellation that is asked for reaches whoever does.
      job.status := 'running';
      job.worker_no := (select w.no from millrace.workers w where w.id = change.worker);
      job.started_at := now_at;
    elsif change.guard_lease is null and 'dispatched' = any(change.guard_from) then
      -- Its token may be taken at any moment: only who has revoked that may change it (settle_revoked).
      return concat_ws(' ', 'dispatched', job.lease, (select q.name from millrace.job_queues q where q.id = job.queue_id));
    end if;
  end if;
  if not (job.status = any(change.guard_from))
     or (change.guard_lease is not null and change.guard_lease is distinct from job.lease)
     or (change.guard_orphan_of is not null and change.guard_orphan_of is distinct from job.orphan_of) then
    return case when millrace.was_applied(change) then 'already' else 'stale' end;
  end if;
  return millrace.change_job(job, change, now_at);
end $$;

-- The guard holds and the job is locked.
create or replace function millrace.change_job(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns text language plpgsql as $$
declare
  verdict text := 'applied';
begin
  if job.hooks & 128 <> 0 and change.if_cancel is not null then
    change := json_populate_record(null::millrace.job_change, change.if_cancel);
    verdict := 'alternative';
  end if;
  if change.edge = 'replay' and not millrace.hold_again(job, now_at) then return 'conflict'; end if;
  case change.edge
    when 'requestCancel' then perform millrace.request_cancel(job, change, now_at);
    when 'markReplayed' then
      perform millrace.note_change(job, change, now_at);
      perform millrace.append_audit(job, change, now_at);
    when 'remove' then
      perform millrace.leave_place(job);
      perform millrace.erase_job(job, now_at);
    else perform millrace.move_job(job, change, now_at);
  end case;
  return verdict;
end $$;

-- src/core/apply.ts wasApplied: this very change was made before.
create or replace function millrace.was_applied(change millrace.job_change) returns boolean language plpgsql as $$
declare
  alternative millrace.job_change := json_populate_record(null::millrace.job_change, change.if_cancel);
  edge_then text;
begin
  select s.last_edge into edge_then from millrace.job_states s
  where s.id = change.job_id and s.last_edge_lease = coalesce(change.guard_lease, 0) and s.last_edge <> '';
  if found then return coalesce(edge_then in (change.edge, alternative.edge), false); end if;
  -- A completion of the quick way left its audit row only.
  return change.edge = 'complete' and exists (
    select 1 from millrace.job_attempts a where a.job_id = change.job_id and a.no = change.guard_lease and a.status = change.audit);
end $$;

-- A report needs nothing but the row of its run, and need not wait for that: the worker that sends it has other jobs.
create or replace function millrace.report_one(change millrace.job_change, now_at timestamptz) returns text language plpgsql as $$
declare
  run millrace.running;
  owner int;
begin
  if change.if_free then
    select * into run from millrace.running r where r.id = change.job_id and r.lease = change.guard_lease for update skip locked;
  else
    select * into run from millrace.running r where r.id = change.job_id and r.lease = change.guard_lease for update;
  end if;
  if found then
    if run.worker_no = 0 then
      -- Whoever reports runs it: the row says so from now on, as after a mark.
      owner := millrace.keep_alive(change.worker);
      if owner is not null then
        update millrace.running r set worker_no = owner, started_at = now_at where r.id = run.id and r.lease = run.lease;
        run.started_at := now_at;
      end if;
      run.worker_no := coalesce(owner, (select w.no from millrace.workers w where w.id = change.worker));
    end if;
    perform millrace.report_run(run, change, now_at);
    return 'applied';
  end if;
  return case
    when exists (select 1 from millrace.running r where r.id = change.job_id and r.lease = change.guard_lease) then 'busy'
    when exists (select 1 from millrace.job_bodies b where b.id = change.job_id) then 'stale'
    else 'missing' end;
end $$;

create or replace function millrace.report_run(job millrace.running, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
declare
  known int;
begin
  insert into millrace.job_states as s (id, updated_at, last_edge, lease, worker_no, started_at, progress)
  values (job.id, now_at, '', job.lease, job.worker_no, job.started_at, change.progress::json)
  on conflict (id) do update set updated_at = now_at, lease = job.lease,
    progress = case when s.lease = job.lease then coalesce(excluded.progress, s.progress) else excluded.progress end;
  if change.log_lines is null then return; end if;
  select case when log_lease = job.lease then log_count else 0 end into known from millrace.job_states where id = job.id;
  insert into millrace.job_lines (job_id, lease, line_no, attempt, at, level, message)
  select job.id, job.lease, l.position - 1 + coalesce(change.log_from, 0), (l.line->>'attempt')::int,
         millrace.at_ms((l.line->>'atMs')::float8), l.line->>'level', l.line->>'message'
  from json_array_elements(change.log_lines) with ordinality as l(line, position)
  where l.position - 1 + coalesce(change.log_from, 0) >= known and l.position - 1 + coalesce(change.log_from, 0) < 1000
  on conflict do nothing;
  update millrace.job_states set log_lease = job.lease,
    log_count = greatest(known, coalesce(change.log_from, 0) + json_array_length(change.log_lines)) where id = job.id;
  -- Kept per job over all its runs; the oldest go first.
  delete from millrace.job_lines where job_id = job.id and (lease, line_no) in (
    select lease, line_no from millrace.job_lines where job_id = job.id order by lease desc, line_no desc offset 10000);
end $$;

create or replace function millrace.request_cancel(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
begin
  update millrace.running set hooks = hooks | (case when change.then_remove then 384 else 128 end)::smallint where id = job.id;
  insert into millrace.job_states (id, updated_at, last_edge) values (job.id, now_at, '')
  on conflict (id) do update set updated_at = now_at;
  perform millrace.ring('control:' || w.id) from millrace.workers w where w.no = job.worker_no;
end $$;

-- The side row of a job that has more to remember than its place.
create or replace function millrace.note_change(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
begin
  insert into millrace.job_states as s (id, updated_at, last_edge, last_edge_lease, lease, worker_no, started_at, last_error, progress,
                                        replayed_at, replayed_by, replayed_into)
  values (job.id, now_at, change.edge, coalesce(change.guard_lease, 0), coalesce(job.lease, 0), job.worker_no, job.started_at, change.error,
          change.progress::json,
          case when change.edge in ('replay', 'markReplayed') then now_at end,
          case when change.edge in ('replay', 'markReplayed') then change.actor end,
          case when change.edge = 'markReplayed' then change.into_id end)
  on conflict (id) do update set
    updated_at = now_at, last_edge = change.edge, last_edge_lease = coalesce(change.guard_lease, 0),
    progress = case when job.lease is null or s.lease = job.lease then coalesce(excluded.progress, s.progress) else excluded.progress end,
    lease = coalesce(job.lease, s.lease), worker_no = coalesce(job.worker_no, s.worker_no),
    started_at = coalesce(job.started_at, s.started_at), last_error = coalesce(change.error, s.last_error),
    replayed_at = coalesce(excluded.replayed_at, s.replayed_at),
    replayed_by = case when excluded.replayed_at is null then s.replayed_by else excluded.replayed_by end,
    replayed_into = coalesce(excluded.replayed_into, s.replayed_into);
end $$;

-- src/core/apply.ts auditRow. `job` carries the counts after the change.
create or replace function millrace.append_audit(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
begin
  if change.audit is null then return; end if;
  insert into millrace.job_attempts (job_id, no, started_at, finished_at, run_at, queue_id, worker_no, attempt, attempt_count, crash_count,
                                     status, ended, error, result, note)
  values (job.id, case when change.audits_run then job.lease else nextval('millrace.lease_seq') end,
          case when change.audits_run then job.started_at end, now_at, job.run_at, job.queue_id,
          case when change.audits_run then job.worker_no end,
          job.attempts + case when change.audits_run and not coalesce(change.counts, false) then 1 else 0 end,
          job.attempts, job.crashes, change.audit, change.ended, change.error, change.result::json, coalesce(change.note, change.actor));
  -- A job that snoozes for ever must not grow for ever.
  delete from millrace.job_attempts a where a.job_id = job.id and a.ended is null and a.no <= (
    select o.no from millrace.job_attempts o where o.job_id = job.id order by o.no desc offset 1000 limit 1);
end $$;

create or replace function millrace.move_job(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
begin
  perform millrace.leave_place(job);
  if change.counts then job.attempts := job.attempts + 1; end if;
  if change.crashed then job.crashes := job.crashes + 1; end if;
  if change.ran_ms is not null then job.started_at := millrace.after_ms(now_at, -change.ran_ms); end if;
  if change.delay_ms is not null then job.run_at := millrace.after_ms(now_at, change.delay_ms); end if;
  if change.resets then
    job.attempts := 0;
    job.crashes := 0;
  end if;
  if change.edge = 'replay' then job.run_at := now_at; end if;
  perform millrace.note_change(job, change, now_at);
  perform millrace.append_audit(job, change, now_at);
  -- Cancellation was asked for this run only.
  job.hooks := job.hooks & ~128;

  if change.edge = 'return' then
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
    values (job.seq, job.run_at, job.ready_at, job.id, job.queue_id, job.priority, job.attempts, job.crashes, job.hooks);
    perform millrace.ring('ready:' || name) from millrace.job_queues where id = job.queue_id;
    return;
  end if;

  if change.edge = 'replay' then job := millrace.revive_gates(job, now_at); end if;
  job := millrace.release_slots(job, now_at);
  if change.ended is not null then
    perform millrace.end_job(job, change, now_at);
    return;
  end if;
  job.waits_for := change.waits_for;
  -- A deferred job has its place in the rate line already.
  if change.edge = 'defer' then job.hooks := job.hooks | 8; end if;
  if change.delay_ms is null then job.run_at := now_at; end if;
  perform millrace.admit(job, now_at);
end $$;

-- Everything that hangs on the end of a job.
create or replace function millrace.end_job(job millrace.job_place, change millrace.job_change, now_at timestamptz) returns void language plpgsql as $$
begin
  insert into millrace.final_counts (queue_id, ended, n) values (job.queue_id, change.ended, 1);
  job := millrace.release_group(job, now_at);
  perform millrace.free_key(job);
  if job.hooks & 64 <> 0 then perform millrace.tell_children(job.id, change.ended, now_at); end if;
  if job.batch_id is not null then
    perform millrace.count_batch(job.batch_id, change.ended, 1, now_at);
  end if;
  perform millrace.ring('finished:' || job.id);
  if job.hooks & 256 <> 0 then
    job.status := change.goes_to;
    select no into job.seq from millrace.job_attempts where job_id = job.id and ended is not null;
    perform millrace.leave_place(job);
    perform millrace.erase_job(job, now_at);
  end if;
end $$;

-- Moves jobs of a batch from pending to their end, and finishes it with the last one.
create or replace function millrace.count_batch(batch uuid, as_ended int, jobs int, now_at timestamptz) returns void language plpgsql as $$
begin
  update millrace.batches set pending = pending - jobs,
    completed = completed + case as_ended when 1 then jobs else 0 end,
    failed = failed + case as_ended when 2 then jobs else 0 end,
    cancelled = cancelled + case as_ended when 3 then jobs else 0 end
  where id = batch;
  perform millrace.finish_batch(batch, now_at);
end $$;

-- src/core/batch.ts isDone and callbacksDue: once for ever, with its callbacks in the same atom.
create or replace function millrace.finish_batch(batch uuid, now_at timestamptz) returns void language plpgsql as $$
declare
  done millrace.batches;
  callbacks json;
begin
  update millrace.batches set finished_at = now_at
  where id = batch and finished_at is null and is_sealed and pending = 0 returning * into done;
  if not found then return; end if;
  perform millrace.ring('finished:' || batch);
  select json_agg(c.job order by c.position) into callbacks from (
    select done.callbacks->'complete' as job, 1 as position
    union all select done.callbacks->(case when done.completed = done.total and not done.is_cancelled then 'success' else 'failure' end), 2
  ) c where json_typeof(c.job) = 'object';
  if callbacks is not null then perform millrace.insert_inside(callbacks); end if;
end $$;

-- An insert as part of another atom: its rings join those of the caller.
create or replace function millrace.insert_inside(jobs json) returns json language plpgsql as $$
declare
  before text := coalesce(millrace.rung(), '');
  reply json := millrace.insert_jobs(jobs, false);
begin
  perform set_config('millrace_rings.topics', before || coalesce(reply->>'rings', ''), true);
  return reply;
end $$;

-- The end of a parent, counted once by each child. A child that is not blocked any more has ended by itself.
create or replace function millrace.tell_children(of_parent uuid, as_ended int, now_at timestamptz) returns void language plpgsql as $$
declare
  dependency record;
  waiting millrace.blocked;
  job millrace.job_place;
begin
  for dependency in
    with told as (update millrace.job_parents set is_open = false where parent = of_parent and is_open returning child, policy)
    select t.child, t.policy from told t order by t.child
  loop
    perform millrace.lock_gates(array[b.queue_id]) from millrace.job_bodies b join millrace.job_queues q on q.id = b.queue_id
    where b.id = dependency.child and (q.is_limited or b.group_key is not null);
    select * into waiting from millrace.blocked where id = dependency.child and gate = 1 for update;
    continue when not found;
    if as_ended = 1 or dependency.policy = 3 then
      if waiting.pending_parents = 1 then
        delete from millrace.blocked where id = waiting.id;
        job := millrace.unblocked(waiting);
        job.pending_parents := 0;
        perform millrace.admit(job, now_at);
      else
        update millrace.blocked set pending_parents = pending_parents - 1 where id = waiting.id;
      end if;
    elsif waiting.orphan_of is null then
      -- Nothing brings the count down any more: it stays blocked until maintenance settles it by its policy.
      update millrace.blocked set orphan_of = of_parent, orphan_status = as_ended, orphan_policy = dependency.policy where id = waiting.id;
    end if;
  end loop;
end $$;

-- A replayed job must have its key back; false: another live job holds it. An until-finished key is taken here, so that
-- nobody can take it between the question and the answer; a key held for a time does not stand in the way of its own job.
create or replace function millrace.hold_again(job millrace.job_place, now_at timestamptz) returns boolean language plpgsql as $$
declare
  held millrace.unique_keys;
begin
  if job.unique_key is null then return true; end if;
  for try in 1..100 loop
    if job.unique_mode = 2 then
      insert into millrace.unique_keys (queue_id, key, mode, holder, until) values (job.queue_id, job.unique_key, 2, job.id, 'infinity')
      on conflict (queue_id, key) do nothing;
      if found then return true; end if;
    end if;
    select * into held from millrace.unique_keys where queue_id = job.queue_id and key = job.unique_key for update;
    if not found then
      if job.unique_mode = 2 then continue; end if;
      return true;
    end if;
    if held.holder <> job.id and held.until > now_at and (
         exists (select 1 from millrace.running where id = held.holder) or exists (select 1 from millrace.ready where id = held.holder)
         or exists (select 1 from millrace.scheduled where id = held.holder) or exists (select 1 from millrace.blocked where id = held.holder)) then
      return false;
    end if;
    if job.unique_mode = 2 then
      update millrace.unique_keys set mode = 2, holder = job.id, until = 'infinity' where queue_id = job.queue_id and key = job.unique_key;
    end if;
    return true;
  end loop;
  raise exception 'unique key % changes hands too fast', job.unique_key using errcode = '40001';
end $$;

-- A replayed job has its key again, counts as pending in its batch, and waits only for parents that are live again.
create or replace function millrace.revive_gates(inout job millrace.job_place, now_at timestamptz) language plpgsql as $$
declare
  dependency record;
  parent millrace.job_place;
begin
  if job.unique_mode = 2 then job.hooks := job.hooks | 32; end if;
  if job.batch_id is not null then
    update millrace.batches set pending = pending + 1, failed = failed - 1 where id = job.batch_id;
  end if;
  job.pending_parents := 0;
  job.orphan_of := null;
  for dependency in select p.parent, p.policy, p.position from millrace.job_parents p where p.child = job.id order by p.parent loop
    parent := millrace.lock_job(dependency.parent);
    continue when parent.id is null or parent.status in ('completed', 'failed', 'cancelled');
    perform millrace.hook_place(parent, 64);
    job := millrace.depend_on(job, dependency.parent, dependency.policy, dependency.position, parent.status);
  end loop;
  -- Children that still wait are told of its next end.
  if exists (select 1 from millrace.job_parents p where p.parent = job.id and p.is_open) then job.hooks := job.hooks | 64; end if;
end $$;

-- Deletes a job that has left its place; `job.status` is the one it had.
create or replace function millrace.erase_job(job millrace.job_place, now_at timestamptz) returns void language plpgsql as $$
begin
  job := millrace.release_slots(job, now_at);
  job := millrace.release_group(job, now_at);
  perform millrace.free_key(job);
  delete from millrace.job_attempts where job_id = job.id;
  delete from millrace.job_lines where job_id = job.id;
  delete from millrace.job_states where id = job.id;
  delete from millrace.job_parents where child = job.id;
  delete from millrace.job_bodies where id = job.id;
  if job.batch_id is not null then
    update millrace.batches set total = total - 1, kept = kept - 1,
      pending = pending - case when job.status in ('completed', 'failed', 'cancelled') then 0 else 1 end,
      completed = completed - case job.status when 'completed' then 1 else 0 end,
      failed = failed - case job.status when 'failed' then 1 else 0 end,
      cancelled = cancelled - case job.status when 'cancelled' then 1 else 0 end
    where id = job.batch_id;
  end if;
  perform millrace.tell_children(job.id, 3, now_at);
  if job.batch_id is not null then perform millrace.finish_batch(job.batch_id, now_at); end if;
  perform millrace.ring('finished:' || job.id);
end $$;

-- Many transitions, in order: one verdict each. What hangs on them is locked: `lock_around`.
create or replace function millrace.apply_changes(changes json, now_at timestamptz) returns text[] language plpgsql as $$
declare
  verdicts text[] := '{}';
  change json;
begin
  for change in select c.change from json_array_elements(changes) with ordinality as c(change, position) order by c.position loop
    verdicts := verdicts || millrace.settle_one(json_populate_record(null::millrace.job_change, change), now_at);
  end loop;
  return verdicts;
end $$;

-- Locks what hangs on these jobs in the order that holds everywhere: batches, then gates, then rows. Gates of children
-- too: the end of a parent lets them go on.
create or replace function millrace.lock_around(ids uuid[]) returns void language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  perform 1 from millrace.batches where id in (select b.batch_id from millrace.job_bodies b where b.id = any(ids) and b.batch_id is not null)
  order by id for update;
  perform millrace.lock_gates(array(
    select q.id from millrace.job_bodies b join millrace.job_queues q on q.id = b.queue_id
    where b.id = any(ids) and (q.is_limited or b.group_key is not null)
    union
    select q.id from millrace.job_parents p join millrace.job_bodies b on b.id = p.child join millrace.job_queues q on q.id = b.queue_id
    where p.parent = any(ids) and p.is_open and (q.is_limited or b.group_key is not null)));
end $$;

-- The jobs of changes that need more than the row of a run.
create or replace function millrace.jobs_changed(changes json) returns uuid[] language sql immutable parallel safe as $$
  select array(select (c.change->>'job_id')::uuid from json_array_elements(changes) as c(change) where c.change->>'edge' <> 'report')
$$;

-- Completions of jobs that nothing hangs on but these hooks; the ids of those that were completed. The run of a row that is
-- not marked was of `by_worker`. Found by one walk over the index for all ids, leases compared in a hash: 6.8 µs a job instead of
-- 7.6 with a subplan for the leases and a second join for the rest (ADR 004). No plan of a quiet moment compares all with all.
-- Results are not in the hash: it fits into memory whatever they are, so rows are deleted in the order of ids, which are sorted.
create or replace function millrace.complete_plain(
  ids uuid[], leases bigint[], ran_ms int[], results text[], also int, by_worker int, now_at timestamptz
) returns uuid[] language plpgsql set enable_bitmapscan = off set enable_nestloop = off set enable_hashjoin = on as $$
declare
  done uuid[];
begin
  with ended as (
    delete from millrace.running r using unnest(ids, leases) with ordinality as d(id, lease, place)
    where r.id = any(ids) and r.id = d.id and r.lease = d.lease
      -- One that somebody changed meanwhile has other hooks, or is left to the long way.
      and r.hooks & ~(8 + 512 + 1024 + also) = 0
    returning r.id, r.lease, r.queue_id, r.worker_no, r.attempts, r.crashes, r.run_at, d.place
  ), logged as (
    insert into millrace.job_attempts (job_id, no, started_at, finished_at, run_at, queue_id, worker_no, attempt, attempt_count, crash_count,
                                       status, ended, result)
    select e.id, e.lease, millrace.after_ms(now_at, -ran_ms[e.place]), now_at, e.run_at, e.queue_id,
           case e.worker_no when 0 then by_worker else e.worker_no end, e.attempts + 1, e.attempts + 1, e.crashes, 1, 1, results[e.place]::json
    from ended e
  ), counted as (
    insert into millrace.final_counts (queue_id, ended, n) select e.queue_id, 1, count(*) from ended e group by e.queue_id
  )
  select coalesce(array_agg(e.id), '{}') into done from ended e;
  return done;
end $$;

-- Completions, set by set; those that something hangs on go the long way. Answers the verdicts that are not `applied`,
-- as pairs of position (from 0) and verdict.
create or replace function millrace.complete_jobs(
  ids uuid[], leases bigint[], ran_ms int[], results text[], for_worker text, now_at timestamptz
) returns json language plpgsql as $$
declare
  by_worker int := (select w.no from millrace.workers w where w.id = for_worker);
  done uuid[];
  batched uuid[];
  rest json[] := '{}';
  one record;
  change millrace.job_change;
  verdict text;
begin
  done := millrace.complete_plain(ids, leases, ran_ms, results, 0, by_worker, now_at);
  if cardinality(done) = cardinality(ids) then return null; end if;
  perform millrace.lock_around(array(select i.id from unnest(ids) as i(id) where i.id <> all(done)));
  batched := millrace.complete_plain(ids, leases, ran_ms, results, 16, by_worker, now_at);
  if cardinality(batched) > 0 then
    done := done || batched;
    perform millrace.count_batch(c.batch_id, 1, c.jobs, now_at) from (
      select b.batch_id, count(*)::int as jobs from millrace.job_bodies b where b.id = any(batched) and b.batch_id is not null
      group by b.batch_id order by b.batch_id) c;
  end if;
  if cardinality(done) = cardinality(ids) then return null; end if;
  for one in
    select d.id, d.lease, d.ran, d.result, d.position from unnest(ids, leases, ran_ms, results) with ordinality as d(id, lease, ran, result, position)
    where d.id <> all(done) order by d.position
  loop
    change := null;
    change.job_id := one.id;
    change.edge := 'complete';
    change.guard_from := '{running}';
    change.guard_lease := one.lease;
    change.goes_to := 'completed';
    change.counts := true;
    change.ran_ms := one.ran;
    change.result := one.result;
    change.audit := 1;
    change.audits_run := true;
    change.ended := 1;
    change.worker := for_worker;
    verdict := millrace.settle_one(change, now_at);
    if verdict <> 'applied' then rest := rest || json_build_array(one.position - 1, verdict); end if;
  end loop;
  return case when cardinality(rest) = 0 then null else array_to_json(rest) end;
end $$;

-- All of it without a claim: what `apply` calls. The head is that of `cycle` in 60_claim.sql; null: everything was applied
-- and there is nothing to tell. `for_worker`: who ran what is not marked.
create or replace function millrace.settle_jobs(
  done_ids uuid[], done_leases bigint[], done_ran_ms int[], done_results text[], changes json, for_worker text default null
) returns text language plpgsql
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
declare
  now_at timestamptz := millrace.now_at();
  unapplied json;
  verdicts text[];
  rings text;
begin
  if changes is not null then
    perform millrace.lock_around(done_ids || millrace.jobs_changed(changes));
    -- Rows of runs in the order of ids: an adoption of this worker, which waits for each of them, may come by (mark_runs). Completions
    -- alone are in that order by themselves.
    if for_worker is not null then
      perform 1 from millrace.running r where r.id = any(done_ids || millrace.jobs_changed(changes)) order by r.id for update;
    end if;
  end if;
  if cardinality(done_ids) > 0 then
    unapplied := millrace.complete_jobs(done_ids, done_leases, done_ran_ms, done_results, for_worker, now_at);
  end if;
  if changes is not null then verdicts := millrace.apply_changes(changes, now_at); end if;
  rings := millrace.rung();
  if unapplied is null and verdicts is null and rings is null then return null; end if;
  return json_strip_nulls(json_build_object('unapplied', unapplied, 'verdicts', verdicts, 'rings', rings))::text;
end $$;
