-- Queue records: creating and changing them. The JSON has the names of the columns; absent fields stay.

create or replace function millrace.ensure_queue(settings json) returns boolean language plpgsql
security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into millrace.job_queues (name, created_at) values (settings->>'name', millrace.now_at()) on conflict (name) do nothing;
  if not found then return false; end if;
  perform millrace.change_queue(settings->>'name', settings, 0);
  return true;
end $$;

create or replace function millrace.change_queue(of_name text, change json, step int) returns void language plpgsql as $$
begin
  update millrace.job_queues q set
    version = q.version + step,
    default_priority = coalesce((change->>'default_priority')::int, q.default_priority),
    default_attempts = coalesce((change->>'default_attempts')::int, q.default_attempts),
    is_active = coalesce((change->>'is_active')::boolean, q.is_active),
    lower_lane_share = coalesce((change->>'lower_lane_share')::int, q.lower_lane_share),
    lane_high_max = coalesce((change->>'lane_high_max')::int, q.lane_high_max),
    lane_normal_max = coalesce((change->>'lane_normal_max')::int, q.lane_normal_max),
    retry = case when change->'retry' is null then q.retry else nullif(change->>'retry', 'null')::json end,
    concurrency = case when change->'limits' is null then q.concurrency else (change->>'concurrency')::int end,
    per_key_concurrency = case when change->'limits' is null then q.per_key_concurrency else (change->>'per_key_concurrency')::int end,
    rate = case when change->'limits' is null then q.rate else (change->>'rate')::json end,
    per_key_rate = case when change->'limits' is null then q.per_key_rate else (change->>'per_key_rate')::json end,
    rate_interval_ms = case when change->'limits' is null then q.rate_interval_ms else (change->>'rate_interval_ms')::float8 end,
    per_key_rate_interval_ms = case when change->'limits' is null then q.per_key_rate_interval_ms
                                    else (change->>'per_key_rate_interval_ms')::float8 end,
    retain_completed_ms = case when change->'retain_completed_ms' is null then q.retain_completed_ms else (change->>'retain_completed_ms')::bigint end,
    retain_failed_ms = case when change->'retain_failed_ms' is null then q.retain_failed_ms else (change->>'retain_failed_ms')::bigint end,
    retain_cancelled_ms = case when change->'retain_cancelled_ms' is null then q.retain_cancelled_ms else (change->>'retain_cancelled_ms')::bigint end
  where q.name = of_name;
end $$;

-- Creates or changes; with an expected version (0: none) only if it is still that one.
create or replace function millrace.configure_queue(of_name text, change json, expected int, out changed boolean, out rings text) language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  current_version int;
begin
  changed := false;
  insert into millrace.job_queues (name, created_at, version) select of_name, now_at, 0
  where coalesce(expected, 0) = 0 on conflict (name) do nothing;
  select version into current_version from millrace.job_queues where name = of_name for update;
  if not found or (expected is not null and expected <> current_version) then return; end if;
  perform millrace.change_queue(of_name, change, 1);
  if change->'limits' is not null then
    update millrace.job_queues set relimit_until = millrace.after_ms(now_at, 60000) where name = of_name;
    perform millrace.apply_limits((change->>'most')::int, now_at);
  end if;
  changed := true;
  rings := millrace.rung();
end $$;

-- Whoever pauses a queue by hand changes its version too: it is how that news travels, and an older one never overtakes it.
create or replace function millrace.number_pause() returns trigger language plpgsql as $$
begin
  new.version := old.version + 1;
  return new;
end $$;

create or replace trigger number_pause before update on millrace.job_queues for each row
when (old.is_active is distinct from new.is_active and old.version = new.version) execute function millrace.number_pause();

-- No job without a queue. A foreign key would ask for each inserted job; queues are deleted by hand, if at all.
create or replace function millrace.keep_queue_of_jobs() returns trigger language plpgsql as $$
begin
  if exists (select 1 from millrace.job_bodies where queue_id = old.id) then
    raise exception 'queue % has jobs', old.name
      using errcode = '23503', hint = 'delete its jobs first, or pause it: update millrace.job_queues set is_active = false';
  end if;
  return old;
end $$;

create or replace trigger keep_queue_of_jobs before delete on millrace.job_queues
for each row execute function millrace.keep_queue_of_jobs();
