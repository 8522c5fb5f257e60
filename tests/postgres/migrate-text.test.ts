// SQL as text: the schema it is rendered for, where statements end, and what counts as a change.
import { describe, expect, test } from 'vitest'
import { checkSchemaName, splitStatements, sqlChecksum, sqlText } from '../../src/backends/postgres/sql-text.ts'

describe('schema', () => {
  test('objects, the identifier and the string are filled in, and nothing else', () => {
    const sql =
      "create schema :schema; select millrace.f(:'schema', 'millrace', x::schema, millrace_rings.x) from millrace.t"
    expect(sqlText(sql, 'other')).toBe(
      `create schema "other"; select "other".f('other', 'millrace', x::schema, millrace_rings.x) from "other".t`,
    )
  })

  test.each(['millrace', '_x', 'a'.repeat(40), 'user'])('%s is a name', (name) => {
    expect(checkSchemaName(name)).toBe(name)
  })

  test.each([
    '',
    'Jobs',
    '1st',
    'a-b',
    'a"b',
    "a'b",
    'public',
    'pg_jobs',
    'information_schema',
    'a'.repeat(41),
    7,
    undefined,
  ])('%s is none', (name) => {
    expect(() => checkSchemaName(name)).toThrow(expect.objectContaining({ code: 'INVALID_OPTION' }) as Error)
  })
})

describe('statements', () => {
  test.each([
    ['select 1; select 2', ['select 1', 'select 2']],
    ["select ';', E'\\';', \";\" -- ;\n; /* ; /* ; */ ; */ select 2", ["select ';', E'\\';', \";\"", 'select 2']],
    ['do $a$ begin; $$ ; $$ end $a$; select $1', ['do $a$ begin; $$ ; $$ end $a$', 'select $1']],
    [
      'create function f() returns int begin atomic select case when true then 1 end; select 2; end; select 3',
      ['create function f() returns int begin atomic select case when true then 1 end; select 2; end', 'select 3'],
    ],
    ['begin; select 1; end; select 2', ['begin', 'select 1', 'end', 'select 2']],
    [' ;; \n', []],
    ['select\n\t 1', ['select 1']],
  ])('%s', (sql, texts) => {
    expect(splitStatements(sql).map(({ text }) => text)).toEqual(texts)
  })

  test('each knows its line, its comments and its body', () => {
    expect(splitStatements('-- one\n/* two */ do $x$ body $x$;\n\nselect 2')).toEqual([
      { text: 'do $x$ body $x$', comments: ['one', 'two'], body: ' body ', line: 2 },
      { text: 'select 2', comments: [], body: undefined, line: 4 },
    ])
  })
})

describe('checksum', () => {
  const text = "create table millrace.t (a int default 1, b text default 'a  b');"

  test.each([
    ['comments', `-- why\n${text} /* done */`],
    ['layout', text.replace('(', '(\n   ').replace(', ', ',\n')],
    ['line ends', `${text}\r\n-- more\r\n`],
  ])('%s do not count', (_, other) => {
    expect(sqlChecksum(other)).toBe(sqlChecksum(text))
  })

  test.each([
    ['a word', text.replace('int', 'bigint')],
    ['a space in a string', text.replace('a  b', 'a b')],
    ['a space in a body', 'do $$ begin  end $$'],
  ])('%s does', (_, other) => {
    expect(sqlChecksum(other)).not.toBe(sqlChecksum(text))
    expect(sqlChecksum('do $$ begin  end $$')).not.toBe(sqlChecksum('do $$ begin end $$'))
  })
})
