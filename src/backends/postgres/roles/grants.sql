-- Least-privilege roles for one Millrace schema. Rendered by src/backends/postgres/roles.ts, which fills in
--   :schema   the schema, as an identifier; :'schema' as a string
--   :grants   rows of (role, kind, privileges, only, except, definer); `only` and `except` are regular expressions
-- Run it as the owner of the schema (creating the roles needs CREATEROLE; an administrator may create them before).
-- It may be run again at any time, and must be after each upgrade: it takes everything back and grants it anew, in
-- one transaction. The reasons for each grant are in docs/roles.md.
begin;
set local search_path = pg_catalog;

do $roles$
declare
  one record;
  object record;
  names text[];
begin
  revoke all on schema :schema from public;
  revoke execute on all routines in schema :schema from public;
  for one in select distinct role from (values :grants) as g(role, kind, privileges, only_, except_, definer) loop
    if not exists (select from pg_catalog.pg_roles where rolname = one.role) then
      execute format('create role %I nologin', one.role);
    end if;
    execute format('revoke all on all tables in schema :schema from %I', one.role);
    execute format('revoke all on all sequences in schema :schema from %I', one.role);
    execute format('revoke all on all routines in schema :schema from %I', one.role);
    execute format('grant usage on schema :schema to %I', one.role);
  end loop;

  for one in select * from (values :grants) as g(role, kind, privileges, only_, except_, definer) loop
    names := '{}';
    for object in
      select c.relname::text as name, c.oid::regclass::text as id,
        case c.relkind when 'v' then 'view' when 'S' then 'sequence' else 'table' end as kind, true as is_safe
      from pg_catalog.pg_class c
      where c.relnamespace = to_regnamespace(:'schema') and c.relkind in ('r', 'p', 'v', 'S') and not c.relispartition
      union all
      select p.proname::text, p.oid::regprocedure::text, 'routine',
        p.prosecdef and array_to_string(p.proconfig, ' ') ~ 'search_path='
      from pg_catalog.pg_proc p where p.pronamespace = to_regnamespace(:'schema')
    loop
      continue when object.kind <> one.kind or object.name !~ one.only_ or object.name ~ one.except_;
      names := names || object.name;
      execute format('grant %s on %s %s to %I', one.privileges,
        case object.kind when 'view' then 'table' else object.kind end, object.id, one.role);
      if one.definer and not object.is_safe then
        raise warning 'function % needs SECURITY DEFINER with a fixed search_path before % can use it', object.id, one.role;
      end if;
    end loop;
    if cardinality(names) = 0 then
      raise warning 'nothing in schema % matches % for %', :'schema', one.only_, one.role;
    end if;
  end loop;
end $roles$;

commit;
