// Where pg_dump is sent: the server that our own connection would use, by its environment alone.
import { expect, test } from 'vitest'
import { pgTarget } from '../../src/tasks/pg-env.ts'

test('P4 a URL becomes the environment of pg_dump, with the password nowhere else', () => {
  const { env, ...rest } = pgTarget('postgres://ada:se%40cret@db.example:6543/app?application_name=x', 15)
  expect(env).toMatchObject({ PGHOST: 'db.example', PGPORT: '6543', PGUSER: 'ada', PGDATABASE: 'app' })
  expect(env['PGPASSWORD']).toBe('se@cret')
  expect(env['PGSSLMODE']).toBeUndefined()
  expect(JSON.stringify(rest)).not.toContain('cret')
})

test.each([
  'postgres:///app?host=/var/run/postgresql&user=ada',
  'postgres://ada@%2Fvar%2Frun%2Fpostgresql/app',
  'socket://ada@/var/run/postgresql?db=app',
])('P4 %s is a socket', (url) => {
  expect(pgTarget(url, 15).env).toMatchObject({ PGHOST: '/var/run/postgresql', PGDATABASE: 'app' })
})

test.each([
  ['sslmode=disable', 15, { PGSSLMODE: 'disable' }, 0],
  ['sslmode=no-verify', 15, { PGSSLMODE: 'require' }, 0],
  // Our own connection checks the certificate; a pg_dump that can does so too.
  ['sslmode=require', 16, { PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'system' }, 0],
  ['ssl=true', 18, { PGSSLMODE: 'verify-full', PGSSLROOTCERT: 'system' }, 0],
  ['sslmode=require', 15, { PGSSLMODE: 'require' }, 1],
  ['sslmode=require&uselibpqcompat=true', 18, { PGSSLMODE: 'require' }, 0],
] as const)('P4 ?%s with pg_dump %i', (query, major, env, warnings) => {
  const target = pgTarget(`postgres://ada@db/app?${query}`, major)
  expect(target.env).toMatchObject(env)
  expect(target.warnings).toHaveLength(warnings)
})

test('P4 an address that is none is refused without being quoted', () => {
  expect(() => pgTarget('postgres://ada:secret@[/app', 15)).toThrow(/^(?!.*secret)/)
})
