// The servers that other tests rely on are what they say they are.
import pg from 'pg'
import { afterAll, expect, test, vi } from 'vitest'
import { startPgBouncer } from './pgbouncer.ts'
import { freshDatabase, sharedPostgres, startTestPostgres } from './postgres-server.ts'

// For a busy disk, and for the first use, which may install packages.
vi.setConfig({ testTimeout: 180_000, hookTimeout: 60_000 })

const ends: (() => Promise<void>)[] = []
afterAll(async () => {
  for (const end of ends) await end()
})

test.each([15, 18] as const)('PostgreSQL %i keeps what was committed over both kinds of restart', async (version) => {
  const server = await startTestPostgres({ version, settings: { work_mem: '5MB' } })
  ends.push(() => server.stop())
  const rows = await query(server.url, "select current_setting('server_version_num')::int / 10000 as version")
  expect(rows).toEqual([{ version }])
  expect(await query(server.url, 'show fsync')).toEqual([{ fsync: 'on' }])
  expect(await query(server.url, 'show max_connections')).toEqual([{ max_connections: '100' }])
  expect(await query(server.url, 'show work_mem')).toEqual([{ work_mem: '5MB' }])
  const { pid } = server
  await query(server.url, 'create table kept as select 1 as one')
  for (const mode of ['fast', 'immediate'] as const) {
    await server.restart(mode)
    expect(await query(server.url, 'select one from kept')).toEqual([{ one: 1 }])
  }
  expect(server.pid).not.toBe(pid)
  await server.stop()
  await expect(query(server.url, 'select 1')).rejects.toThrow(/ECONNREFUSED/)
  await server.start()
  expect(await query(server.url, 'select one from kept')).toEqual([{ one: 1 }])
})

test('those who ask for the shared server at once get the same one, and each a database of its own', async () => {
  const [server, other] = await Promise.all([sharedPostgres(18), sharedPostgres(18)])
  expect(other).toEqual(server)
  const [first, second] = await Promise.all([freshDatabase(server), freshDatabase(server)])
  await query(first.url, 'create table mine (id int)')
  expect(await query(second.url, "select to_regclass('mine') as mine")).toEqual([{ mine: null }])
  const copy = await freshDatabase(server, first.name)
  expect(await query(copy.url, "select to_regclass('mine')::text as mine")).toEqual([{ mine: 'mine' }])
  for (const database of [first, second, copy]) await database.drop()
  await expect(query(first.url, 'select 1')).rejects.toThrow(/does not exist/)
})

test('PgBouncer gives a server connection for one transaction only', async () => {
  const database = await freshDatabase(await sharedPostgres(18))
  const bouncer = await startPgBouncer(database.url, { poolMode: 'transaction', poolSize: 1 })
  ends.push(
    () => bouncer.stop(),
    () => database.drop(),
  )
  const [one, two] = [new pg.Client(bouncer.url), new pg.Client(bouncer.url)]
  await Promise.all([one.connect(), two.connect()])
  const pid = 'select pg_backend_pid() as pid'
  const { rows } = await one.query(pid)
  expect((await two.query(pid)).rows).toEqual(rows)
  await Promise.all([one.end(), two.end()])
})

async function query(url: string, text: string): Promise<readonly unknown[]> {
  const client = new pg.Client(url)
  client.on('error', () => undefined)
  await client.connect()
  try {
    return (await client.query<Record<string, unknown>>(text)).rows
  } finally {
    await client.end()
  }
}
