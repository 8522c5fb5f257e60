// Small sets of migrations for the tests of the runner: what it does must not depend on the real schema.
import type { MigrationSet } from '../../src/backends/postgres/migrate-set.ts'

const up1 = `create table millrace.things (id int primary key, note text not null default '');
create sequence millrace.thing_seq;`
const down1 = 'drop sequence millrace.thing_seq; drop table millrace.things;'

/** Three versions, functions and a view that hang together in both directions. */
export const SMALL_SET: MigrationSet = {
  migrations: [
    { version: 1, name: 'things', up: up1, down: down1 },
    {
      version: 2,
      name: 'tags',
      up: "alter table millrace.things add column tags text[] not null default '{}'",
      down: 'alter table millrace.things drop column tags;',
    },
    {
      version: 3,
      name: 'marks',
      up: 'create table millrace.marks (id int primary key);',
      down: 'drop table millrace.marks',
    },
  ],
  functions: [
    { name: '10_things', sql: functionOf('thing_count', 'select count(*) from millrace.things') },
    {
      name: '20_views',
      sql: `create or replace view millrace.all_things as select id, note, millrace.thing_count() as n from millrace.things;
create or replace function millrace.first_thing() returns setof millrace.all_things stable
  begin atomic select * from millrace.all_things order by case when id > 0 then id else 0 end limit 1; end;`,
    },
    {
      name: '30_triggers',
      sql: `create or replace function millrace.refuse() returns trigger language plpgsql as $$ begin return null; end $$;
create or replace trigger no_marks before insert on millrace.marks for each row execute function millrace.refuse();`,
    },
  ],
}

/** What a way up from nothing does. */
export const SMALL_STEPS = [
  'migration 0001_things up',
  'migration 0002_tags up',
  'migration 0003_marks up',
  'creating the functions',
]

export function functionOf(name: string, body: string): string {
  return `create or replace function millrace.${name}() returns bigint language sql stable as $$ ${body} $$;`
}

/** The first migrations of a set, as an older package would bring them. */
export function olderSet({ migrations, functions }: MigrationSet, latest: number): MigrationSet {
  return { migrations: migrations.slice(0, latest), functions: functions.slice(0, 1) }
}
