-- Worker lives. The heartbeat row and the row that claims lock are apart, so that a beat never waits behind work.

-- `holds_tokens`: it is born behind every epoch, so that nobody takes it for one that has said what it runs (67_sessions.sql).
create or replace function millrace.register_worker(
  new_id text, on_host text, with_pid int, for_queues text[], slots int, holds_tokens boolean default false
) returns void language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  number int;
begin
  insert into millrace.workers (id, host, pid, queues, concurrency, started_at, last_beat_at, epoch_seen)
  values (new_id, on_host, with_pid, for_queues, slots, now_at, now_at, case when holds_tokens then 0 end) on conflict (id) do nothing returning no into number;
  if found then insert into millrace.worker_claims (worker_no) values (number); end if;
end $$;

-- Null: declared dead, or unknown. Answers cancellations of its runs and commands it has not carried out.
create or replace function millrace.beat_worker(of_id text, running_now int, commands_seen bigint, blocked int) returns json language plpgsql as $$
declare
  number int;
begin
  update millrace.workers set beat = beat + 1, running = running_now, blocked_ms = blocked, last_beat_at = millrace.now_at()
  where id = of_id and is_alive returning no into number;
  if not found then return null; end if;
  return millrace.beat_reply(number, commands_seen);
end $$;

create or replace function millrace.beat_reply(number int, commands_seen bigint) returns json language plpgsql as $$
begin
  delete from millrace.worker_commands where worker_no = number and no <= commands_seen;
  return json_build_object('alive', true,
    'cancels', coalesce((select json_agg(json_build_object('jobId', r.id, 'lease', r.lease)) from millrace.running r
                         where r.worker_no = number and r.hooks & 128 <> 0), '[]'),
    'commands', coalesce((select json_agg(json_build_object('no', c.no, 'command', c.command) order by c.no) from millrace.worker_commands c
                          where c.worker_no = number), '[]'));
end $$;

-- Ends lives: all of those named (beats null), or those whose beat is still the one that was seen. Waits for a claim
-- that is under way, so that nothing is claimed by the dead.
create or replace function millrace.bury_workers(ids text[], beats bigint[]) returns setof text language plpgsql as $$
declare
  one record;
begin
  for one in
    select w.no, w.id, s.beat from unnest(ids, beats) as s(id, beat) join millrace.workers w on w.id = s.id where w.is_alive order by w.no
  loop
    perform 1 from millrace.worker_claims where worker_no = one.no for update;
    update millrace.workers set is_alive = false where no = one.no and is_alive and (beats is null or beat = one.beat);
    continue when not found;
    update millrace.worker_claims set is_dead = true where worker_no = one.no;
    return next one.id;
  end loop;
end $$;

create or replace function millrace.lead_role(of_role text, for_holder text, ttl_ms bigint, out held boolean, out holder text, out term bigint) language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
begin
  insert into millrace.leaders as l (role, holder, term, until) values (of_role, for_holder, 1, millrace.after_ms(now_at, ttl_ms))
  on conflict (role) do update set holder = for_holder, until = excluded.until,
    term = case when l.holder = for_holder then l.term else l.term + 1 end
  where l.holder = for_holder or l.until <= now_at;
  select l.holder = for_holder and l.until > now_at, l.holder, l.term into held, holder, term from millrace.leaders l where l.role = of_role;
end $$;

create or replace function millrace.send_command(target text, new_command json) returns boolean language plpgsql as $$
declare
  number int;
  command_no bigint;
begin
  update millrace.workers set last_command_no = last_command_no + 1 where id = target and is_alive returning no, last_command_no into number, command_no;
  if not found then return false; end if;
  insert into millrace.worker_commands (worker_no, no, command) values (number, command_no, new_command);
  delete from millrace.worker_commands where worker_no = number and no <= command_no - 100;
  return true;
end $$;

-- Running jobs whose worker is dead, or whose visibility is over. One that somebody's transaction has locked, such as a
-- completion that is not committed yet, is passed over, or it would hold up the rescue of all others.
create or replace function millrace.expired_jobs(most int) returns setof uuid language plpgsql as $$
declare
  dead int[] := array(select worker_no from millrace.worker_claims where is_dead and not is_empty);
begin
  if cardinality(dead) > 0 then
    return query select r.id from millrace.running r where r.worker_no = any(dead) and r.visible_until = 'infinity'
      limit most for update skip locked;
    -- Nothing is claimed by the dead: once they hold nothing they need not be looked at again, unless they inherit
    -- (bequeath_runs). Locked before they are looked at, so that an heir who comes meanwhile is seen.
    dead := array(select c.worker_no from millrace.worker_claims c where c.worker_no = any(dead) for update skip locked);
    update millrace.worker_claims c set is_empty = true where c.worker_no = any(dead)
      and not exists (select 1 from millrace.running r where r.worker_no = c.worker_no and r.visible_until = 'infinity');
  end if;
  return query select r.id from millrace.running r where r.visible_until <= millrace.now_at() and r.visible_until < 'infinity'
    limit most for update skip locked;
end $$;

-- No claim up to this number takes anything any more; then what the worker holds. Two statements: the second must see a
-- claim that the first one has waited for.
create or replace function millrace.fence_worker(of_id text, claim_no bigint) returns table (job_id uuid, lease bigint) language plpgsql as $$
declare
  number int;
begin
  update millrace.worker_claims c set last_claim_no = greatest(c.last_claim_no, claim_no)
  from millrace.workers w where w.id = of_id and c.worker_no = w.no returning c.worker_no into number;
  return query select r.id, r.lease from millrace.running r where r.worker_no = number;
end $$;
