-- Insert: all or none. `insert_plain` is the path of jobs that no gate, key or parent concerns, set by set, `insert_one`
-- the same for a single one; `insert_jobs` takes anything, job by job, as src/backends/memory/insert.ts does. Batches:
-- src/core/batch.ts. All run with the rights of the owner: a producer needs none on the tables (docs/roles.md).

create or replace function millrace.make_queues(names text[], now_at timestamptz) returns void language plpgsql as $$
begin
  if exists (select 1 from unnest(names) as n(name) where not exists (select 1 from millrace.job_queues q where q.name = n.name)) then
    insert into millrace.job_queues (name, created_at) select distinct n.name, now_at from unnest(names) as n(name) order by n.name
    on conflict (name) do nothing;
    perform millrace.ring('config');
  end if;
end $$;

-- src/core/batch.ts mayJoin. Null: it may; else the code of the refusal. Locks the batch.
create or replace function millrace.refused_by_batch(batch uuid, inside boolean) returns text language plpgsql as $$
declare
  found_batch millrace.batches;
begin
  select * into found_batch from millrace.batches where id = batch for update;
  if not found then return 'BATCH_NOT_FOUND'; end if;
  if found_batch.is_cancelled or found_batch.finished_at is not null then return 'BATCH_CLOSED'; end if;
  if found_batch.is_sealed and not (inside and found_batch.pending > 0) then return 'BATCH_CLOSED'; end if;
  return null;
end $$;

-- Parallel arrays, one entry per job; `queue_index` counts from 1 into `queue_names`. Answers the ids that were
-- there already, or a refusal. `gated` says that a queue has limits: the caller then takes the other path.
create or replace function millrace.insert_plain(
  ids uuid[], queue_names text[], queue_index int[], names text[], payloads text[], timeouts int[],
  priorities int[], max_attempts int[], delays bigint[], run_ats bigint[], metas text[], tag_lists text[],
  batch uuid, inside boolean,
  -- Told to all processes with the commit; the caller sends one only when nothing was said for a while.
  hint text default null,
  -- Of the hybrid, by queue: the tag under which jobs that would be ready are minted instead (65_dispatch.sql); null: none.
  offers text[] default null,
  out gated boolean, out refusal text, out known uuid[], out rings text,
  -- What was minted, in the order of the call, and under which conditions; ids only where not all were.
  out leases bigint[], out minted_ids uuid[], out now_ms bigint, out default_priorities int[], out default_attempts int[], out news text
) language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  now_at timestamptz := millrace.now_at();
  entry bigint;
  queue_ids int[];
  active boolean[];
  minting int[] := '{}';
  inserted uuid[];
  hook int := case when batch is null then 0 else 16 end;
begin
  if batch is not null then
    -- The batch first: a repetition that waited for the first copy of its call must see what that one has written.
    refusal := millrace.refused_by_batch(batch, inside);
    if refusal is not null then
      if not (select bool_and(exists (select 1 from millrace.job_bodies b where b.id = i.id)) from unnest(ids) as i(id)) then
        gated := false;
        return;
      end if;
      refusal := null;
    end if;
  end if;
  for try in 1..2 loop
    select array_agg(q.id order by n.position), array_agg(q.default_priority order by n.position),
           array_agg(q.default_attempts order by n.position), bool_or(q.is_limited), array_agg(q.is_active order by n.position)
    into queue_ids, default_priorities, default_attempts, gated, active
    from unnest(queue_names) with ordinality as n(name, position) join millrace.job_queues q on q.name = n.name;
    exit when cardinality(queue_ids) = cardinality(queue_names);
    perform millrace.make_queues(queue_names, now_at);
  end loop;
  if offers is not null then
    minting := array(
      select o.id from unnest(queue_ids, offers, active) as o(id, tag, is_active)
      where o.tag is not null and o.is_active and not gated and millrace.may_mint(o.id, o.tag));
    if cardinality(minting) < cardinality(queue_ids) then
      news := millrace.dispatch_news(array(select q.id from unnest(queue_ids) as q(id) where q.id <> all(minting)));
    end if;
    now_ms := millrace.ms_of(now_at);
  end if;
  if gated then return; end if;
  gated := false;
  entry := nextval('millrace.entry_seq');
  if cardinality(minting) = cardinality(queue_ids) and batch is null and delays is null and run_ats is null then
    -- All of them are new, as nearly always, and become tokens: without asking row by row whether one is there already it
    -- takes 8.2 µs a job (ADR 006) instead of 11.6. A subtransaction, so never inside a transaction of a caller.
    begin
      with fresh as (
        insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload, meta, tags)
        select j.id, now_at, now_at, queue_ids[j.queue], j.timeout, coalesce(j.attempts, default_attempts[j.queue]),
               coalesce(j.priority, default_priorities[j.queue]), j.name, j.payload::json, j.meta::json, j.tags::text[]
        from unnest(ids, queue_index, names, payloads, timeouts, priorities, max_attempts, metas, tag_lists)
          as j(id, queue, name, payload, timeout, priority, attempts, meta, tags)
      ), minted as (
        insert into millrace.running (id, lease, started_at, seq, run_at, ready_at, visible_until, queue_id, worker_no, priority, attempts, crashes, hooks)
        select j.id, nextval('millrace.lease_seq'), now_at, entry + j.position - 1, now_at, now_at, 'infinity', queue_ids[j.queue], 0,
               coalesce(j.priority, default_priorities[j.queue]), 0, 0, 0
        from unnest(ids, queue_index, priorities) with ordinality as j(id, queue, priority, position)
        returning seq, lease
      )
      -- By number: in which order rows are returned is nowhere promised.
      select array_agg(m.lease order by m.seq) into leases from minted m;
      if hint is not null then perform pg_notify('millrace:' || :'schema', hint); end if;
      rings := millrace.rung();
      return;
    exception when unique_violation then
      leases := null;
    end;
  end if;
  with fresh as (
    insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload, meta, tags, batch_id)
    select j.id, now_at,
           greatest(coalesce(millrace.at_ms(j.run_at), now_at), millrace.after_ms(now_at, coalesce(j.delay, 0))),
           queue_ids[j.queue], j.timeout, coalesce(j.attempts, default_attempts[j.queue]),
           coalesce(j.priority, default_priorities[j.queue]), j.name, j.payload::json, j.meta::json, j.tags::text[], batch
    from unnest(ids, queue_index, names, payloads, timeouts, priorities, max_attempts, delays, run_ats, metas, tag_lists)
      as j(id, queue, name, payload, timeout, priority, attempts, delay, run_at, meta, tags)
    on conflict (id) do nothing
    returning id, queue_id, priority, first_run_at
  ), numbered as (
    -- The order of the call is the order of entry.
    select f.*, entry + row_number() over () - 1 as seq from fresh f
  ), now_ready as (
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
    select n.seq, n.first_run_at, now_at, n.id, n.queue_id, n.priority, 0, 0, hook from numbered n
    where n.first_run_at <= now_at and n.queue_id <> all(minting)
  ), minted as (
    insert into millrace.running (id, lease, started_at, seq, run_at, ready_at, visible_until, queue_id, worker_no, priority, attempts, crashes, hooks)
    select n.id, nextval('millrace.lease_seq'), now_at, n.seq, n.first_run_at, now_at, 'infinity', n.queue_id, 0, n.priority, 0, 0, hook
    from numbered n where n.first_run_at <= now_at and n.queue_id = any(minting)
    returning id, seq, lease
  ), later as (
    insert into millrace.scheduled (run_at, id, queue_id, waits_for, priority, attempts, crashes, hooks)
    select n.first_run_at, n.id, n.queue_id, 1, n.priority, 0, 0, hook from numbered n where n.first_run_at > now_at
    returning 1
  )
  select array_agg(n.id), case when exists (select 1 from later) then 'scheduled' || chr(10) end,
         (select array_agg(m.lease order by m.seq) from minted m), (select array_agg(m.id order by m.seq) from minted m)
  into inserted, rings, leases, minted_ids from numbered n;
  if cardinality(minted_ids) = cardinality(ids) then minted_ids := null; end if;
  if coalesce(cardinality(inserted), 0) < cardinality(ids) then
    known := array(select i.id from unnest(ids) as i(id) where i.id <> all(coalesce(inserted, '{}')));
  end if;
  if batch is not null and inserted is not null then
    update millrace.batches set total = total + cardinality(inserted), pending = pending + cardinality(inserted), kept = kept + cardinality(inserted)
    where id = batch;
  end if;
  if hint is not null then perform pg_notify('millrace:' || :'schema', hint); end if;
  rings := nullif(coalesce(rings, '') || coalesce(millrace.rung(), ''), '');
end $$;

-- As insert_plain for one job outside a batch: what a single enqueue waits for, at half the cost.
create or replace function millrace.insert_one(
  of_id uuid, queue_name text, of_name text, of_payload text, timeout int, of_priority int, attempts int, delay bigint, at_time bigint,
  of_meta text, of_tags text[], hint text, offer text default null, asks_news boolean default false,
  out gated boolean, out refusal text, out known uuid[], out rings text,
  out leases bigint[], out minted_ids uuid[], out now_ms bigint, out default_priorities int[], out default_attempts int[], out news text
) language plpgsql security definer set search_path = pg_catalog, pg_temp
set enable_seqscan = off set jit = off set plan_cache_mode = force_generic_plan
as $$
declare
  now_at timestamptz := millrace.now_at();
  run_at timestamptz := now_at;
  queue record;
  minting boolean := false;
begin
  for try in 1..2 loop
    select q.id, coalesce(of_priority, q.default_priority) as priority, coalesce(attempts, q.default_attempts) as attempts, q.is_limited, q.is_active
    into queue from millrace.job_queues q where q.name = queue_name;
    exit when found;
    perform millrace.make_queues(array[queue_name], now_at);
  end loop;
  gated := queue.is_limited;
  if asks_news then
    minting := offer is not null and queue.is_active and not gated and millrace.may_mint(queue.id, offer);
    if not minting then news := millrace.dispatch_news(array[queue.id]); end if;
    now_ms := millrace.ms_of(now_at);
    default_priorities := array[queue.priority];
    default_attempts := array[queue.attempts];
  end if;
  if gated then return; end if;
  if at_time is not null or delay is not null then
    run_at := greatest(coalesce(millrace.at_ms(at_time), now_at), millrace.after_ms(now_at, coalesce(delay, 0)));
  end if;
  insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload, meta, tags)
  values (of_id, now_at, run_at, queue.id, timeout, queue.attempts, queue.priority, of_name, of_payload::json, of_meta::json, of_tags)
  on conflict (id) do nothing;
  if not found then
    known := array[of_id];
  elsif run_at <= now_at and minting then
    leases := array[nextval('millrace.lease_seq')];
    insert into millrace.running (id, lease, started_at, seq, run_at, ready_at, visible_until, queue_id, worker_no, priority, attempts, crashes, hooks)
    values (of_id, leases[1], now_at, nextval('millrace.entry_seq'), run_at, now_at, 'infinity', queue.id, 0, queue.priority, 0, 0, 0);
  elsif run_at <= now_at then
    insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
    values (nextval('millrace.entry_seq'), run_at, now_at, of_id, queue.id, queue.priority, 0, 0, 0);
  else
    insert into millrace.scheduled (run_at, id, queue_id, waits_for, priority, attempts, crashes, hooks)
    values (run_at, of_id, queue.id, 1, queue.priority, 0, 0, 0);
    perform millrace.ring('scheduled');
  end if;
  if hint is not null then perform pg_notify('millrace:' || :'schema', hint); end if;
  rings := millrace.rung();
end $$;

-- A newer request with the unique key of a job that waits: the holder takes its content and, with debounce, its
-- time. False: it has started or ended. Refines src/backends/memory/replace.ts.
create or replace function millrace.replace_holder(held uuid, request json, on_duplicate int, now_at timestamptz) returns boolean language plpgsql as $$
declare
  job millrace.job_place := millrace.lock_job(held);
  queue millrace.job_queues;
  new_priority int;
begin
  if job.id is null or job.status not in ('queued', 'scheduled', 'blocked') then return false; end if;
  -- Between looking and locking the key may have changed hands.
  perform 1 from millrace.unique_keys where queue_id = job.queue_id and key = request->'unique'->>'key' and holder = held;
  if not found then return false; end if;
  select * into queue from millrace.job_queues where id = job.queue_id;
  new_priority := coalesce((request->>'priority')::int, queue.default_priority);
  update millrace.job_bodies set
    name = request->>'name', payload = (request->>'payload')::json, timeout_ms = (request->>'timeout_ms')::int,
    priority = new_priority, meta = (request->>'meta')::json,
    max_attempts = greatest(coalesce((request->>'max_attempts')::int, queue.default_attempts), job.attempts + 1),
    tags = case when request->'tags' is null then null else array(select json_array_elements_text(request->'tags')) end
  where id = held;
  insert into millrace.job_states (id, updated_at, last_edge) values (held, now_at, 'replace')
  on conflict (id) do update set updated_at = now_at, last_edge = 'replace', last_edge_lease = 0;
  if on_duplicate = 3 then
    job.run_at := greatest(coalesce(millrace.at_ms((request->>'run_at_ms')::float8), now_at),
                           millrace.after_ms(now_at, coalesce((request->>'delay_ms')::bigint, 0)));
  elsif new_priority = job.priority then
    return true;
  end if;
  job.priority := new_priority;
  if job.run_at > now_at and job.status <> 'scheduled' and coalesce(job.gate, 0) <> 1 then
    perform millrace.leave_place(job);
    job.waits_for := null;
    job := millrace.release_slots(job, now_at);
    perform millrace.admit(job, now_at);
    return true;
  end if;
  case job.status
    when 'queued' then update millrace.ready set priority = job.priority, run_at = job.run_at where id = held;
    when 'blocked' then update millrace.blocked set priority = job.priority, run_at = job.run_at where id = held;
    else
      update millrace.scheduled set priority = job.priority, run_at = job.run_at,
        waits_for = case when on_duplicate = 3 then 1 else waits_for end where id = held;
      perform millrace.ring('scheduled');
  end case;
  return true;
end $$;

-- Who holds the key now; null: the new job does, from here on.
create or replace function millrace.hold_key(for_queue int, for_key text, by_mode int, window_ms bigint, by_job uuid, now_at timestamptz)
returns uuid language plpgsql as $$
declare
  ends timestamptz := case by_mode when 3 then millrace.after_ms(now_at, window_ms) else 'infinity' end;
  held millrace.unique_keys;
begin
  for try in 1..100 loop
    insert into millrace.unique_keys (queue_id, key, mode, holder, until) values (for_queue, for_key, by_mode, by_job, ends)
    on conflict (queue_id, key) do nothing;
    if found then return null; end if;
    select * into held from millrace.unique_keys where queue_id = for_queue and key = for_key;
    continue when not found;
    if held.until > now_at then return held.holder; end if;
    update millrace.unique_keys set mode = by_mode, holder = by_job, until = ends
    where queue_id = for_queue and key = for_key and holder = held.holder and until = held.until;
    if found then return null; end if;
  end loop;
  raise exception 'unique key % changes hands too fast', for_key using errcode = '40001';
end $$;

create or replace function millrace.insert_jobs(jobs json, deferred boolean default false) returns json language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
declare
  refusal json;
begin
  if not exists (select 1 from json_array_elements(jobs) as j(job) where j.job->'parents' is not null) then
    return millrace.insert_each(jobs, deferred);
  end if;
  -- A circle is only known when everything is written: then all of it is taken back.
  begin
    return millrace.insert_each(jobs, deferred);
  exception when sqlstate 'MR001' then
    get stacked diagnostics refusal = pg_exception_detail;
    perform millrace.rung();
    return json_build_object('refusal', json_build_object('code', 'DEPENDENCY_CYCLE', 'nodes', refusal));
  end;
end $$;

create or replace function millrace.insert_each(jobs json, deferred boolean) returns json language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  request json;
  queue millrace.job_queues;
  job millrace.job_place;
  parent millrace.job_place;
  holder uuid;
  refused text;
  outcome text;
  call_ids uuid[] := array(select (j.job->>'id')::uuid from json_array_elements(jobs) as j(job));
  results json[] := '{}';
  duplicates uuid[] := '{}';
  holders uuid[] := '{}';
  written millrace.job_place[] := '{}';
  written_ids uuid[] := '{}';
  dependency record;
  at_index int;
begin
  perform 1 from millrace.batches where id in (select (j.job->>'batch')::uuid from json_array_elements(jobs) as j(job)) order by id for update;

  -- Everything that could refuse, before anything is written.
  for request in select j.job from json_array_elements(jobs) with ordinality as j(job, position)
                 where j.job->>'batch' is not null or j.job->'parents' is not null order by j.position loop
    perform 1 from millrace.job_bodies where id = (request->>'id')::uuid;
    continue when found;
    if request->>'batch' is not null then
      refused := millrace.refused_by_batch((request->>'batch')::uuid, coalesce((request->>'inside')::boolean, false));
      if refused is not null then
        return json_build_object('refusal', json_build_object('code', refused, 'jobId', request->>'id', 'batch', request->>'batch'));
      end if;
    end if;
    for dependency in select (p.parent->>0)::uuid as parent from json_array_elements(request->'parents') with ordinality as p(parent, position) order by p.position loop
      continue when dependency.parent = any(call_ids);
      perform 1 from millrace.job_bodies where id = dependency.parent;
      if not found then
        return json_build_object('refusal', json_build_object('code', 'DEPENDENCY_NOT_FOUND', 'jobId', request->>'id', 'parent', dependency.parent));
      end if;
    end loop;
  end loop;

  perform millrace.make_queues(array(select distinct j.job->>'queue' from json_array_elements(jobs) as j(job)), now_at);
  if not deferred then
    perform millrace.lock_gates(array(
      select distinct q.id from json_array_elements(jobs) as j(job) join millrace.job_queues q on q.name = j.job->>'queue'
      where q.is_limited or j.job->>'group' is not null));
  end if;

  -- Bodies and keys, in the order of the call.
  for request in select j.job from json_array_elements(jobs) with ordinality as j(job, position) order by j.position loop
    select * into queue from millrace.job_queues where name = request->>'queue';
    job := null;
    job.id := (request->>'id')::uuid;
    perform 1 from millrace.job_bodies where id = job.id;
    if found then
      results := results || json_build_array(job.id, 'already');
      continue;
    end if;
    job.queue_id := queue.id;
    job.group_key := request->>'group';
    job.limit_key := request->>'limit_key';
    job.batch_id := (request->>'batch')::uuid;
    job.hooks := 0;
    if request->'unique' is not null then
      job.unique_key := request->'unique'->>'key';
      job.unique_mode := (request->'unique'->>'mode')::smallint;
      holder := millrace.hold_key(queue.id, job.unique_key, job.unique_mode, (request->'unique'->>'window_ms')::bigint, job.id, now_at);
      if holder = job.id then
        -- The first copy of this very call was committed while we waited for its key.
        results := results || json_build_array(job.id, 'already');
        continue;
      end if;
      if holder is not null then
        outcome := 'duplicate';
        at_index := array_position(written_ids, holder);
        if (request->'unique'->>'on_duplicate')::int <> 1 then
          if at_index is not null then
            -- The holder came with this call and has no place yet.
            update millrace.job_bodies set
              name = request->>'name', payload = (request->>'payload')::json, timeout_ms = (request->>'timeout_ms')::int,
              priority = coalesce((request->>'priority')::int, queue.default_priority), meta = (request->>'meta')::json,
              max_attempts = coalesce((request->>'max_attempts')::int, queue.default_attempts),
              tags = case when request->'tags' is null then null else array(select json_array_elements_text(request->'tags')) end
            where id = holder;
            job := written[at_index];
            job.priority := coalesce((request->>'priority')::int, queue.default_priority);
            if (request->'unique'->>'on_duplicate')::int = 3 then
              job.run_at := greatest(coalesce(millrace.at_ms((request->>'run_at_ms')::float8), now_at),
                                     millrace.after_ms(now_at, coalesce((request->>'delay_ms')::bigint, 0)));
            end if;
            written[at_index] := job;
            outcome := 'replaced';
          elsif millrace.replace_holder(holder, request, (request->'unique'->>'on_duplicate')::int, now_at) then
            outcome := 'replaced';
          end if;
        end if;
        duplicates := duplicates || (request->>'id')::uuid;
        holders := holders || holder;
        results := results || json_build_array(holder, outcome);
        continue;
      end if;
      if job.unique_mode <> 3 then job.hooks := job.hooks | 32; end if;
    end if;
    job.run_at := greatest(coalesce(millrace.at_ms((request->>'run_at_ms')::float8), now_at),
                           millrace.after_ms(now_at, coalesce((request->>'delay_ms')::bigint, 0)));
    job.priority := coalesce((request->>'priority')::int, queue.default_priority);
    insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, unique_mode, name,
      payload, meta, tags, batch_id, group_key, limit_key, unique_key, schedule_name, schedule_tick, replay_of)
    values (job.id, now_at, job.run_at, queue.id, (request->>'timeout_ms')::int,
      coalesce((request->>'max_attempts')::int, queue.default_attempts), job.priority, job.unique_mode, request->>'name',
      (request->>'payload')::json, (request->>'meta')::json,
      case when request->'tags' is null then null else array(select json_array_elements_text(request->'tags')) end,
      job.batch_id, job.group_key, job.limit_key, job.unique_key, request->>'schedule_name',
      millrace.at_ms((request->>'tick_ms')::float8), (request->>'replay_of')::uuid)
    on conflict (id) do nothing;
    if not found then
      results := results || json_build_array(job.id, 'already');
      continue;
    end if;
    if job.batch_id is not null then
      job.hooks := job.hooks | 16;
      update millrace.batches set total = total + 1, pending = pending + 1, kept = kept + 1 where id = job.batch_id;
    end if;
    if job.group_key is not null or job.limit_key is not null then job.hooks := job.hooks | 512; end if;
    job.attempts := 0;
    job.crashes := 0;
    job.pending_parents := 0;
    if request->'parents' is not null then job.hooks := job.hooks | 1024; end if;
    written := written || job;
    written_ids := written_ids || job.id;
    results := results || json_build_array(job.id, 'inserted');
  end loop;

  -- Parents. A duplicate stands for its holder; several that stand for one count once, by the first policy that
  -- is not `continue`.
  for request in select j.job from json_array_elements(jobs) as j(job)
                 where j.job->'parents' is not null and (j.job->>'id')::uuid = any(written_ids) loop
    at_index := array_position(written_ids, (request->>'id')::uuid);
    job := written[at_index];
    -- The same id may come twice in a call: only the first one counts.
    continue when exists (select 1 from millrace.job_parents where child = job.id);
    for dependency in
      select d.parent, min(d.position) as position,
             coalesce((array_agg(d.policy order by d.position) filter (where d.policy <> 3))[1], 3) as policy
      from (
        select coalesce(holders[array_position(duplicates, (p.parent->>0)::uuid)], (p.parent->>0)::uuid) as parent,
               (p.parent->>1)::int as policy, p.position
        from json_array_elements(request->'parents') with ordinality as p(parent, position)
      ) d group by d.parent order by d.parent
    loop
      if dependency.parent = any(written_ids) then
        parent := written[array_position(written_ids, dependency.parent)];
        parent.hooks := parent.hooks | 64;
        written[array_position(written_ids, dependency.parent)] := parent;
        if parent.id = job.id then job.hooks := job.hooks | 64; end if;
        job := millrace.depend_on(job, dependency.parent, dependency.policy, dependency.position::int, null);
      else
        parent := millrace.lock_job(dependency.parent, not deferred);
        -- The holder of a key held for a time may be gone: then there is nobody to wait for.
        if parent.id is null then
          insert into millrace.job_parents (child, parent, position, policy, is_open)
          values (job.id, dependency.parent, dependency.position, dependency.policy, false);
        else
          perform millrace.hook_place(parent, 64);
          job := millrace.depend_on(job, dependency.parent, dependency.policy, dependency.position::int, parent.status);
        end if;
      end if;
    end loop;
    written[at_index] := job;
  end loop;
  perform millrace.refuse_circle(written_ids);

  for at_index in 1..cardinality(written_ids) loop
    job := written[at_index];
    -- Inside somebody's transaction no gate is locked: the promoter takes the job through them after the commit.
    if deferred and job.pending_parents = 0 and job.run_at <= now_at
       and (job.group_key is not null or (select is_limited from millrace.job_queues where id = job.queue_id)) then
      job.waits_for := 1;
      perform millrace.enter_scheduled(job);
    else
      perform millrace.admit(job, now_at);
    end if;
  end loop;
  return json_build_object('results', array_to_json(results), 'rings', millrace.rung());
end $$;

-- One dependency of a job that is about to get its place. `parent_status` null: the parent comes with the same call.
create or replace function millrace.depend_on(inout job millrace.job_place, on_parent uuid, policy int, at_position int, parent_status text)
language plpgsql as $$
declare
  live boolean := parent_status is null or parent_status not in ('completed', 'failed', 'cancelled');
begin
  insert into millrace.job_parents (child, parent, position, policy, is_open) values (job.id, on_parent, at_position, policy, live)
  on conflict (child, parent) do update set is_open = excluded.is_open;
  if live then
    job.pending_parents := job.pending_parents + 1;
  elsif parent_status <> 'completed' and policy <> 3 then
    job.pending_parents := job.pending_parents + 1;
    if job.orphan_of is null then
      job.orphan_of := on_parent;
      job.orphan_status := case parent_status when 'failed' then 2 else 3 end;
      job.orphan_policy := policy;
    end if;
  end if;
end $$;

-- Raises MR001 with the jobs of this call and their parents when some of them wait for each other.
create or replace function millrace.refuse_circle(ids uuid[]) returns void language plpgsql as $$
declare
  open_parents int[];
  free uuid[];
  next_id uuid;
  child_id uuid;
  at_index int;
  left_over int := cardinality(ids);
begin
  -- Parents before their children, as nearly every caller has them: then there is no circle.
  if not exists (
    select 1 from unnest(ids) with ordinality as i(id, position)
    cross join lateral (select o.parent from millrace.job_parents o where o.child = i.id offset 0) p
    where array_position(ids, p.parent) >= i.position) then return; end if;
  open_parents := array(
    select (select count(*) from millrace.job_parents p where p.child = i.id and p.parent = any(ids)) from unnest(ids) with ordinality as i(id, position) order by i.position);
  free := array(select i.id from unnest(ids) with ordinality as i(id, position) where open_parents[i.position] = 0);
  while cardinality(free) > 0 loop
    next_id := free[cardinality(free)];
    free := free[1:cardinality(free) - 1];
    left_over := left_over - 1;
    for child_id in select p.child from millrace.job_parents p where p.parent = next_id and p.is_open loop
      at_index := array_position(ids, child_id);
      continue when at_index is null;
      open_parents[at_index] := open_parents[at_index] - 1;
      if open_parents[at_index] = 0 then free := free || child_id; end if;
    end loop;
  end loop;
  if left_over = 0 then return; end if;
  raise exception 'jobs of this call wait for each other' using errcode = 'MR001', detail = (
    select json_agg(json_build_object('id', i.id, 'parents', (
      select json_agg(p.parent order by p.position) from millrace.job_parents p where p.child = i.id)) order by i.position)
    from unnest(ids) with ordinality as i(id, position))::text;
end $$;
