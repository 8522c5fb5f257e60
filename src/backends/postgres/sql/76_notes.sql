-- Notes: compare-and-set on a version that is never used twice.

create or replace function millrace.put_note(in_space text, at_key text, new_value json, expected bigint, ttl_ms bigint) returns bigint language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  ends timestamptz := millrace.after_ms(now_at, ttl_ms);
  found_version bigint;
  new_version bigint := nextval('millrace.note_version_seq');
begin
  for try in 1..100 loop
    select case when expires_at is null or expires_at > now_at then version else 0 end into found_version
    from millrace.notes where space = in_space and key = at_key for update;
    if found then
      if expected is not null and expected <> found_version then return null; end if;
      update millrace.notes set value = new_value, version = new_version, expires_at = ends where space = in_space and key = at_key;
      return new_version;
    end if;
    if coalesce(expected, 0) <> 0 then return null; end if;
    insert into millrace.notes (space, key, value, version, expires_at) values (in_space, at_key, new_value, new_version, ends)
    on conflict (space, key) do nothing;
    if found then return new_version; end if;
  end loop;
  raise exception 'note % changes too fast', at_key using errcode = '40001';
end $$;

-- Null: it is not a number.
create or replace function millrace.increment_note(in_space text, at_key text, change float8) returns float8 language plpgsql as $$
declare
  now_at timestamptz := millrace.now_at();
  held millrace.notes;
  new_version bigint := nextval('millrace.note_version_seq');
  total float8;
begin
  for try in 1..100 loop
    select * into held from millrace.notes where space = in_space and key = at_key for update;
    if not found then
      insert into millrace.notes (space, key, value, version) values (in_space, at_key, to_json(change), new_version)
      on conflict (space, key) do nothing;
      if found then return change; end if;
      continue;
    end if;
    if held.expires_at <= now_at then
      held.value := '0';
      held.expires_at := null;
    end if;
    if json_typeof(held.value) <> 'number' then return null; end if;
    total := (held.value::text)::float8 + change;
    update millrace.notes set value = to_json(total), version = new_version, expires_at = held.expires_at where space = in_space and key = at_key;
    return total;
  end loop;
  raise exception 'note % changes too fast', at_key using errcode = '40001';
end $$;
