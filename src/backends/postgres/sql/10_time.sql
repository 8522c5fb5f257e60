-- Time is the clock of the database, in whole milliseconds. Tests replace `now_at`; nothing else asks for the time.
-- Words that the tables keep as numbers; src/backends/postgres/words.ts is the same list for TypeScript:
--   job_attempts.status  1 success 2 retry 3 failed 4 cancelled 5 expired 6 released 7 replayed
--   job_attempts.ended   1 completed 2 failed 3 cancelled
--   scheduled.waits_for  1 delay 2 rate 3 retry 4 snooze
--   blocked.gate         1 parents 2 group 3 key-slot 4 queue-slot
--   policy of a parent   1 fail 2 cancel 3 continue
--   unique_mode          1 until-started 2 until-finished 3 for-a-time
--   hooks, a sum of      1 holds its group, 2 holds a slot of its key, 4 holds a slot of its queue, 8 has a place in the rate
--                        line, 16 is in a batch, 32 holds a unique key that a change of status gives back, 64 children
--                        wait for it, 128 cancellation was asked for, 256 deletion was asked for, 512 has a group or a
--                        limit key, 1024 has parents

create or replace function millrace.now_at() returns timestamptz language sql volatile parallel safe
as $$ select date_trunc('milliseconds', clock_timestamp()) $$;

-- Stable, not immutable: otherwise PostgreSQL calls them row by row instead of inlining them (7 µs a call).
create or replace function millrace.ms_of(at timestamptz) returns bigint language sql stable parallel safe
as $$ select round(date_part('epoch', at) * 1000)::bigint $$;

create or replace function millrace.at_ms(ms float8) returns timestamptz language sql immutable parallel safe
as $$ select to_timestamp(ms / 1000) $$;

create or replace function millrace.after_ms(at timestamptz, ms bigint) returns timestamptz language sql stable parallel safe
as $$ select at + ms * interval '1 millisecond' $$;

-- Collects what this transaction must tell others after its commit: hints, read by `rung` at the end of a call.
create or replace function millrace.ring(topic text) returns void language plpgsql as $$
declare
  rung text := coalesce(current_setting('millrace_rings.topics', true), '');
begin
  if position(chr(10) || topic || chr(10) in chr(10) || rung) = 0 and length(rung) < 100000 then
    perform set_config('millrace_rings.topics', rung || topic || chr(10), true);
  end if;
end $$;

create or replace function millrace.rung() returns text language plpgsql as $$
declare
  rung text := nullif(current_setting('millrace_rings.topics', true), '');
begin
  if rung is not null then perform set_config('millrace_rings.topics', '', true); end if;
  return rung;
end $$;
