-- Claim: settle what the worker brings, then pop the next ready jobs and give each a new lease. Only ready rows are
-- looked at. Refines src/backends/memory/claim.ts; lanes are src/core/priority.ts.
--
-- A floor says where the living rows of a priority begin, as far as this process knows: the scan starts there instead
-- of walking over rows that are dead but still needed by somebody's snapshot. Nothing depends on it: a claim that finds
-- too little looks at everything, and so does one claim a second.

-- Places and ids of the next rows, in the order of their starts.
create or replace function millrace.pick_rows(
  for_queue int, from_priority int, to_priority int, most int, floor_priorities int[], floor_seqs bigint[], out places tid[], out ids uuid[]
) language plpgsql as $$
declare
  next_priority int := from_priority;
  floor_index int := 1;
  more_places tid[];
  more_ids uuid[];
begin
  places := '{}';
  ids := '{}';
  while cardinality(places) < most and next_priority <= to_priority loop
    while floor_index <= coalesce(cardinality(floor_priorities), 0) and floor_priorities[floor_index] < next_priority loop
      floor_index := floor_index + 1;
    end loop;
    if floor_index <= coalesce(cardinality(floor_priorities), 0) and floor_priorities[floor_index] <= to_priority then
      if floor_priorities[floor_index] > next_priority then
        select array_agg(p.place), array_agg(p.id) into more_places, more_ids from (
          select r.ctid as place, r.id from millrace.ready r
          where r.queue_id = for_queue and r.priority >= next_priority and r.priority < floor_priorities[floor_index]
          order by r.queue_id, r.priority, r.seq limit most - cardinality(places) for update skip locked) p;
        places := places || more_places;
        ids := ids || more_ids;
      end if;
      if cardinality(places) < most then
        select array_agg(p.place), array_agg(p.id) into more_places, more_ids from (
          select r.ctid as place, r.id from millrace.ready r
          where r.queue_id = for_queue and r.priority = floor_priorities[floor_index] and r.seq >= floor_seqs[floor_index]
          order by r.queue_id, r.priority, r.seq limit most - cardinality(places) for update skip locked) p;
        places := places || more_places;
        ids := ids || more_ids;
      end if;
      next_priority := floor_priorities[floor_index] + 1;
    else
      select array_agg(p.place), array_agg(p.id) into more_places, more_ids from (
        select r.ctid as place, r.id from millrace.ready r
        where r.queue_id = for_queue and r.priority >= next_priority and r.priority <= to_priority
        order by r.queue_id, r.priority, r.seq limit most - cardinality(places) for update skip locked) p;
      places := places || more_places;
      ids := ids || more_ids;
      exit;
    end if;
  end loop;
end $$;

-- Of so many starts, how many a waiting lane is owed that has watched others go by: src/core/priority.ts pickLane.
create or replace function millrace.lane_owed(starts int, passed int, period int) returns int language sql immutable parallel safe as $$
  select case when starts < greatest(period - passed, 1) then 0 else 1 + (starts - greatest(period - passed, 1)) / period end
$$;

-- A claim that is full of the most urgent jobs, with the share of the lower lanes in it: they may be waiting behind it,
-- and some of the starts are owed to them.
create or replace function millrace.share_lanes(
  settings millrace.job_queues, own tid[], normal_passed int, low_passed int, floor_priorities int[], floor_seqs bigint[]
) returns tid[] language plpgsql as $$
declare
  starts int := cardinality(own);
  owed_normal int := millrace.lane_owed(starts, normal_passed, settings.lower_lane_share);
  -- One start earlier than the normal lane, so that both keep their bound when they come due together.
  owed_low int := millrace.lane_owed(starts, low_passed, greatest(settings.lower_lane_share - 1, 2));
  first_priority int;
  last_priority int;
  in_high int := 0;
  in_normal int := 0;
  normals tid[];
  lows tid[];
  n_normal int;
  n_low int;
  n_high int;
begin
  if owed_normal = 0 and owed_low = 0 then return own; end if;
  -- Rows are in order of priority: usually all of one lane.
  select r.priority into first_priority from millrace.ready r where r.ctid = own[1];
  select r.priority into last_priority from millrace.ready r where r.ctid = own[starts];
  if last_priority <= settings.lane_high_max then
    in_high := starts;
  elsif first_priority > settings.lane_high_max and last_priority <= settings.lane_normal_max then
    in_normal := starts;
  elsif first_priority <= settings.lane_normal_max then
    select count(*) filter (where r.priority <= settings.lane_high_max), count(*) filter (where r.priority between settings.lane_high_max + 1 and settings.lane_normal_max)
    into in_high, in_normal from millrace.ready r where r.ctid = any(own);
  end if;
  normals := own[in_high + 1:in_high + in_normal];
  lows := own[in_high + in_normal + 1:];
  -- What was taken of a lane comes first in what more is taken of it.
  if owed_normal > in_normal and cardinality(lows) = 0 then
    select p.places into normals
    from millrace.pick_rows(settings.id, settings.lane_high_max + 1, settings.lane_normal_max, least(owed_normal, starts), floor_priorities, floor_seqs) p;
  end if;
  if owed_low > cardinality(lows) then
    select p.places into lows
    from millrace.pick_rows(settings.id, settings.lane_normal_max + 1, 32767, least(owed_low, starts), floor_priorities, floor_seqs) p;
  end if;
  n_normal := least(owed_normal, cardinality(normals));
  n_low := least(owed_low, cardinality(lows), starts - n_normal);
  n_high := least(in_high, starts - n_low - n_normal);
  -- The rest is not owed to anybody: the most urgent first.
  n_normal := least(cardinality(normals), starts - n_low - n_high);
  n_low := starts - n_high - n_normal;
  return own[1:n_high] || normals[1:n_normal] || lows[1:n_low];
end $$;

-- The first row of the reply is the head, in its column `facts`: verdicts, paused queues, refusal, queues, rings.
-- The others are jobs: what every job has as one line of words, since a column costs more than a word, and a word 0.1 µs: three small
-- numbers are one word, and the last one is left out where a job was ready at once.
create or replace function millrace.cycle(
  for_worker text, claim_no bigint, queues text[], most int, lease_ms bigint,
  -- Floors, sorted by queue (position in `queues`, from 1) and priority.
  floor_queues int[], floor_priorities int[], floor_seqs bigint[],
  -- Starts that lower lanes have watched go by, as far as this process knows, by position in `queues`.
  normal_passed int[], low_passed int[],
  done_ids uuid[], done_leases bigint[], done_ran_ms int[], done_results text[], changes json
) returns table (facts text, name text, payload json, extra text) language plpgsql
set enable_seqscan = off set enable_nestloop = on set enable_hashjoin = off set enable_mergejoin = off set jit = off
set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
#variable_conflict use_column
declare
  now_at timestamptz := millrace.now_at();
  unapplied json;
  verdicts text[];
  worker_number int;
  refused text;
  paused text[] := '{}';
  settings millrace.job_queues;
  position int;
  picked tid[] := '{}';
  picked_ids uuid[] := '{}';
  own tid[];
  own_ids uuid[];
  shared tid[];
  lowest uuid;
  highest uuid;
  floors_from int[];
  floors_seq bigint[];
  asked json[] := '{}';
  rings text;
begin
  if changes is not null then perform millrace.lock_around(done_ids || millrace.jobs_changed(changes)); end if;
  if cardinality(done_ids) > 0 then
    unapplied := millrace.complete_jobs(done_ids, done_leases, done_ran_ms, done_results, null, now_at);
  end if;
  if changes is not null then verdicts := millrace.apply_changes(changes, now_at); end if;

  if most > 0 then
    for position in 1..cardinality(queues) loop
      select * into settings from millrace.job_queues q where q.name = queues[position];
      continue when not found;
      if not settings.is_active then
        paused := paused || settings.name;
        continue;
      end if;
      asked := asked || json_build_array(position, settings.id, settings.lower_lane_share, settings.lane_high_max, settings.lane_normal_max,
        settings.rate is not null, settings.per_key_rate is not null);
      continue when cardinality(picked) >= most;
      floors_from := null;
      if floor_queues is not null then
        select array_agg(f.priority order by f.priority), array_agg(f.seq order by f.priority) into floors_from, floors_seq
        from unnest(floor_queues, floor_priorities, floor_seqs) as f(queue, priority, seq) where f.queue = position;
      end if;
      if floors_from is not null then
        select p.places, p.ids into own, own_ids
        from millrace.pick_rows(settings.id, 0, 32767, most - cardinality(picked), floors_from, floors_seq) p;
        -- Short of jobs above the floors: look at everything.
        if cardinality(picked) + cardinality(own) < most then floors_from := null; end if;
      end if;
      if floors_from is null then
        select coalesce(array_agg(p.place), '{}'), coalesce(array_agg(p.id), '{}') into own, own_ids from (
          select r.ctid as place, r.id from millrace.ready r where r.queue_id = settings.id
          order by r.queue_id, r.priority, r.seq limit most - cardinality(picked) for update skip locked) p;
      end if;
      if settings.lower_lane_share > 0 and cardinality(own) > 0 and cardinality(picked) + cardinality(own) >= most then
        shared := millrace.share_lanes(settings, own, normal_passed[position], low_passed[position], floors_from, floors_seq);
        if shared <> own then
          own := shared;
          -- In any order: they are looked up as a set.
          own_ids := array(select r.id from millrace.ready r where r.ctid = any(shared));
        end if;
      end if;
      picked := picked || own;
      picked_ids := picked_ids || own_ids;
    end loop;
  end if;

  if cardinality(picked) > 0 then
    update millrace.worker_claims c set last_claim_no = claim_no from millrace.workers w
    where w.id = for_worker and c.worker_no = w.no and not c.is_dead and c.last_claim_no < claim_no
    returning c.worker_no into worker_number;
    if not found then picked := '{}'; end if;
    -- No lease that another server may have given out before, once leases travel as tokens.
    perform millrace.renew_server() from millrace.ledger l where l.id = 1 and l.pg_identity <> '' and l.pg_identity <> millrace.pg_identity();
  end if;
  if cardinality(picked) = 0 and most > 0 then
    select case when c.is_dead then 'worker-dead' when c.last_claim_no >= claim_no then 'superseded' end into refused
    from millrace.workers w join millrace.worker_claims c on c.worker_no = w.no where w.id = for_worker;
    if not found then refused := 'worker-dead'; end if;
  end if;

  rings := millrace.rung();
  if cardinality(picked) > 0 or cardinality(paused) > 0 or unapplied is not null or verdicts is not null or refused is not null or rings is not null then
    facts := json_strip_nulls(json_build_object('unapplied', unapplied, 'verdicts', verdicts, 'refused', refused, 'rings', rings,
      'queues', case when cardinality(picked) > 0 then asked end, 'paused', case when cardinality(paused) > 0 then paused end))::text;
  end if;
  return next;
  if cardinality(picked) = 0 then return; end if;

  -- One walk over the index for all bodies, joined by a hash: 12.9 µs a job instead of 14.1 one by one (ADR 004). Planned beside
  -- empty partitions, any other join would read all bodies for ever after. The bounds keep it to the partitions that have some. For
  -- this query alone: the header of the function names both settings, so they end with it.
  lowest := (select i.id from unnest(picked_ids) as i(id) order by i.id limit 1);
  highest := (select i.id from unnest(picked_ids) as i(id) order by i.id desc limit 1);
  set local enable_nestloop = off;
  set local enable_hashjoin = on;
  return query
  with taken as (
    delete from millrace.ready r where r.ctid = any(picked)
    returning r.seq, r.run_at, r.ready_at, r.id, r.queue_id, r.priority, r.attempts, r.crashes, r.hooks, nextval('millrace.lease_seq') as lease
  ), started as (
    insert into millrace.running (id, lease, started_at, seq, run_at, ready_at, visible_until, queue_id, worker_no, priority, attempts, crashes, hooks)
    select n.id, n.lease, now_at, n.seq, n.run_at, n.ready_at,
           case when lease_ms is null then 'infinity'::timestamptz else millrace.after_ms(now_at, lease_ms) end,
           n.queue_id, worker_number, n.priority, n.attempts, n.crashes,
           case when n.hooks & 32 <> 0 and millrace.frees_at_start(n.id) then n.hooks & ~32 else n.hooks end
    from taken n
  )
  select concat_ws(' ', n.id, n.lease, n.queue_id, n.seq, n.priority + n.attempts * 65536::bigint + n.crashes * 4294967296, b.max_attempts, b.timeout_ms,
           round(date_part('epoch', b.enqueued_at) * 1000)::bigint,
           case when n.run_at <> b.enqueued_at then round(date_part('epoch', n.run_at) * 1000)::bigint end),
         b.name, b.payload,
         case when n.hooks & (16 + 512 + 1024) <> 0 or b.tags is not null or b.meta is not null then
           json_build_object('tags', b.tags, 'meta', b.meta::text, 'batch', b.batch_id, 'group', b.group_key, 'limitKey', b.limit_key,
             'parents', case when n.hooks & 1024 <> 0 then (select json_agg(p.parent order by p.position) from millrace.job_parents p where p.child = n.id) end)::text
         end
  from taken n join millrace.job_bodies b on b.id = n.id where b.id = any(picked_ids) and b.id >= lowest and b.id <= highest;
end $$;

-- An until-started key is given back at the claim; answers whether it was one.
create or replace function millrace.frees_at_start(of_job uuid) returns boolean language plpgsql as $$
declare
  body record;
begin
  select b.queue_id, b.unique_key, b.unique_mode into body from millrace.job_bodies b where b.id = of_job;
  if body.unique_mode <> 1 then return false; end if;
  delete from millrace.unique_keys where queue_id = body.queue_id and key = body.unique_key and holder = of_job;
  return true;
end $$;
