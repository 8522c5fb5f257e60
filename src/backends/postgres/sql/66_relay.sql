-- Relay: ready rows become unmarked rows of `running`, each with a new lease; what comes back is all that a token needs.
-- The first row of the reply is the head, in its column `facts`; the others are jobs as `cycle` in 60_claim.sql has them.

create or replace function millrace.relay_jobs(of_queue text, tag text, rooms int[], payload_max int)
returns table (facts text, name text, payload json, extra text) language plpgsql
set enable_seqscan = off set enable_bitmapscan = off set enable_nestloop = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan set lock_timeout = '5s'
as $$
#variable_conflict use_column
declare
  now_at timestamptz := millrace.now_at();
  settings millrace.job_queues;
  bounds int[];
  own tid[];
  own_ids uuid[];
  picked_ids uuid[] := '{}';
  picked tid[] := '{}';
  backlog boolean[] := '{}';
  lowest uuid;
  highest uuid;
begin
  select * into settings from millrace.job_queues q where q.name = of_queue;
  if not found or not settings.is_active or not millrace.may_mint(settings.id, tag) then
    facts := json_build_object('refused', millrace.dispatch_news(array[settings.id]))::text;
    return next;
    return;
  end if;
  bounds := array[-1, settings.lane_high_max, settings.lane_normal_max, 32767];
  for lane in 1..3 loop
    -- One more than there is room for: it says whether rows remain.
    select array_agg(p.place), array_agg(p.id) into own, own_ids from (
      select r.ctid as place, r.id from millrace.ready r where r.queue_id = settings.id and r.priority > bounds[lane] and r.priority <= bounds[lane + 1]
      order by r.queue_id, r.priority, r.seq limit rooms[lane] + 1 for update skip locked) p;
    backlog := backlog || (coalesce(cardinality(own), 0) > rooms[lane]);
    picked := picked || own[1:rooms[lane]];
    picked_ids := picked_ids || own_ids[1:rooms[lane]];
  end loop;
  facts := json_build_object('backlog', backlog, 'queues', json_build_array(json_build_array(1, settings.id, settings.lower_lane_share,
    settings.lane_high_max, settings.lane_normal_max, settings.rate is not null, settings.per_key_rate is not null)))::text;
  return next;
  if cardinality(picked) = 0 then return; end if;

  lowest := (select i.id from unnest(picked_ids) as i(id) order by i.id limit 1);
  highest := (select i.id from unnest(picked_ids) as i(id) order by i.id desc limit 1);
  return query
  with taken as (
    delete from millrace.ready r where r.ctid = any(picked)
    returning r.seq, r.run_at, r.ready_at, r.id, r.queue_id, r.priority, r.attempts, r.crashes, r.hooks, nextval('millrace.lease_seq') as lease
  ), minted as (
    insert into millrace.running (id, lease, started_at, seq, run_at, ready_at, visible_until, queue_id, worker_no, priority, attempts, crashes, hooks)
    select n.id, n.lease, now_at, n.seq, n.run_at, n.ready_at, 'infinity'::timestamptz, n.queue_id, 0, n.priority, n.attempts, n.crashes,
           case when n.hooks & 32 <> 0 and millrace.frees_at_start(n.id) then n.hooks & ~32 else n.hooks end
    from taken n
  )
  -- Words as in 60_claim.sql.
  select concat_ws(' ', n.id, n.lease, n.queue_id, n.seq, n.priority + n.attempts * 65536::bigint + n.crashes * 4294967296, b.max_attempts, b.timeout_ms,
           round(date_part('epoch', b.enqueued_at) * 1000)::bigint,
           case when n.run_at <> b.enqueued_at then round(date_part('epoch', n.run_at) * 1000)::bigint end),
         -- One that is stored as it is needs no counting, which takes longer than reading it.
         b.name, case when (pg_column_size(b.payload) <= payload_max and pg_column_compression(b.payload) is null) or length(b.payload::text) <= payload_max
           then b.payload end,
         case when n.hooks & (16 + 512 + 1024) <> 0 or b.tags is not null or b.meta is not null then
           json_build_object('tags', b.tags, 'meta', b.meta::text, 'batch', b.batch_id, 'group', b.group_key, 'limitKey', b.limit_key,
             'parents', case when n.hooks & 1024 <> 0 then (select json_agg(p.parent order by p.position) from millrace.job_parents p where p.child = n.id) end)::text
         end
  -- One walk over the index for all of them, in the partitions between the bounds: 8.4 µs a job (ADR 006) instead of 10.4 one by one.
  from taken n join millrace.job_bodies b on b.id = n.id where b.id = any(picked_ids) and b.id >= lowest and b.id <= highest;
end $$;

create or replace function millrace.payloads_of(ids uuid[]) returns table (id uuid, payload json) language plpgsql stable
set enable_seqscan = off set enable_hashjoin = off set enable_mergejoin = off set jit = off set plan_cache_mode = force_generic_plan
as $$
begin
  return query select i.id, b.payload from unnest(ids) as i(id)
    cross join lateral (select o.payload from millrace.job_bodies o where o.id = i.id offset 0) b;
end $$;
