-- Workers that hold tokens: they beat, they say what they run (mark), and they follow the epochs (adopt). Marks lock the
-- claim row of their worker in the weakest way: claims go on, but nobody is declared dead in the middle of one. `between` here
-- and in 68_back.sql is an equality that only a lookup per lease can serve: planned while nothing ran, `=` would walk over the
-- whole index and compare all with all.

create or replace function millrace.beat_session(of_id text, running_now int, commands_seen bigint, blocked int, failing_now text[])
returns json language plpgsql as $$
declare
  worker record;
begin
  update millrace.workers w set beat = w.beat + 1, running = running_now, blocked_ms = blocked, last_beat_at = millrace.now_at(), failing = failing_now
  where w.id = of_id and w.is_alive returning w.no, w.queues, w.epoch_seen into worker;
  if not found then return null; end if;
  return json_build_object('base', millrace.beat_reply(worker.no, commands_seen), 'epochSeen', coalesce(worker.epoch_seen, 0),
    'news', millrace.dispatch_news(array(select q.id from millrace.job_queues q where q.name = any(worker.queues))));
end $$;

-- The number of a living worker, who stays alive until the commit; null: it is not.
create or replace function millrace.keep_alive(of_id text) returns int language plpgsql as $$
declare
  number int;
begin
  select c.worker_no into number from millrace.workers w join millrace.worker_claims c on c.worker_no = w.no
  where w.id = of_id and not c.is_dead for key share of c;
  return number;
end $$;

-- These runs are of this worker, for so long already. Adopting an epoch says more: there is nothing else that it runs, so
-- every row must be marked, and one that somebody's transaction has locked is waited for. A mere mark passes it over.
-- Answers the leases that are lost: rows that are gone, or another's.
create or replace function millrace.mark_runs(
  for_worker text, at_epoch bigint, ids uuid[], leases bigint[], ages_ms int[], out alive boolean, out lost_ids uuid[], out lost_leases bigint[]
) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '2s'
as $$
declare
  now_at timestamptz := millrace.now_at();
  number int := millrace.keep_alive(for_worker);
  free_ids uuid[] := ids;
  free_leases bigint[] := leases;
  free_ages int[] := ages_ms;
begin
  alive := number is not null;
  if not alive then return; end if;
  if at_epoch is not null then
    update millrace.workers set epoch_seen = greatest(epoch_seen, at_epoch) where no = number;
  else
    select array_agg(f.id), array_agg(d.lease), array_agg(d.age) into free_ids, free_leases, free_ages
    from unnest(ids, leases, ages_ms) as d(id, lease, age)
    cross join lateral (
      select r.id from millrace.running r where r.id = d.id and r.lease = d.lease and r.worker_no = 0 for update skip locked) f;
  end if;
  update millrace.running r set worker_no = number, started_at = millrace.after_ms(now_at, -d.age)
  from unnest(free_ids, free_leases, free_ages) as d(id, lease, age)
  where r.id between d.id and d.id and r.lease = d.lease and r.worker_no = 0;
  select array_agg(d.id), array_agg(d.lease) into lost_ids, lost_leases from unnest(ids, leases) as d(id, lease)
  where coalesce((select r.worker_no from millrace.running r where r.id = d.id and r.lease = d.lease) not in (0, number), true);
end $$;

-- A start that is recorded before it happens: rows that are nobody's become this worker's; one that an adoption has marked
-- meanwhile is its own already. Answers those that are.
create or replace function millrace.confirm_runs(for_worker text, ids uuid[], leases bigint[], lease_ms bigint)
returns table (job_id uuid, lease bigint) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
#variable_conflict use_column
declare
  now_at timestamptz := millrace.now_at();
  number int := millrace.keep_alive(for_worker);
  free_ids uuid[];
  free_leases bigint[];
begin
  if number is null then return; end if;
  select array_agg(f.id), array_agg(f.lease) into free_ids, free_leases from unnest(ids, leases) as d(id, lease)
  cross join lateral (
    select r.id, r.lease from millrace.running r
    where r.id = d.id and r.lease = d.lease and r.worker_no in (0, number) for update skip locked) f;
  return query update millrace.running r set worker_no = number, started_at = now_at,
    visible_until = case when lease_ms is null then r.visible_until else millrace.after_ms(now_at, lease_ms) end
  from unnest(free_ids, free_leases) as d(id, lease) where r.id between d.id and d.id and r.lease = d.lease returning r.id, r.lease;
end $$;

-- Cancellation is asked for of a run that this worker has in flight: with the mark its beat tells it.
create or replace function millrace.flag_cancel(of_job uuid, of_lease bigint, in_flight_of text, then_remove boolean, out flagged boolean, out rings text)
language plpgsql set lock_timeout = '5s' as $$
declare
  number int := millrace.keep_alive(in_flight_of);
  job millrace.job_place;
  change millrace.job_change;
begin
  flagged := false;
  if number is not null then
    update millrace.running r set worker_no = number where r.id = of_job and r.lease = of_lease and r.worker_no = 0;
  end if;
  job := millrace.lock_job(of_job, false);
  if job.id is null or job.lease is distinct from of_lease or job.status not in ('running', 'dispatched') then return; end if;
  change.then_remove := then_remove;
  perform millrace.request_cancel(job, change, millrace.now_at());
  flagged := true;
  rings := millrace.rung();
end $$;
