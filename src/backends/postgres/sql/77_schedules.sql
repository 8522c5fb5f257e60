-- Schedules: the same recurrence keeps its next run, a changed one starts anew.

create or replace function millrace.upsert_schedules(settings json) returns void language plpgsql as $$
declare
  one json;
begin
  for one in select s.value from json_array_elements(settings) as s(value) order by s.value->>'name' loop
    insert into millrace.schedules as s (name, recurrence, job_name, queue_name, payload, priority, max_attempts, timeout_ms, tags, meta,
      group_key, limit_key, misfire, overlap, is_enabled, next_run_at, created_at)
    values (one->>'name', (one->>'recurrence')::json, one->>'job_name', one->>'queue_name', (one->>'payload')::json, (one->>'priority')::int,
      (one->>'max_attempts')::int, (one->>'timeout_ms')::int, array(select json_array_elements_text(one->'tags')), (one->>'meta')::json,
      one->>'group_key', one->>'limit_key', (one->>'misfire')::json, one->>'overlap', (one->>'is_enabled')::boolean,
      millrace.at_ms((one->>'first_run_ms')::float8), millrace.now_at())
    on conflict (name) do update set
      next_run_at = case when s.recurrence::text = excluded.recurrence::text then s.next_run_at else excluded.next_run_at end,
      recurrence = excluded.recurrence, job_name = excluded.job_name, queue_name = excluded.queue_name, payload = excluded.payload,
      priority = excluded.priority, max_attempts = excluded.max_attempts, timeout_ms = excluded.timeout_ms, tags = excluded.tags,
      meta = excluded.meta, group_key = excluded.group_key, limit_key = excluded.limit_key, misfire = excluded.misfire,
      overlap = excluded.overlap, is_enabled = excluded.is_enabled, version = s.version + 1;
  end loop;
end $$;
