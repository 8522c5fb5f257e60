// The four roles in a database: what each may do and, above all, what it may not.
import type { Client } from 'pg'
import { describe, expect, test } from 'vitest'
import type { MigrationSet } from '../../src/backends/postgres/migrate-set.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { ROLES, renderGrants, roleName } from '../../src/backends/postgres/roles.ts'
import type { Grant, Role } from '../../src/backends/postgres/roles.ts'
import { migrationTests } from './migrate-support.ts'

const { setup, ends } = await migrationTests()

/** A small system with the shape of the real one: a definer function to enqueue, invoker functions for the rest. */
const SET: MigrationSet = {
  migrations: [
    {
      version: 1,
      name: 'small',
      up: `create sequence millrace.lease_seq;
        create table millrace.bodies (id int primary key, payload text not null) partition by range (id);
        create table millrace.bodies_rest partition of millrace.bodies default;
        create table millrace.results (id int primary key, result text);`,
      down: '',
    },
  ],
  functions: [
    {
      name: '10_all',
      sql: `create or replace view millrace.jobs as select b.id, payload, result
          from millrace.bodies b left join millrace.results using (id);
        create or replace function millrace.insert_job(job int, content text) returns void language sql
          security definer set search_path = pg_catalog, pg_temp
          as $$ insert into millrace.bodies (id, payload) values (job, content) $$;
        create or replace function millrace.result_of(job int) returns text language sql
          security definer set search_path = pg_catalog, pg_temp
          as $$ select result from millrace.results where id = job $$;
        create or replace function millrace.claim() returns int language sql
          as $$ select min(id) + 0 * nextval('millrace.lease_seq')::int from millrace.bodies $$;
        create or replace function millrace.finish(job int, content text) returns void language sql
          as $$ insert into millrace.results (id, result) values (job, content) $$;
        create or replace function millrace.erase(job int) returns void language sql
          as $$ delete from millrace.bodies where id = job $$;`,
    },
  ],
}

const rows: Grant = {
  kind: 'table',
  privileges: ['select', 'insert', 'update', 'delete'],
  names: ['*'],
  except: ['schema_migrations'],
}
const version: Grant = { kind: 'table', privileges: ['select'], names: ['schema_migrations'] }
const sequences: Grant = { kind: 'sequence', privileges: ['usage'], names: ['*'] }
const views: Grant = { kind: 'view', privileges: ['select'], names: ['*'] }
const GRANTS: Readonly<Record<Role, readonly Grant[]>> = {
  producer: [{ kind: 'routine', privileges: ['execute'], names: ['insert_*', 'result_of'], definer: true }, version],
  worker: [{ kind: 'routine', privileges: ['execute'], names: ['*'], except: ['erase'] }, rows, sequences, version],
  operator: [
    { kind: 'routine', privileges: ['execute'], names: ['*'], except: ['claim'] },
    rows,
    views,
    sequences,
    version,
  ],
  viewer: [views, version],
}

const ACTIONS = {
  enqueue: "select millrace.insert_job(2, 'x')",
  'read a result': 'select millrace.result_of(1)',
  'see the version': 'select version from millrace.schema_migrations',
  claim: 'select millrace.claim()',
  finish: "select millrace.finish(1, 'y')",
  erase: 'select millrace.erase(1)',
  'read all jobs': 'select * from millrace.jobs',
  'read a table': 'select * from millrace.bodies',
  'write a table': "insert into millrace.bodies (id, payload) values (3, 'z')",
  'change the books': 'delete from millrace.schema_migrations',
  truncate: 'truncate millrace.results',
  'alter a table': 'alter table millrace.results add column more int',
  'create a table': 'create table millrace.mine ()',
} as const

const ALLOWED: Readonly<Record<Role, readonly (keyof typeof ACTIONS)[]>> = {
  producer: ['enqueue', 'read a result', 'see the version'],
  worker: ['enqueue', 'read a result', 'see the version', 'claim', 'finish', 'read a table', 'write a table'],
  operator: [
    'enqueue',
    'read a result',
    'see the version',
    'finish',
    'erase',
    'read all jobs',
    'read a table',
    'write a table',
  ],
  viewer: ['see the version', 'read all jobs'],
}

async function granted(prefix: string, grants = GRANTS): Promise<{ client: Client; warnings: readonly string[] }> {
  const { client } = await setup()
  const warnings: string[] = []
  client.on('notice', ({ severity, message }) => void (severity === 'WARNING' && warnings.push(message ?? '')))
  await createMigrator({ client, ...SET }).up()
  await client.query("insert into millrace.bodies values (1, 'secret')")
  ends.push(async () => {
    for (const role of ROLES) {
      await client.query(`drop owned by ${roleName(prefix, role)}; drop role ${roleName(prefix, role)}`)
    }
  })
  await client.query(renderGrants({ prefix, grants }))
  return { client, warnings }
}

async function may(client: Client, action: string): Promise<boolean> {
  await client.query('begin')
  try {
    await client.query(action)
    return true
  } catch (error) {
    // Refused for this reason and no other.
    expect(error).toMatchObject({ code: '42501' })
    return false
  } finally {
    await client.query('rollback')
  }
}

describe('roles', () => {
  test.each(ROLES)('J11 a %s may do its work and nothing else', async (role) => {
    const { client, warnings } = await granted('roles_test')
    expect(warnings).toEqual([])
    await client.query(`set role ${roleName('roles_test', role)}`)
    const allowed: string[] = []
    for (const [name, action] of Object.entries(ACTIONS)) if (await may(client, action)) allowed.push(name)
    await client.query('reset role')
    expect(allowed).toEqual(ALLOWED[role])
  })

  test('running the script again takes back what is no longer granted, and keeps the roles', async () => {
    const { client } = await granted('roles_test')
    await client.query('grant select on millrace.bodies to roles_test_viewer')
    await client.query(renderGrants({ prefix: 'roles_test', grants: GRANTS }))
    await client.query('set role roles_test_viewer')
    expect(await may(client, ACTIONS['read a table'])).toBe(false)
    expect(await may(client, ACTIONS['read all jobs'])).toBe(true)
    await client.query('reset role')
  })

  test('it warns of names that match nothing and of functions that cannot work for the role', async () => {
    const { warnings } = await granted('odd_test', {
      ...GRANTS,
      producer: [
        { kind: 'routine', privileges: ['execute'], names: ['claim'], definer: true },
        { kind: 'table', privileges: ['select'], names: ['no_such_table'] },
      ],
    })
    expect(warnings).toEqual([
      'function millrace.claim() needs SECURITY DEFINER with a fixed search_path before odd_test_producer can use it',
      'nothing in schema millrace matches ^(no_such_table)$ for odd_test_producer',
    ])
  })

  test('a stranger gets nothing', async () => {
    const { client } = await granted('roles_test')
    await client.query('create role stranger')
    ends.push(() => client.query('drop role stranger'))
    await client.query('set role stranger')
    for (const action of Object.values(ACTIONS)) expect(await may(client, action)).toBe(false)
    await client.query('reset role')
  })
})
