// Somebody began a transaction, took a snapshot, and went home: no dead row can be cleaned up any more.
import { beforeAll, expect, test } from 'vitest'
import { createMillrace, postgres } from '../../../src/index.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { useClient, useDatabase } from './databases.ts'
import { createJobs } from './fixtures/jobs.ts'
import { BALANCED, balance, liveJobs } from './ledger.ts'
import { until } from './until.ts'

let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

test(
  'D1 work goes on beside a transaction that somebody left open, and the doctor names it',
  { timeout: 60_000 },
  async () => {
    const { url } = await useDatabase(server)
    const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })
    await using mill = await createMillrace({ jobs, postgres: { url, poolMax: 4 } })
    await mill.work({ concurrency: 20 })
    await mill.enqueueAndWait('plain', 0, {}, { timeout: '15s' })

    const somebody = await useClient(url, 'gone-home')
    await somebody.query('begin isolation level repeatable read')
    const { rows } = await somebody.query<{ pid: number }>('select pg_backend_pid() as pid')
    const pid = rows[0]?.pid
    for (let round = 0; round < 5; round++) {
      await mill.enqueueMany(Array.from({ length: 400 }, () => ['plain', 0] as const))
    }
    const client = await useClient(url)
    await until(async () => (await liveJobs(client)) === 0, 'two thousand jobs')
    expect(await balance(client, { ledger: '', runs: '' })).toMatchObject(BALANCED)

    // The doctor speaks up after a minute. For its own connection alone, two have gone by.
    await client.query(`create schema later;
    create function later.now() returns timestamptz language sql
      as $$ select pg_catalog.clock_timestamp() + interval '2 minutes' $$`)
    const inTwoMinutes = new URL(url)
    inTwoMinutes.searchParams.set('options', '-c search_path=later,pg_catalog')
    const backend = postgres({ url: inTwoMinutes.href, poolMax: 1 })
    await backend.start()
    try {
      const check = (await backend.diagnose()).find(({ name }) => name === 'held transactions')
      // Others may be at work on this server, and look old too.
      const finding = await check?.run()
      expect(finding).toMatchObject({
        level: 'warn',
        fix: expect.stringMatching(/^select pg_terminate_backend\(\d+\)$/),
      })
      expect(finding?.message).toMatch(new RegExp(`session ${pid} \\(gone-home, idle in transaction\\) for \\d+ s`))
      await somebody.query('rollback')
      expect((await check?.run())?.message).not.toContain('gone-home')
    } finally {
      await backend.stop()
    }
  },
)
