-- What runs inside a transaction of the caller: the insert and the apply of src/backends/postgres/inside.ts, and
-- `enqueue` for triggers and for other languages. Whoever must know is told by the commit itself. The checks refine
-- src/core/names.ts, src/core/limits.ts and src/client/enqueue-options.ts. Insert and enqueue run with the rights of
-- their owner: who may only execute them needs no rights on the tables.

-- One NOTIFY that is sent by the commit. It is signed by no process, so that all of them hear it. What does not fit
-- into a payload is left to those who poll: the rings of queues matter most.
create or replace function millrace.tell_after_commit(rings text) returns void language plpgsql as $$
declare
  told text := rtrim(rings, chr(10));
begin
  if octet_length(told) > 7000 then
    told := (select string_agg(r.topic, chr(10)) from string_to_table(told, chr(10)) as r(topic) where r.topic like 'ready:%');
  end if;
  if octet_length(told) between 1 and 7000 then
    perform pg_notify('millrace:' || :'schema', 'transaction' || chr(10) || told);
  end if;
end $$;

-- As insert_jobs. No gate is locked until somebody else's commit: jobs that have one wait for the promoter.
create or replace function millrace.insert_in_transaction(jobs json) returns json language plpgsql
security definer set search_path = pg_catalog, pg_temp
as $$
declare
  reply json := millrace.insert_plain_json(jobs);
begin
  if reply is null then reply := millrace.insert_jobs(jobs, true); end if;
  perform millrace.tell_after_commit(reply->>'rings');
  return reply;
end $$;

-- The same for jobs that no gate, key or parent concerns, set by set: a fifth of the time for 10000 of them. Null: they
-- are not of that kind. As insert-rows.ts isPlain and plainValues; a function is read in the order of its rows.
create or replace function millrace.insert_plain_json(jobs json) returns json language plpgsql as $$
declare
  plain boolean;
  queues text[];
  given record;
  written record;
begin
  select bool_and(coalesce(j.job->>'unique', j.job->>'parents', j.job->>'group', j.job->>'limit_key', j.job->>'schedule_name', j.job->>'replay_of') is null)
         and count(distinct (j.job->>'id')::uuid) = count(*)
         and count(distinct concat_ws(' ', j.job->>'batch', j.job->>'inside')) = 1,
         array_agg(distinct j.job->>'queue')
  into plain, queues from json_array_elements(jobs) as j(job);
  if plain is not true then return null; end if;
  select array_agg(j.id) as ids, array_agg(array_position(queues, j.queue)) as queue_index,
         array_agg(j.name) as names, array_agg(j.payload) as payloads,
         array_agg(j.timeout_ms) as timeouts, array_agg(j.priority) as priorities,
         array_agg(j.max_attempts) as attempts, array_agg(j.delay_ms) as delays,
         array_agg(j.run_at_ms) as run_ats, array_agg(j.meta) as metas,
         array_agg(j.tags::text) as tag_lists, min(j.batch::text)::uuid as batch, coalesce(bool_or(j.inside), false) as inside
  into given
  from json_to_recordset(jobs) as j(id uuid, queue text, name text, payload text, timeout_ms int, priority int, max_attempts int,
                                    delay_ms bigint, run_at_ms bigint, meta text, tags text[], batch uuid, inside boolean);
  select * into written from millrace.insert_plain(given.ids, queues, given.queue_index, given.names, given.payloads, given.timeouts,
    given.priorities, given.attempts, given.delays, given.run_ats, given.metas, given.tag_lists, given.batch, given.inside);
  if written.gated then return null; end if;
  if written.refusal is not null then
    return json_build_object('refusal', json_build_object('code', written.refusal, 'jobId', given.ids[1], 'batch', given.batch));
  end if;
  return json_build_object(
    'results', (select json_agg(json_build_array(i.id, case when i.id = any(written.known) then 'already' else 'inserted' end) order by i.position)
                from unnest(given.ids) with ordinality as i(id, position)),
    'rings', concat(written.rings, (select string_agg('ready:' || q.name, chr(10)) from unnest(queues) as q(name))));
end $$;

-- As apply_changes, with all consequences; what they lock stays locked until the commit.
create or replace function millrace.apply_in_transaction(changes json) returns json language plpgsql as $$
declare
  verdicts text[];
begin
  perform millrace.lock_around(millrace.jobs_changed(changes));
  verdicts := millrace.apply_changes(changes, millrace.now_at());
  perform millrace.tell_after_commit(millrace.rung());
  return to_json(verdicts);
end $$;

-- UUIDv7: 48 bits of time before a random UUID, whose version 4 becomes a 7. PostgreSQL has its own from 18 on.
create or replace function millrace.new_id() returns uuid language sql volatile parallel safe as $$
  select encode(set_bit(set_bit(
    overlay(uuid_send(gen_random_uuid()) placing substring(int8send(millrace.ms_of(millrace.now_at())) from 3) from 1 for 6),
    52, 1), 53, 1), 'hex')::uuid
$$;

-- src/core/names.ts checkName and checkKey.
create or replace function millrace.is_name(name text) returns boolean language sql immutable parallel safe
as $$ select coalesce(name ~ '^[A-Za-z0-9][A-Za-z0-9_.:-]{0,99}$', false) $$;

create or replace function millrace.is_key(key text) returns boolean language sql immutable parallel safe
as $$ select coalesce(char_length(key) between 1 and 200 and key !~ '[\u0001-\u001f\u007f-\u009f]', false) $$;

create or replace function millrace.refuse(problem text, advice text, state text default '22023') returns void language plpgsql as $$
begin
  raise exception using message = problem, hint = advice, errcode = state;
end $$;

create or replace function millrace.check_key(key text, what text) returns void language plpgsql as $$
begin
  if millrace.is_key(key) then return; end if;
  perform millrace.refuse(format('%L cannot be a %s', left(key, 60), what),
    'use 1-200 characters without control characters; hash longer values first');
end $$;

-- Whole milliseconds of a time span; a month counts 30 days.
create or replace function millrace.check_span(span interval, what text, least_ms bigint, most_ms bigint) returns bigint language plpgsql as $$
declare
  ms float8 := ceil(extract(epoch from span) * 1000);
begin
  if ms < least_ms or ms > most_ms then
    perform millrace.refuse(format('%s is %s', what, span),
      format('use an interval from %s to %s', least_ms * interval '1 millisecond', justify_hours(most_ms * interval '1 millisecond')));
  end if;
  return ms;
end $$;

-- JSON that others can read: text with NUL or half of a surrogate pair breaks whoever takes it apart.
create or replace function millrace.check_json(content json, what text, most_bytes int) returns void language plpgsql as $$
begin
  if octet_length(content::text) > most_bytes then
    perform millrace.refuse(format('%s has %s bytes, but at most %s are allowed', what, octet_length(content::text), most_bytes),
      'store the content elsewhere and pass its address', '54000');
  end if;
  if position('\u' in content::text) > 0 then perform content::jsonb; end if;
exception when untranslatable_character or invalid_text_representation then
  perform millrace.refuse(format('%s has a NUL character or half of a surrogate pair', what), 'encode binary as base64');
end $$;

-- Enqueues one job; the id of the job that stands for the request: its own, or that of the one that holds the unique
-- key. What a definition in code says of its jobs (timeout, attempts, keys, tags) is not known here: pass it.
create or replace function millrace.enqueue(
  queue text,
  name text,
  payload json default 'null',
  -- 0 is most urgent; null: of the queue.
  priority int default null,
  -- One of them: this long from now, or not before this moment.
  delay interval default null,
  run_at timestamptz default null,
  -- Held until the job has ended, or for this long from now.
  unique_key text default null,
  unique_for interval default null,
  -- Null: of the queue.
  max_attempts int default null,
  -- Of one run; null: 5 minutes.
  timeout interval default null,
  tags text[] default null,
  group_key text default null,
  limit_key text default null,
  batch uuid default null,
  meta json default null
) returns uuid language plpgsql
security definer set search_path = pg_catalog, pg_temp
as $$
declare
  now_at timestamptz := millrace.now_at();
  -- The longest delay: 5 years.
  most_ms constant bigint := 1830 * 86400000::bigint;
  delay_ms bigint := millrace.check_span(delay, 'delay', 0, most_ms);
  window_ms bigint := millrace.check_span(unique_for, 'unique_for', 1, most_ms);
  timeout_ms bigint := coalesce(millrace.check_span(timeout, 'timeout', 1, 7 * 86400000), 300000);
  tag_list text[];
  tag text;
  reply json;
begin
  if not millrace.is_name(queue) then
    perform millrace.refuse(format('%L cannot be the name of a queue', left(queue, 60)),
      'use 1-100 letters, digits and _ . : - that start with a letter or digit');
  elsif not millrace.is_name(name) then
    perform millrace.refuse(format('%L cannot be the name of a job', left(name, 60)),
      'use 1-100 letters, digits and _ . : - that start with a letter or digit');
  elsif priority not between 0 and 32767 then
    perform millrace.refuse(format('priority is %s', priority), 'use a whole number from 0 (most urgent) to 32767');
  elsif max_attempts not between 1 and 1000 then
    perform millrace.refuse(format('max_attempts is %s', max_attempts), 'use a whole number from 1 to 1000');
  elsif delay is not null and run_at is not null then
    perform millrace.refuse('delay and run_at exclude each other', 'pass one of them');
  elsif run_at > millrace.after_ms(now_at, most_ms) then
    perform millrace.refuse(format('run_at is %s', run_at), 'use a moment at most 5 years ahead; one in the past means now');
  elsif unique_for is not null and unique_key is null then
    perform millrace.refuse('unique_for has no unique_key', 'pass the key that is to be held');
  elsif json_typeof(meta) <> 'object' then
    perform millrace.refuse(format('meta is of type %s', json_typeof(meta)), 'pass a JSON object');
  end if;
  if unique_key is not null then perform millrace.check_key(unique_key, 'unique_key'); end if;
  if group_key is not null then perform millrace.check_key(group_key, 'group_key'); end if;
  if limit_key is not null then perform millrace.check_key(limit_key, 'limit_key'); end if;
  tag_list := array(select t.tag from unnest(tags) with ordinality as t(tag, position) group by t.tag order by min(t.position));
  if cardinality(tag_list) > 20 then
    perform millrace.refuse(format('there are %s tags', cardinality(tag_list)), 'use at most 20');
  end if;
  foreach tag in array tag_list loop
    perform millrace.check_key(tag, 'tag');
  end loop;
  perform millrace.check_json(payload, 'payload', 262144);
  perform millrace.check_json(meta, 'meta', 4096);

  reply := millrace.insert_in_transaction(json_build_array(json_strip_nulls(json_build_object(
    'id', millrace.new_id(), 'queue', queue, 'name', name, 'payload', coalesce(payload::text, 'null'), 'timeout_ms', timeout_ms,
    'priority', priority, 'max_attempts', max_attempts, 'delay_ms', delay_ms,
    'run_at_ms', case when run_at > now_at then millrace.ms_of(run_at) end,
    'tags', case when cardinality(tag_list) > 0 then to_json(tag_list) end, 'meta', meta::text, 'batch', batch,
    'group', group_key, 'limit_key', limit_key,
    'unique', case when unique_key is not null then json_build_object(
      'key', unique_key, 'mode', case when unique_for is null then 2 else 3 end, 'window_ms', window_ms, 'on_duplicate', 1) end))));
  case reply->'refusal'->>'code'
    when 'BATCH_NOT_FOUND' then
      perform millrace.refuse(format('there is no batch %s', batch), 'create it first, or correct the id', '23503');
    when 'BATCH_CLOSED' then
      perform millrace.refuse(format('batch %s is sealed, cancelled or finished and takes no more jobs', batch),
        'add jobs before it is sealed', '55000');
    else null;
  end case;
  return (reply->'results'->0->>0)::uuid;
end $$;
