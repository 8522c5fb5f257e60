-- Unmarked rows that go back to ready, or to the heirs of a dead worker. An unmarked row may be in somebody's hands: before
-- anybody but that one touches it, every living worker must have said what it runs since the epoch began. That is the
-- barrier, and it is looked at in the statement that moves the rows, or while they are locked: a worker that adopts the
-- epoch marks its rows in the same transaction.

-- Nobody who could hold tokens is behind this epoch, and it is that of the queue still.
create or replace function millrace.barrier_holds(of_queue int, at_epoch bigint) returns boolean language sql stable as $$
  select exists (
    select 1 from millrace.dispatch d where d.queue_id = of_queue and d.epoch = at_epoch
      and not exists (select 1 from millrace.workers w where w.is_alive and w.epoch_seen < d.epoch))
$$;

-- Back to their places as `return` does it (src/core/decide.ts), nobody's rows and those of `of_worker`; one with a cancel flag ends.
-- With `at_epoch` only nobody's rows, of that queue, under its barrier. What somebody has locked stays, and what was flagged this
-- very moment: what hangs on a job that ends is locked before its row, as everywhere (`lock_around`). How many moved.
create or replace function millrace.return_runs(
  ids uuid[], leases bigint[], of_worker int, of_queue int, at_epoch bigint, out moved int, out rings text
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
declare
  now_at timestamptz := millrace.now_at();
  queues int[];
  flagged record;
  around uuid[] := array(
    select d.id from unnest(ids, leases) as d(id, lease)
    join millrace.running r on r.id between d.id and d.id and r.lease = d.lease where r.hooks & 128 <> 0);
  flagged_ids uuid[];
  flagged_leases bigint[];
  change millrace.job_change;
begin
  if cardinality(around) > 0 then perform millrace.lock_around(around); end if;
  with held as materialized (
    select f.id, f.lease, f.hooks from unnest(ids, leases) as d(id, lease)
    cross join lateral (
      select r.id, r.lease, r.hooks from millrace.running r where r.id = d.id and r.lease = d.lease
        and (r.worker_no = 0 or r.worker_no = of_worker) and (of_queue is null or r.queue_id = of_queue) for update skip locked) f
    where at_epoch is null or (select millrace.barrier_holds(of_queue, at_epoch))
  ), gone as (
    delete from millrace.running r using held h where r.id between h.id and h.id and r.lease = h.lease and h.hooks & 128 = 0
    returning r.seq, r.run_at, r.ready_at, r.id, r.queue_id, r.priority, r.attempts, r.crashes, r.hooks
  ), entered as (
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
    select g.seq, g.run_at, g.ready_at, g.id, g.queue_id, g.priority, g.attempts, g.crashes, g.hooks from gone g
  )
  select (select count(*) from gone), (select array_agg(distinct g.queue_id) from gone g),
         (select array_agg(h.id) from held h where h.hooks & 128 <> 0 and h.id = any(around)),
         (select array_agg(h.lease) from held h where h.hooks & 128 <> 0 and h.id = any(around))
  into moved, queues, flagged_ids, flagged_leases;
  for flagged in select f.id, f.lease from unnest(flagged_ids, flagged_leases) as f(id, lease) order by f.id loop
    change := null;
    change.job_id := flagged.id;
    change.edge := 'cancelUnstarted';
    change.guard_from := '{running}';
    change.guard_lease := flagged.lease;
    change.goes_to := 'cancelled';
    change.audit := 4;
    change.audits_run := false;
    change.ended := 3;
    perform millrace.settle_one(change, now_at);
    moved := moved + 1;
  end loop;
  perform millrace.ring('ready:' || q.name) from millrace.job_queues q where q.id = any(queues);
  rings := millrace.rung();
end $$;

create or replace function millrace.requeue_runs(queue_name text, at_epoch bigint, ids uuid[], leases bigint[], out moved int, out rings text)
language plpgsql as $$
declare
  of_queue int := (select q.id from millrace.job_queues q where q.name = queue_name);
begin
  select r.moved, r.rings into moved, rings from millrace.return_runs(ids, leases, null, coalesce(of_queue, 0), at_epoch) as r;
end $$;

-- Unmarked rows have no index: it would cost every job 1.4 µs and 75 bytes of WAL. Whoever looks for them reads a part of
-- the table, from one block on, and goes on behind it the next time: `next_block`, 0 at the end. So a pass has a bound even
-- while somebody's snapshot keeps the dead rows of a day.
create or replace function millrace.unmarked_runs(
  queue_name text, after_lease bigint, below_lease bigint, most int, from_block bigint, blocks bigint,
  out ids uuid[], out leases bigint[], out next_block bigint
) language plpgsql
set enable_seqscan = off set enable_indexscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  of_queue int := (select q.id from millrace.job_queues q where q.name = queue_name);
  table_blocks bigint := pg_relation_size('millrace.running') / current_setting('block_size')::int;
  first_place tid;
  end_place tid;
begin
  if from_block >= table_blocks then from_block := 0; end if;
  next_block := case when from_block + blocks < table_blocks then from_block + blocks else 0 end;
  first_place := format('(%s,0)', from_block)::tid;
  end_place := format('(%s,0)', least(from_block + blocks, 4294967294))::tid;
  select array_agg(u.id), array_agg(u.lease) into ids, leases from (
    select r.id, r.lease from millrace.running r
    where r.ctid >= first_place and r.ctid < end_place and r.worker_no = 0 and r.queue_id = of_queue and r.lease > after_lease and r.lease < below_lease
    order by r.lease limit most) u;
end $$;

-- The same as they lie: the next `most`, so that taking all of them reads the table once. `next_block` null: it is read to its end.
create or replace function millrace.old_runs(
  of_queue int, below_lease bigint, most int, from_block bigint, blocks bigint, out ids uuid[], out leases bigint[], out next_block bigint
) language plpgsql
set enable_seqscan = off set enable_indexscan = off set enable_bitmapscan = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  table_blocks bigint := pg_relation_size('millrace.running') / current_setting('block_size')::int;
  first_place tid;
  end_place tid;
  last_place tid;
begin
  if from_block >= table_blocks then from_block := 0; end if;
  first_place := format('(%s,0)', from_block)::tid;
  end_place := format('(%s,0)', least(from_block + blocks, 4294967294))::tid;
  select array_agg(u.id order by u.id), array_agg(u.lease order by u.id), max(u.place) into ids, leases, last_place from (
    select r.id, r.lease, r.ctid as place from millrace.running r
    where r.ctid >= first_place and r.ctid < end_place and r.worker_no = 0 and r.queue_id = of_queue and r.lease < below_lease limit most) u;
  next_block := case
    -- The block of the last one may have more.
    when cardinality(ids) = most then split_part(ltrim(last_place::text, '('), ',', 1)::bigint
    when from_block + blocks < table_blocks then from_block + blocks end;
end $$;

-- Those of earlier epochs, and all of them when no token is worth anything. -1: the barrier does not hold.
create or replace function millrace.requeue_old(
  queue_name text, at_epoch bigint, most int, from_block bigint, blocks bigint, out moved int, out rings text, out next_block bigint
) language plpgsql as $$
declare
  of_queue int := (select q.id from millrace.job_queues q where q.name = queue_name);
  below_lease bigint;
  old record;
begin
  moved := -1;
  next_block := from_block;
  if of_queue is null or not millrace.barrier_holds(of_queue, at_epoch) then return; end if;
  -- What an epoch is does not change; that it still is the one of the queue is looked at again with the rows.
  select case d.mode when 'ledger' then 9223372036854775807 else d.first_lease end into below_lease
  from millrace.dispatch d where d.queue_id = of_queue and d.epoch = at_epoch;
  moved := 0;
  select * into old from millrace.old_runs(of_queue, below_lease, most, from_block, blocks);
  next_block := old.next_block;
  if old.ids is null then return; end if;
  select r.moved, r.rings into moved, rings from millrace.return_runs(old.ids, old.leases, null, of_queue, at_epoch) as r;
end $$;

create or replace function millrace.give_back(of_worker text, ids uuid[], leases bigint[], out moved int, out rings text) language plpgsql as $$
begin
  select r.moved, r.rings into moved, rings
  from millrace.return_runs(ids, leases, (select w.no from millrace.workers w where w.id = of_worker), null, null) as r;
end $$;

-- Nobody's rows become those of a worker that is not alive: `expired_jobs` lists them from now on.
create or replace function millrace.bequeath_runs(to_worker text, ids uuid[], leases bigint[]) returns int language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
declare
  now_at timestamptz := millrace.now_at();
  number int;
  moved int;
begin
  -- One that this store never knew is dead: as such it can own them.
  insert into millrace.workers (id, host, pid, queues, concurrency, is_alive, started_at, last_beat_at)
  values (to_worker, '', 0, '{}', 0, false, now_at, now_at) on conflict (id) do nothing returning no into number;
  if found then insert into millrace.worker_claims (worker_no, is_dead) values (number, true); end if;
  -- The claim row first: whoever finds that the dead hold nothing looks at it under the same lock.
  update millrace.worker_claims c set is_empty = false from millrace.workers w
  where w.id = to_worker and c.worker_no = w.no and c.is_dead returning c.worker_no into number;
  if not found then return 0; end if;
  update millrace.running r set worker_no = number from unnest(ids, leases) as d(id, lease)
  where r.id between d.id and d.id and r.lease = d.lease and r.worker_no = 0;
  get diagnostics moved = row_count;
  return moved;
end $$;

-- Cancelling or removing a row whose token was revoked; with `at_epoch` the token was not there, so somebody of an older
-- epoch may have it unless the barrier holds. The row is locked before that is looked at.
create or replace function millrace.settle_revoked(
  change_json json, of_lease bigint, queue_name text, at_epoch bigint, out verdict text, out rings text
) language plpgsql set lock_timeout = '5s' as $$
declare
  change millrace.job_change := json_populate_record(null::millrace.job_change, change_json);
  job millrace.job_place;
begin
  perform millrace.lock_around(array[change.job_id]);
  job := millrace.lock_job(change.job_id);
  if job.id is null then
    verdict := 'missing';
  elsif job.status <> 'dispatched' or job.lease <> of_lease or not (job.status = any(change.guard_from)) then
    verdict := case when millrace.was_applied(change) then 'already' else 'stale' end;
  elsif at_epoch is not null and not exists (
    select 1 from millrace.job_queues q where q.name = queue_name and q.id = job.queue_id and millrace.barrier_holds(q.id, at_epoch)) then
    verdict := 'stale';
  else
    -- It never ran: the lease of its token names no run.
    job.lease := null;
    verdict := millrace.change_job(job, change, millrace.now_at());
  end if;
  rings := millrace.rung();
end $$;

-- For whoever goes back to PostgreSQL alone: all tokens are void, and what they stood for is ready again. How many jobs. Nobody
-- mints meanwhile: minting reads `dispatch`, so whoever has minted and not committed yet is waited for, and whoever comes later
-- finds that there are no tokens. All of it or nothing. With the rights of the owner, for an operator who may not flip queues.
create or replace function millrace.recall_tokens() returns bigint language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  queue record;
  part record;
  block bigint;
  total bigint := 0;
begin
  if exists (select 1 from millrace.workers w where w.is_alive and w.epoch_seen is not null) then
    raise exception 'workers of the hybrid are alive' using errcode = 'object_in_use',
      hint = 'stop them first; one that was killed is declared dead within seconds while any worker runs';
  end if;
  -- In the order of a flip.
  perform 1 from millrace.ledger l where l.id = 1 for update;
  lock table millrace.dispatch in access exclusive mode;
  perform millrace.flip_queues(array_agg(q.name order by q.id), array_agg(d.epoch order by q.id), 'ledger', '', false, 0)
  from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id having count(*) > 0;
  for queue in select q.name, d.epoch from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id order by q.id loop
    block := 0;
    loop
      select r.moved, r.next_block into part from millrace.requeue_old(queue.name, queue.epoch, 10000, block, 2147483648) as r;
      exit when part.moved < 0;
      total := total + part.moved;
      exit when part.next_block is null;
      block := part.next_block;
    end loop;
  end loop;
  if exists (select 1 from millrace.running r where r.worker_no = 0) then
    raise exception 'jobs are still dispatched: somebody has locked them, or a worker of the hybrid has just started' using
      errcode = 'object_in_use', hint = 'stop the workers of the hybrid and call it again; nothing was changed';
  end if;
  return total;
end $$;
