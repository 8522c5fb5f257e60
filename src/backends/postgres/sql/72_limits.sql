-- Tokens at the start of jobs: one of every bucket that applies, or none and the wait. Refines src/core/rate.ts
-- takeStart; the waits as JSON, null where the start is granted.

create or replace function millrace.take_starts(queue_names text[], keys text[]) returns json language plpgsql as $$
declare
  now_ms float8 := millrace.ms_of(millrace.now_at());
  queue millrace.job_queues;
  waits json[] := '{}';
  wait_ms float8;
  longest float8;
begin
  perform millrace.lock_gates(array(select q.id from millrace.job_queues q where q.name = any(queue_names) and q.is_limited));
  for request in 1..cardinality(queue_names) loop
    select * into queue from millrace.job_queues where name = queue_names[request];
    longest := null;
    if queue.rate is not null then
      longest := millrace.take_start(queue.id, '', queue.rate_interval_ms, (queue.rate->>'burst')::int, now_ms);
    end if;
    if queue.per_key_rate is not null and keys[request] is not null then
      wait_ms := millrace.take_start(queue.id, keys[request], queue.per_key_rate_interval_ms, (queue.per_key_rate->>'burst')::int, now_ms);
      longest := greatest(longest, wait_ms);
    end if;
    if longest is null then
      if queue.rate is not null then perform millrace.spend_start(queue.id, '', queue.rate_interval_ms, now_ms); end if;
      if queue.per_key_rate is not null and keys[request] is not null then
        perform millrace.spend_start(queue.id, keys[request], queue.per_key_rate_interval_ms, now_ms);
      end if;
      waits := waits || 'null'::json;
    else
      waits := waits || to_json(longest);
    end if;
  end loop;
  return array_to_json(waits);
end $$;
