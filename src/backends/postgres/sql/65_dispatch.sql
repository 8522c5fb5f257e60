-- Epochs of the hybrid: which queues send tokens through Redis, and on which server all of it is true. The rules are
-- src/backends/hybrid; here guards are compared. A lease is minted by the statement that puts its row into `running`.

-- The identifier of the system is read from a file (14 µs), once per session, which cannot outlive its server.
create or replace function millrace.learn_system() returns text language plpgsql volatile as $$
begin
  return set_config('millrace_server.system', (select c.system_identifier::text from pg_control_system() as c), false);
end $$;

-- System and WAL timeline: another after a failover, a restore or a copy. Both are in memory: 0.4 µs.
create or replace function millrace.pg_identity() returns text language sql volatile as $$
  select coalesce(nullif(current_setting('millrace_server.system', true), ''), millrace.learn_system())
    || '.' || substr(pg_walfile_name(pg_current_wal_insert_lsn()), 1, 8)
$$;

-- May rows of this queue, which is not paused, be minted under this tag? What is read here may be old at the commit: then
-- the tag is old too, and Redis refuses the tokens.
create or replace function millrace.may_mint(of_queue int, tag text) returns boolean language plpgsql volatile as $$
begin
  perform 1 from millrace.dispatch d where d.queue_id = of_queue
    and d.mode = 'token' and d.epoch || '.' || d.birth = tag and d.pg_identity = millrace.pg_identity();
  return found;
end $$;

-- The rows of `dispatch` of these queues (null: of all that have one) with the counter of epochs at that moment: whoever has
-- seen them has seen every row up to it. In the order that ledger-rows.ts reads them.
create or replace function millrace.dispatch_news(of_queues int[]) returns json language plpgsql volatile
set plan_cache_mode = force_generic_plan as $$
begin
  return (
    select json_build_object('epoch', l.counter, 'changed', l.pg_identity <> millrace.pg_identity(), 'rows', coalesce((
      select json_agg(json_build_array(q.name, coalesce(d.mode, 'ledger'), coalesce(d.epoch, 0), d.birth, coalesce(d.redis_id, ''),
        coalesce(d.first_lease, 0), not q.is_active, q.version, q.lane_high_max, q.lane_normal_max, q.lower_lane_share, q.default_priority))
      from millrace.job_queues q left join millrace.dispatch d on d.queue_id = q.id
      where case when of_queues is null then d.queue_id is not null else q.id = any(of_queues) end), '[]'::json))
    from millrace.ledger l where l.id = 1);
end $$;

-- The same by name, for whoever may ask for nothing else.
create or replace function millrace.dispatch_of(names text[]) returns json language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  return millrace.dispatch_news(case when names is not null then array(select q.id from millrace.job_queues q where q.name = any(names)) end);
end $$;

-- Epochs are counted under the lock of the one row of `ledger`, so they commit in order. Only queues whose epoch is still
-- the expected one; with `unless_healthy` not those that a living worker uses without trouble.
create or replace function millrace.flip_queues(
  names text[], expected bigint[], to_mode text, to_redis text, unless_healthy boolean, above bigint, out flipped json, out rings text
) language plpgsql set lock_timeout = '5s' as $$
declare
  next_epoch bigint;
  server text;
  lease bigint;
  asked record;
  ids int[] := '{}';
begin
  perform millrace.make_queues(names, millrace.now_at());
  insert into millrace.ledger (id, counter, pg_identity) values (1, 0, '') on conflict do nothing;
  select greatest(l.counter, above) + 1, l.pg_identity into next_epoch, server from millrace.ledger l where l.id = 1 for update;
  for asked in
    select q.id, q.name, coalesce(d.epoch, 0) as epoch
    from unnest(names, expected) as a(name, epoch) join millrace.job_queues q on q.name = a.name
    left join millrace.dispatch d on d.queue_id = q.id where coalesce(d.epoch, 0) = a.epoch order by q.id
  loop
    continue when unless_healthy and asked.epoch > 0 and exists (
      select 1 from millrace.workers w where w.is_alive and w.epoch_seen >= asked.epoch and asked.name = any(w.queues)
        and asked.name <> all(coalesce(w.failing, '{}')));
    lease := coalesce(lease, nextval('millrace.lease_seq'));
    insert into millrace.dispatch as d (queue_id, mode, epoch, birth, redis_id, first_lease, pg_identity)
    values (asked.id, to_mode, next_epoch, null, to_redis, lease, server)
    on conflict (queue_id) do update set mode = excluded.mode, epoch = excluded.epoch, birth = null, redis_id = excluded.redis_id,
      first_lease = excluded.first_lease, pg_identity = excluded.pg_identity;
    ids := ids || asked.id;
  end loop;
  if cardinality(ids) > 0 then update millrace.ledger set counter = next_epoch where id = 1; end if;
  flipped := millrace.dispatch_news(ids);
  rings := millrace.rung();
end $$;

create or replace function millrace.bear_epoch(of_queue text, of_epoch bigint, at_birth text) returns boolean language plpgsql as $$
begin
  update millrace.dispatch d set birth = at_birth
  from millrace.job_queues q where q.name = of_queue and d.queue_id = q.id and d.epoch = of_epoch and d.birth is null;
  return found;
end $$;

-- Another server than the known one may have forgotten leases and epochs that it gave out: from here on numbers are used
-- that it cannot have given, and no token of before is worth anything. A schema that never knew a server has nothing to forget.
-- With the rights of the owner: nobody else may set a sequence.
create or replace function millrace.renew_server() returns boolean language plpgsql
security definer set search_path = pg_catalog, pg_temp set lock_timeout = '5s' as $$
declare
  known millrace.ledger;
  server text := millrace.pg_identity();
begin
  insert into millrace.ledger (id, counter, pg_identity) values (1, 0, '') on conflict do nothing;
  select * into known from millrace.ledger l where l.id = 1 for update;
  if known.pg_identity = server then return false; end if;
  if known.pg_identity <> '' then
    known.counter := known.counter + 1048576 + floor(random() * 1048576)::bigint;
    perform setval('millrace.lease_seq', (select s.last_value from millrace.lease_seq s) + 4294967296 + floor(random() * 274877906944)::bigint);
  end if;
  update millrace.ledger set pg_identity = server, counter = known.counter + 1 where id = 1;
  update millrace.dispatch
  set mode = 'ledger', epoch = known.counter + 1, birth = null, first_lease = nextval('millrace.lease_seq'), pg_identity = server;
  return true;
end $$;
