// What the lint of migrations refuses and what it lets pass, and that our own migrations pass.
import { describe, expect, test } from 'vitest'
import { EMBEDDED_SET } from '../../src/backends/postgres/migrate-set.ts'
import type { Migration } from '../../src/backends/postgres/migrate-set.ts'
import { lintMigrations } from '../../src/backends/postgres/migration-lint.ts'

const first: Migration = {
  version: 1,
  name: 'first',
  up: 'create table millrace.things (id int, note text); create index on millrace.things (id);',
  down: '',
}

/** The rules that the last of some migrations breaks; all but the last must be clean. */
function broken(...ups: readonly string[]): readonly string[] {
  const rest = ups.map((up, index): Migration => ({ version: index + 2, name: 'next', up, down: '' }))
  const problems = lintMigrations([first, ...rest])
  const last = `${String(ups.length + 1).padStart(4, '0')}_next.up.sql:`
  expect(problems.filter((problem) => !problem.startsWith(last))).toEqual([])
  return problems.map((problem) => /^\S+ ([\w-]+):/.exec(problem)?.[1] ?? problem)
}

test('our own migrations pass', () => {
  expect(lintMigrations(EMBEDDED_SET.migrations)).toEqual([])
})

test('a problem names file, line, rule and what to do', () => {
  const up = '-- words\n\nalter table millrace.things\n  alter note type jsonb;'
  expect(lintMigrations([first, { version: 2, name: 'jsonb', up, down: '' }])).toEqual([
    '0002_jsonb.up.sql:3 table-rewrite: rewrites the whole table under an exclusive lock; add a new column, copy in batches, then contract',
  ])
})

describe('refused', () => {
  test.each([
    ['alter table millrace.things alter column note type jsonb using note::jsonb', 'table-rewrite'],
    ['ALTER TABLE ONLY millrace.things ALTER note SET DATA TYPE varchar(20)', 'table-rewrite'],
    ['alter table millrace.things set unlogged', 'table-rewrite'],
    ['alter table millrace.things set logged', 'table-rewrite'],
    ['cluster millrace.things using things_pkey', 'table-rewrite'],
    ['vacuum full millrace.things', 'table-rewrite'],
    ['do $$ begin alter table millrace.things alter note type int; end $$', 'table-rewrite'],
    ['alter table millrace.things add column key uuid default gen_random_uuid()', 'volatile-default'],
    ['alter table millrace.things add seen timestamptz not null default clock_timestamp()', 'volatile-default'],
    ["alter table millrace.things add a int, add b bigint default nextval('s')", 'volatile-default'],
    ['alter table millrace.things add column no bigserial', 'volatile-default'],
    ['alter table millrace.things add column no int generated always as identity', 'volatile-default'],
    ['alter table millrace.things add column l int generated always as (length(note)) stored', 'volatile-default'],
    ['alter table millrace.things add column m text default millrace.made_up()', 'volatile-default'],
    ['alter table millrace.things add column no int unique', 'column-constraint'],
    ['alter table millrace.things add column no int check (no > 0)', 'column-constraint'],
    ['alter table millrace.things add column no int references millrace.others', 'column-constraint'],
    ['alter table millrace.things add column no int not null', 'column-constraint'],
    ['create index things_note on millrace.things (note)', 'blocking-index'],
    ['create unique index if not exists things_note on only millrace.things using btree (note)', 'blocking-index'],
    ['reindex table millrace.things', 'blocking-index'],
    ['create index concurrently if not exists things_note on millrace.things (note)', 'concurrent-index'],
    [
      '-- millrace: outside a transaction\ncreate index concurrently things_note on millrace.things (note)',
      'concurrent-index',
    ],
    ['alter table millrace.things add constraint c check (id > 0)', 'validated-constraint'],
    ['alter table millrace.things add check (id > 0)', 'validated-constraint'],
    [
      'alter table millrace.things add constraint f foreign key (id) references millrace.others',
      'validated-constraint',
    ],
    ['alter table millrace.things add primary key (id)', 'validated-constraint'],
    ['alter table millrace.things alter note set not null', 'set-not-null'],
    ['alter table millrace.things drop column note', 'contract'],
    ['alter table millrace.things drop note', 'contract'],
    ['alter table millrace.things rename note to remark', 'contract'],
    ['alter table millrace.things rename to stuff', 'contract'],
    ['-- contract:\ndrop table millrace.things', 'contract'],
    ["create type millrace.mood as enum ('good', 'bad')", 'enum'],
    ["alter type millrace.mood add value 'worse'", 'enum'],
    ['lock table millrace.things in exclusive mode', 'lock-table'],
    ['do $$ begin lock millrace.things; end $$', 'lock-table'],
    ['begin', 'transaction'],
    ['commit', 'transaction'],
    ["set lock_timeout = '10s'", 'session-setting'],
  ])('%s', (up, rule) => {
    expect(broken(up)).toEqual([rule])
  })

  test('a check that is validated in the migration that adds it', () => {
    const add = 'alter table millrace.things add constraint c check (note is not null) not valid'
    expect(broken(`${add}; alter table millrace.things validate constraint c`)).toEqual(['validate-too-early'])
  })

  test('not null after a check that nobody validated', () => {
    const add = 'alter table millrace.things add constraint c check (note is not null) not valid'
    expect(broken(add, 'alter table millrace.things alter column note set not null')).toEqual(['set-not-null'])
  })
})

describe('allowed', () => {
  test.each([
    'alter table millrace.things add column extra jsonb',
    "alter table millrace.things add column extra jsonb not null default '{}'::jsonb",
    "alter table millrace.things add column a int default 0 not null, add column b text default 'x, y'",
    'alter table millrace.things add column seen timestamptz not null default now()',
    'alter table millrace.things add constraint c check (id > 0) not valid',
    'alter table millrace.things add constraint u unique using index things_u',
    'alter table millrace.things drop constraint c',
    'alter table millrace.things alter note drop not null',
    'alter table millrace.things alter column note set default 7',
    'alter table millrace.things set (fillfactor = 50)',
    '-- millrace: outside a transaction\ncreate unique index concurrently if not exists i on millrace.things (note);',
    '-- millrace: outside a transaction\ndrop index concurrently if exists millrace.i',
    '-- contract: nobody reads it since 0.4\nalter table millrace.things drop column note',
    'create table millrace.others (id int); alter table millrace.others alter id type bigint; create index on millrace.others (id); alter table millrace.others add primary key (id)',
    "set local work_mem = '64MB'",
    "comment on table millrace.things is 'lock table; vacuum full; begin'",
    '-- lock table millrace.things\nselect 1',
  ])('%s', (up) => {
    expect(broken(up)).toEqual([])
  })

  test('not null after a check that an earlier migration validated', () => {
    const steps = [
      'alter table millrace.things add constraint c check (note is not null) not valid',
      'alter table millrace.things validate constraint c',
      'alter table millrace.things alter column note set not null',
      'alter table millrace.things drop constraint c',
    ]
    expect(broken(...steps)).toEqual([])
  })
})
