// Migrations against a real server: up, down, status and text; what is refused and what it says.
import { describe, expect, test } from 'vitest'
import { checkSchema, ensureSchema } from '../../src/backends/postgres/migrate-start.ts'
import type { MigrationSet } from '../../src/backends/postgres/migrate-set.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { splitStatements } from '../../src/backends/postgres/sql-text.ts'
import { SMALL_SET, SMALL_STEPS, functionOf, olderSet } from './migrate-sets.ts'
import { leftIn, migrationTests } from './migrate-support.ts'

const { server, setup, migratorOf, ends } = await migrationTests()

describe('up and down', () => {
  test('J11 the way up and down again leaves an empty database', async () => {
    const { url, client } = await setup()
    const migrator = migratorOf(url)
    expect(await migrator.up()).toEqual({ from: 0, to: 3, steps: SMALL_STEPS })
    expect(await client.query('select * from millrace.first_thing()')).toMatchObject({ rows: [] })
    const down = await migrator.down(0)
    expect(down).toMatchObject({ from: 3, to: 0 })
    expect(down.steps.at(-1)).toBe('removing the schema')
    expect(await leftIn(client)).toEqual([])
    expect(await migrator.up()).toMatchObject({ to: 3 })
  })

  test('J11 the status tells version, history and what is pending', async () => {
    const { url } = await setup()
    const migrator = migratorOf(url)
    expect(await migrator.status()).toMatchObject({
      version: 0,
      latest: 3,
      applied: [],
      functions: 'outdated',
      drift: [],
    })
    await migrator.up(2)
    const half = await migrator.status()
    expect(half.applied.map(({ version, name }) => [version, name])).toEqual([
      [1, 'things'],
      [2, 'tags'],
    ])
    expect(half.pending).toEqual([{ version: 3, name: 'marks' }])
    expect(half.applied[0]?.by).toMatch(/^\w+ from .+ pid \d+$/)
    expect(Math.abs((half.applied[0]?.atMs ?? 0) - Date.now())).toBeLessThan(60_000)

    await migrator.up()
    await migrator.down(1)
    const { version, history, drift, functions } = await migrator.status()
    expect({ version, drift, functions }).toEqual({ version: 1, drift: [], functions: 'outdated' })
    expect(history.map((row) => `${row.event} ${row.version}`)).toEqual([
      'down 2',
      'down 3',
      'functions 3',
      'functions 3',
      'up 3',
      'up 2',
      'up 1',
    ])
  })

  test('J11 the printed SQL does what the runner does', async () => {
    const { url, client } = await setup()
    const migrator = migratorOf(url)
    await client.query(migrator.sql('up', 2))
    expect(await migrator.status()).toMatchObject({ version: 2, drift: [] })
    await expect(client.query(migrator.sql('up', 3, 0))).rejects.toThrow(
      'goes from schema version 0, but the database is at version 2',
    )
    await client.query('rollback')
    await client.query(migrator.sql('up', 3, 2))
    expect(await migrator.status()).toMatchObject({ version: 3, functions: 'current', drift: [] })
    expect(await migrator.up()).toMatchObject({ steps: [] })
    await client.query(migrator.sql('down'))
    expect(await leftIn(client)).toEqual([])
  })

  test('another schema name holds everything, and two schemas live side by side', async () => {
    const { url, client } = await setup()
    const [one, other] = [migratorOf(url), migratorOf(url, { schema: 'order' })]
    await one.up()
    await other.up()
    expect(await other.status()).toMatchObject({ version: 3, functions: 'current', drift: [] })
    await one.down(0)
    expect(await client.query('select * from "order".all_things')).toMatchObject({ rows: [] })
    await other.down(0)
    expect(await leftIn(client)).toEqual([])
  })

  test('a schema that an administrator made stays, and so does what others put into ours', async () => {
    const { url, client } = await setup()
    await client.query('create schema millrace')
    await migratorOf(url).up()
    await migratorOf(url).down(0)
    expect(await leftIn(client)).toEqual(['schema millrace'])

    const own = migratorOf(url, { schema: 'mine' })
    await own.up()
    await client.query('create table mine.theirs ()')
    await own.down(0)
    expect(await leftIn(client)).toEqual(['relation theirs', 'schema millrace', 'schema mine'])
  })

  test('a view of somebody else stops the way down and is not dropped', async () => {
    const { url, client } = await setup()
    const migrator = migratorOf(url)
    await migrator.up()
    await client.query('create view public.report as select count(*) from millrace.all_things')
    await expect(migrator.down(0)).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: expect.stringMatching(
        /outside of Millrace depends on .* drop it first[^]*view public\.report depends on view millrace\.all_things/,
      ) as string,
    })
    expect(await migrator.status()).toMatchObject({ version: 3, functions: 'current', drift: [] })
  })

  test('a migration that fails names its line and keeps nothing', async () => {
    const { url, client } = await setup()
    const broken = {
      version: 1,
      name: 'broken',
      up: 'create table millrace.a ();\n\ncreate tabel millrace.b ();',
      down: '',
    }
    await expect(migratorOf(url, { migrations: [broken], functions: [] }).up()).rejects.toMatchObject({
      code: 'MIGRATION_FAILED',
      message: 'migration 0001_broken up, line 3: syntax error at or near "tabel"; nothing of it was kept',
    })
    expect(await leftIn(client)).toEqual([])
  })

  test('works on a connection of the caller', async () => {
    const { client } = await setup()
    const migrator = createMigrator({ client, ...SMALL_SET })
    expect(await migrator.up()).toMatchObject({ to: 3 })
    await migrator.close()
    expect(await checkSchema(client, 'millrace', SMALL_SET)).toBe('current')
  })

  test('an index is built outside a transaction, and a half-built one is cleared first', async () => {
    const { url, client } = await setup()
    const concurrently: MigrationSet = {
      migrations: [
        SMALL_SET.migrations[0]!,
        {
          version: 2,
          name: 'index',
          up: '-- millrace: outside a transaction\ncreate unique index concurrently if not exists things_note on millrace.things (note);',
          down: '-- millrace: outside a transaction\ndrop index concurrently if exists millrace.things_note;',
        },
      ],
      functions: SMALL_SET.functions.slice(0, 1),
    }
    const migrator = migratorOf(url, concurrently)
    await migrator.up(1)
    await client.query("insert into millrace.things (id, note) values (1, 'same'), (2, 'same')")
    await expect(migrator.up()).rejects.toMatchObject({ code: 'MIGRATION_FAILED' })
    expect((await migrator.status()).drift).toEqual([
      'index millrace.things_note is not valid: `drop index millrace.things_note`, then migrate up',
    ])
    await client.query('delete from millrace.things where id = 2')
    expect(await migrator.up()).toMatchObject({ to: 2 })
    expect(await migrator.status()).toMatchObject({ functions: 'current', drift: [] })
    await expect(client.query("insert into millrace.things (id, note) values (3, 'same')")).rejects.toThrow(
      'things_note',
    )
    await migrator.down(1)
    await migrator.up(2)
    await migrator.down(0)
    expect(await leftIn(client)).toEqual([])
    await client.query(migrator.sql('up', 1))
    // psql sends statement by statement; the driver would make one transaction of them.
    for (const { text } of splitStatements(migrator.sql('up', 2, 1))) await client.query(text)
    expect(await migrator.status()).toMatchObject({ version: 2, functions: 'current', drift: [] })
  })
})

describe('at start', () => {
  test('a newer schema is refused by everything', async () => {
    const { url, client } = await setup()
    await migratorOf(url).up()
    const older = olderSet(SMALL_SET, 2)
    const refusal = { code: 'SCHEMA_TOO_NEW', message: expect.stringMatching(/upgrade the package/) as string }
    expect(await checkSchema(client, 'millrace', older)).toBe('newer')
    const { version, latest, drift } = await migratorOf(url, older).status()
    expect({ version, latest, drift }).toEqual({
      version: 3,
      latest: 2,
      drift: ['version 3 is newer than this package: upgrade it'],
    })
    await expect(migratorOf(url, older).up()).rejects.toMatchObject(refusal)
    await expect(migratorOf(url, older).down(0)).rejects.toMatchObject(refusal)
    await expect(ensureSchema({ client, migrate: 'auto', url, ...older })).rejects.toMatchObject(refusal)
    await expect(ensureSchema({ client, migrate: 'check', ...older })).rejects.toMatchObject(refusal)
    expect(await migratorOf(url).status()).toMatchObject({ version: 3, functions: 'current', drift: [] })
  })

  test('a missing or older schema is refused by a check and migrated otherwise', async () => {
    const { url, client } = await setup()
    const refusal = { code: 'SCHEMA_TOO_OLD', message: expect.stringMatching(/run `millrace migrate up`/) as string }
    await expect(ensureSchema({ client, migrate: 'check', ...SMALL_SET })).rejects.toMatchObject(refusal)
    expect(await checkSchema(client, 'millrace', SMALL_SET)).toBe('missing')
    await ensureSchema({ client, migrate: 'auto', ...olderSet(SMALL_SET, 2) })
    expect(await checkSchema(client, 'millrace', SMALL_SET)).toBe('older')
    await expect(ensureSchema({ client, migrate: 'check', ...SMALL_SET })).rejects.toMatchObject(refusal)
    await ensureSchema({ client, migrate: 'auto', url, ...SMALL_SET })
    await ensureSchema({ client, migrate: 'check', ...SMALL_SET })
    expect(await checkSchema(client, 'millrace', SMALL_SET)).toBe('current')
  })

  test('changed functions alone are created again, and what is gone from them is dropped', async () => {
    const { url, client } = await setup()
    await migratorOf(url).up()
    await client.query(
      'create role reader; grant usage on schema millrace to reader; grant execute on function millrace.thing_count() to reader',
    )
    ends.push(() => client.query('drop owned by reader; drop role reader'))
    const functions = [
      { name: '10_things', sql: functionOf('thing_count', 'select 7') },
      {
        name: '20_more',
        sql: 'create or replace function millrace.refuse(int) returns int language sql as $$ select $1 $$',
      },
    ]
    const changed = { ...SMALL_SET, functions }
    expect(await checkSchema(client, 'millrace', changed)).toBe('functions-differ')
    expect(await migratorOf(url, changed).up()).toEqual({ from: 3, to: 3, steps: ['creating the functions'] })
    expect((await leftIn(client)).filter((what) => what.startsWith('routine'))).toEqual([
      'routine refuse',
      'routine thing_count',
    ])
    await client.query('set role reader')
    expect(await client.query('select millrace.thing_count()::int as n')).toMatchObject({ rows: [{ n: 7 }] })
    // Nobody else may call what was not granted, even with the schema open.
    await expect(client.query('select millrace.refuse(1)')).rejects.toMatchObject({ code: '42501' })
    await client.query('reset role')
  })
})

describe('drift', () => {
  test('J11 hand-edited functions and views are found, and put back', async () => {
    const { url, client } = await setup()
    const migrator = migratorOf(url)
    await migrator.up()
    await client.query(
      `create or replace function millrace.thing_count() returns bigint language sql stable as 'select 1::bigint'`,
    )
    await client.query(
      'create or replace view millrace.all_things as select id, note, 0::bigint as n from millrace.things',
    )
    await client.query('drop trigger no_marks on millrace.marks')
    expect((await migrator.status()).drift).toEqual([
      'function millrace.thing_count() was changed by hand: `millrace migrate up --functions` creates it again',
      'trigger no_marks on millrace.marks is missing: `millrace migrate up --functions` creates it again',
      'view millrace.all_things was changed by hand: `millrace migrate up --functions` creates it again',
    ])
    expect(await migrator.up()).toMatchObject({ steps: [] })
    expect(await migrator.up(3, { functions: true })).toMatchObject({ steps: ['creating the functions'] })
    expect((await migrator.status()).drift).toEqual([])
  })

  test('J11 changed and missing migrations are found, and nothing is built on them', async () => {
    const { url, client } = await setup()
    await migratorOf(url).up(2)
    const [one, two, three] = SMALL_SET.migrations
    const reworded = { ...one!, up: `-- other words\n${one!.up.replaceAll(' ', '\n  ')}` }
    expect((await migratorOf(url, { migrations: [reworded, two!, three!] }).status()).drift).toEqual([])
    const changed = { ...one!, up: one!.up.replace('int', 'bigint') }
    const other = migratorOf(url, { migrations: [changed, two!, three!] })
    expect((await other.status()).drift).toEqual([
      '0001_things was changed after it was applied: restore its text, or go down to 0 and up again',
    ])
    await expect(other.up()).rejects.toMatchObject({ code: 'SCHEMA_DRIFT' })

    await client.query('delete from millrace.schema_migrations where version = 1')
    expect((await migratorOf(url).status()).drift).toEqual([
      '0001_things was never applied, though 2 was: go down to 0, then up',
    ])
    await client.query("update millrace.schema_migrations set name = 'labels'")
    expect((await migratorOf(url).status()).drift.at(-1)).toBe(
      'version 2 was applied as 0002_labels, but is 0002_tags here: is this the same package?',
    )
  })
})

describe('a connection that does not work', () => {
  test.each([
    [
      'a wrong port',
      (): string => 'postgres://u:secret@127.0.0.1:1/app',
      'STORE_UNAVAILABLE',
      /127\.0\.0\.1:1\/app as u: nothing accepts connections there/,
    ],
    ['a wrong host', (): string => 'postgres://u:secret@no.such.host.invalid/app', 'STORE_UNAVAILABLE', /host name/],
    [
      'a missing database',
      (): string => urlWith({ pathname: 'nowhere' }),
      'STORE_REFUSED',
      /`create database "nowhere"`/,
    ],
    ['a wrong password', (): string => urlWith({ password: 'secret' }), 'STORE_REFUSED', /password was refused/],
    ['no url at all', (): string => 'postgres://u:secret@[oops/app', 'INVALID_OPTION', /url is not an address/],
  ] as const)('%s says what to do', async (_, urlOf, code, message) => {
    const error: unknown = await migratorOf(urlOf(), { connectTimeoutMs: 3_000 })
      .up()
      .catch((reason: unknown) => reason)
    expect(error).toMatchObject({ code, message: expect.stringMatching(message) as string })
    expect((error as Error).message).not.toContain('secret')
  })

  test('a user who may not create the schema is told how', async () => {
    const { url, name, client } = await setup()
    await client.query(`revoke create on database ${name} from public; create role plain login password 'plain'`)
    ends.push(() => client.query('drop owned by plain; drop role plain'))
    const plain = Object.assign(new URL(url), { username: 'plain', password: 'plain' }).href
    await expect(migratorOf(plain).up()).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(
        /may not create schema millrace: .*`create schema millrace authorization <user>`/,
      ) as string,
    })
    await client.query('create schema millrace authorization plain')
    expect(await migratorOf(plain).up()).toMatchObject({ to: 3 })
  })

  test('a user who does not own the schema works with it, and is told who may migrate it', async () => {
    const { url, client } = await setup()
    await migratorOf(url).up(2)
    await client.query('create role guest login; grant usage on schema millrace to guest')
    ends.push(() => client.query('reset role; drop owned by guest; drop role guest'))
    await client.query('set role guest')
    await expect(checkSchema(client, 'millrace', SMALL_SET)).rejects.toMatchObject({ code: 'STORE_REFUSED' })
    await client.query('reset role; grant select on millrace.schema_migrations to guest; set role guest')
    expect(await checkSchema(client, 'millrace', SMALL_SET)).toBe('older')
    await expect(ensureSchema({ client, migrate: 'auto', ...SMALL_SET })).rejects.toMatchObject({
      code: 'STORE_REFUSED',
      message: expect.stringMatching(
        /does not own schema millrace .* run `millrace migrate up` as its owner/,
      ) as string,
    })
    await client.query('reset role')
    await migratorOf(url).up()
    await client.query('set role guest')
    await ensureSchema({ client, migrate: 'auto', ...SMALL_SET })
  })
})

function urlWith(parts: Partial<URL>): string {
  return Object.assign(new URL(server.url), parts).href
}
