// A start that cannot work says why and what to do, keeps the password to itself, and leaves the process as it was.
import { inspect } from 'node:util'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createMillrace, defineJob } from '../../../src/index.ts'
import type { ErrorCode, MillraceOptions } from '../../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../../support/postgres-server.ts'
import { useClient, useDatabase } from './databases.ts'

const SECRET = 'hunter2-is-my-password'
const hello = defineJob({ name: 'hello', run: () => ({ said: 'hello' }) })
let server: PostgresServer
let right: FreshDatabase

beforeAll(async () => {
  server = await sharedPostgres(18)
  right = await freshDatabase(server)
}, 60_000)
afterAll(() => right.drop())

async function refusalOf(postgres: NonNullable<MillraceOptions<readonly []>['postgres']>): Promise<Error> {
  const started = createMillrace({ jobs: [hello], postgres })
  const refusal: unknown = await started.then(
    (mill) => mill.stop(),
    (error: unknown) => error,
  )
  return refusal instanceof Error ? refusal : new Error('it started')
}

async function expectToWork(url: string): Promise<void> {
  const mill = await createMillrace({ jobs: [hello], postgres: url })
  try {
    await mill.work()
    expect(await mill.enqueueAndWait(hello, undefined, {}, { timeout: '15s' })).toEqual({ said: 'hello' })
  } finally {
    await mill.stop()
  }
}

type WrongUrl = readonly [what: string, make: (right: URL) => string, code: ErrorCode, says: RegExp]

const change = (part: Partial<URL>) => (url: URL) => Object.assign(url, { password: SECRET, ...part }).href

const WRONG_URLS: readonly WrongUrl[] = [
  [
    'an unknown host',
    change({ hostname: 'no-such-host.invalid' }),
    'STORE_UNAVAILABLE',
    /no-such-host\.invalid.*check the host/,
  ],
  [
    'a port that nobody listens on',
    change({ port: '1' }),
    'STORE_UNAVAILABLE',
    /127\.0\.0\.1:1\/.*is the server running, are host and port right/,
  ],
  ['a wrong password', change({}), 'STORE_REFUSED', /the password was refused: correct it/],
  ['an unknown user', change({ username: 'nobody-here' }), 'STORE_REFUSED', /as nobody-here: the password was refused/],
  [
    'a database that is missing',
    (url) => Object.assign(url, { pathname: '/not-there' }).href,
    'STORE_REFUSED',
    /does not exist: `create database "not-there"`/,
  ],
  [
    'a password that was not encoded',
    () => `postgres://me:${SECRET}/#@127.0.0.1:5432/app`,
    'INVALID_OPTION',
    /url is not an address like postgres:\/\//,
  ],
  ['something that is no url', () => SECRET, 'INVALID_OPTION', /url is not an address like postgres:\/\//],
]

test.each(WRONG_URLS)(
  'J13 given %s the start says what to do, keeps the password to itself, and the right url works after it',
  async (_, make, code, says) => {
    const { url } = right
    const error = await refusalOf(make(new URL(url)))
    expect(error).toMatchObject({ name: 'MillraceError', code })
    expect(error.message).toMatch(says)
    const everything = inspect(error, { depth: 12, showHidden: true })
    expect(everything).not.toContain(SECRET)
    expect(everything).not.toContain(decodeURIComponent(new URL(url).password))
    await expectToWork(url)
  },
)

test('J11 a schema that is newer than the package is left alone, and the message says to upgrade', async () => {
  const { url } = await useDatabase(server)
  await expectToWork(url)
  const client = await useClient(url)
  await client.query(
    `insert into millrace.schema_migrations (event, version, name, checksum, applied_by)
     values ('up', 9999, 'from_the_future', 'abc', 'somebody')`,
  )
  for (const migrate of ['auto', 'check'] as const) {
    const error = await refusalOf({ url, migrate })
    expect(error).toMatchObject({ code: 'SCHEMA_TOO_NEW' })
    expect(error.message).toMatch(/version 9999.*upgrade the package/)
  }
  await client.query('delete from millrace.schema_migrations where version = 9999')
  await expectToWork(url)
})

test('J11 with `check` a schema that is missing or older is refused and not touched, and the message says how', async () => {
  const { url } = await useDatabase(server)
  const client = await useClient(url)
  const missing = await refusalOf({ url, migrate: 'check' })
  expect(missing).toMatchObject({ code: 'SCHEMA_TOO_OLD' })
  expect(missing.message).toMatch(/schema millrace is missing: run `millrace migrate up`/)
  const { rows } = await client.query("select to_regnamespace('millrace') as schema")
  expect(rows).toEqual([{ schema: null }])

  await expectToWork(url)
  const kept = await client.query(`create table kept as select * from millrace.schema_migrations;
    delete from millrace.schema_migrations where event = 'up'`)
  expect(kept).toBeDefined()
  const older = await refusalOf({ url, migrate: 'check' })
  expect(older).toMatchObject({ code: 'SCHEMA_TOO_OLD' })
  expect(older.message).toMatch(/is at version 0, but this package needs \d+: run `millrace migrate up`/)
  await client.query(`delete from millrace.schema_migrations;
    insert into millrace.schema_migrations overriding system value select * from kept`)
  await expectToWork(url)
})

test('J11 a start whose connections are all terminated ends with an error, not with the process', async () => {
  const { url, name } = await useDatabase(server)
  const client = await useClient(server.url)
  let isOver = false
  const storm = (async () => {
    let count = 0
    while (!isOver) {
      const { rowCount } = await client.query(
        `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name like 'millrace%'`,
        [name],
      )
      count += rowCount ?? 0
    }
    return count
  })()
  const messages: string[] = []
  for (let round = 0; round < 3; round++) messages.push((await refusalOf(url)).message)
  isOver = true
  expect(await storm).toBeGreaterThan(0)
  // One that slips through is no harm.
  for (const message of messages) expect(message).toMatch(/the connection|it started/)
  await expectToWork(url)
})
