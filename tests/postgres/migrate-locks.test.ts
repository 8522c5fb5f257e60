// Migrations that meet others: many that start at once, and sessions that hold the locks they need.
import { fork } from 'node:child_process'
import { once } from 'node:events'
import { fileURLToPath } from 'node:url'
import { describe, expect, test } from 'vitest'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import type { LogFields } from '../../src/runtime/logger.ts'
import { startPgBouncer } from '../support/pgbouncer.ts'
import { SMALL_SET, SMALL_STEPS } from './migrate-sets.ts'
import { migrationTests } from './migrate-support.ts'

const MIGRATORS = 10
const PROCESSES = 2

const { setup, open, migratorOf, ends } = await migrationTests()

describe('many processes', () => {
  test(`J11 ${MIGRATORS} that start at once in ${PROCESSES} processes migrate once`, { timeout: 60_000 }, async () => {
    const { url } = await setup()
    const program = fileURLToPath(new URL('./migrate-process.ts', import.meta.url))
    const children = Array.from({ length: PROCESSES }, () => {
      const child = fork(program, [url, String(MIGRATORS / PROCESSES)], { execArgv: ['--import', 'tsx'] })
      ends.push(() => Promise.resolve(child.kill()))
      return child
    })
    await Promise.all(children.map((child) => once(child, 'message')))
    for (const child of children) child.send('go')
    const replies = await Promise.all(children.map((child) => once(child, 'message')))
    const results = replies.flatMap(([reply]) => reply as (string | readonly string[])[])
    expect(results.filter((result) => typeof result === 'string')).toEqual([])
    expect(results).toHaveLength(MIGRATORS)
    expect(results.flat().sort()).toEqual([...SMALL_STEPS].sort())
    const { history, drift } = await migratorOf(url).status()
    expect(drift).toEqual([])
    expect(history.map(({ event, version }) => `${event} ${version}`)).toEqual(['functions 3', 'up 3', 'up 2', 'up 1'])
  })

  test('a migration that was committed a moment before we got the lock is seen', async () => {
    const { url, client } = await setup()
    const other = await open(url)
    const query = client.query.bind(client) as (text: string, values?: unknown[]) => Promise<unknown>
    let isMigrated = false
    // The moment cannot be hit from outside: the other one commits after we got the lock, without asking for it.
    const late = async (text: string, values?: unknown[]): Promise<unknown> => {
      const result = await query(text, values)
      if (!isMigrated && text.includes('pg_try_advisory_xact_lock')) {
        isMigrated = true
        await other.query(migrator.sql('up').replace(/select pg_advisory_xact_lock.*;/g, ''))
      }
      return result
    }
    const migrator = createMigrator({ client: Object.assign(client, { query: late }), ...SMALL_SET })
    expect(await migrator.up()).toEqual({ from: 0, to: 3, steps: [] })
    expect(isMigrated).toBe(true)
  })

  test('whoever waits too long for another migrator says who it is', async () => {
    const { url } = await setup()
    const holder = await open(url, 'stuck deploy')
    await holder.query('begin')
    const migrator = migratorOf(url, { waitMs: 300 })
    const [, key] = /pg_advisory_xact_lock\((-?\d+)\)/.exec(migrator.sql('up')) ?? []
    await holder.query(`select pg_advisory_xact_lock(${key})`)
    await expect(migrator.up()).rejects.toMatchObject({
      code: 'MIGRATION_BLOCKED',
      retryable: true,
      message: expect.stringMatching(
        /another process migrates schema millrace.*within 300 ms; held by pid \d+ \(stuck deploy, user \w+, idle in transaction/,
      ) as string,
    })
    await holder.query('rollback')
    expect(await migrator.up()).toMatchObject({ to: 3 })
  })

  test('a stopped process does not wait on', async () => {
    const { url } = await setup()
    const holder = await open(url)
    const stop = new AbortController()
    const migrator = migratorOf(url, { signal: stop.signal })
    await holder.query('begin')
    await holder.query(`select pg_advisory_xact_lock(${/lock\((-?\d+)\)/.exec(migrator.sql('up'))?.[1]})`)
    const up = migrator.up()
    stop.abort()
    await expect(up).rejects.toMatchObject({ code: 'STOPPED' })
  })
})

describe('behind PgBouncer in transaction mode', () => {
  test('J11 many that start at once migrate once, and leave no setting behind', { timeout: 60_000 }, async () => {
    const { url } = await setup()
    const bouncer = await startPgBouncer(url, { poolMode: 'transaction', poolSize: 3 })
    ends.push(() => bouncer.stop())
    const settings = 'select name, setting from pg_settings where source not in ($1, $2) order by name'
    const client = await open(bouncer.url)
    const before = await client.query(settings, ['default', 'override'])
    const reports = await Promise.all(Array.from({ length: MIGRATORS }, () => migratorOf(bouncer.url).up()))
    expect(reports.flatMap(({ steps }) => steps).sort()).toEqual([...SMALL_STEPS].sort())
    expect((await client.query(settings, ['default', 'override'])).rows).toEqual(before.rows)
    expect(await migratorOf(bouncer.url).status()).toMatchObject({ version: 3, functions: 'current', drift: [] })
  })

  test.each([3, 1])('who is in the way is named with a pool of %i', { timeout: 60_000 }, async (poolSize) => {
    const { url } = await setup()
    await migratorOf(url).up(1)
    const writer = await open(url, 'open writer')
    await writer.query('begin')
    await writer.query('insert into millrace.things (id) values (1)')
    const bouncer = await startPgBouncer(url, { poolMode: 'transaction', poolSize })
    ends.push(() => bouncer.stop())
    const limits = { lockTimeoutMs: 300, attemptsMax: 2 }
    await expect(migratorOf(bouncer.url, limits).up()).rejects.toMatchObject({
      code: 'MIGRATION_BLOCKED',
      details: { blockers: [expect.objectContaining({ applicationName: 'open writer' })] },
    })
  })
})

describe('what is in the way', () => {
  const limits = { lockTimeoutMs: 1_000, attemptsMax: 2, random: () => 0 }

  test(
    'J11 beside an open reader a writer is held up for no longer than one lock timeout',
    { timeout: 30_000 },
    async () => {
      const { url } = await setup()
      await migratorOf(url).up(1)
      const reader = await open(url, 'nightly report')
      await reader.query('begin')
      await reader.query('select * from millrace.things')
      const writer = await open(url)

      const migrator = migratorOf(url, limits)
      let isOver = false
      const up = migrator.up().finally(() => (isOver = true))
      const refused = expect(up).rejects.toMatchObject({
        code: 'MIGRATION_BLOCKED',
        message: expect.stringMatching(
          /^migration 0002_tags up did not get its locks in 2 tries of 1000 ms; held by pid \d+ \(nightly report, user \w+, idle in transaction, transaction of \d s\): wait for it, or end it with `select pg_terminate_backend\(\d+\)`/,
        ) as string,
        details: {
          blockers: [expect.objectContaining({ applicationName: 'nightly report', state: 'idle in transaction' })],
        },
      })
      const waitsMs: number[] = []
      while (!isOver) {
        const startMs = performance.now()
        await writer.query('insert into millrace.things (id) values ($1)', [waitsMs.length])
        waitsMs.push(performance.now() - startMs)
      }
      await refused
      const longestMs = Math.max(...waitsMs)
      // It was held up, so the test saw what it is about; half a second is for the stalls of the machine.
      expect(longestMs).toBeGreaterThan(300)
      expect(longestMs).toBeLessThan(1_500)
      expect(await migrator.status()).toMatchObject({ version: 1 })

      await reader.query('commit')
      expect(await migrator.up()).toMatchObject({ to: 3 })
    },
  )

  test('an open writer is named exactly, and the next try succeeds when it ends', { timeout: 30_000 }, async () => {
    const { url } = await setup()
    await migratorOf(url).up(1)
    // A bystander holds a lock in the schema, too, but not one that is in the way.
    const bystander = await open(url, 'bystander')
    await bystander.query('begin')
    await bystander.query('select * from millrace.schema_migrations')
    const writer = await open(url, 'open writer')
    await writer.query('begin')
    await writer.query('insert into millrace.things (id) values (1)')

    const migrator = migratorOf(url, limits)
    const error: unknown = await migrator.up().catch((reason: unknown) => reason)
    expect(error).toMatchObject({
      code: 'MIGRATION_BLOCKED',
      details: { blockers: [expect.objectContaining({ applicationName: 'open writer' })] },
    })

    const warned: string[] = []
    const warn = (_: LogFields, message: string): void => {
      warned.push(message)
      void writer.query('commit')
    }
    const patient = migratorOf(url, { ...limits, attemptsMax: 10, logger: { ...silentLogger, warn } })
    expect(await patient.up()).toMatchObject({ to: 3 })
    expect(warned).toEqual(['a migration waits for locks and will try again'])
    expect(await writer.query('select tags from millrace.things')).toMatchObject({ rows: [{ tags: [] }] })
  })

  test('without a second connection it names those who hold locks in the schema', async () => {
    const { url, client } = await setup()
    await migratorOf(url).up(1)
    const writer = await open(url, 'open writer')
    await writer.query('begin')
    await writer.query('insert into millrace.things (id) values (1)')
    const migrator = createMigrator({ client, ...SMALL_SET, ...limits, attemptsMax: 1, lockTimeoutMs: 50 })
    await expect(migrator.up()).rejects.toMatchObject({
      code: 'MIGRATION_BLOCKED',
      details: { blockers: [expect.objectContaining({ applicationName: 'open writer' })] },
    })
    // The connection is not left in a broken transaction.
    expect(await client.query('select 1 as one')).toMatchObject({ rows: [{ one: 1 }] })
  })
})
