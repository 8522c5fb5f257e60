// A store for tests of retention: each test has a database of its own, since partitions outlive its rows, a clock that
// it moves by months, and plain SQL beside the ports.
import pg from 'pg'
import { afterAll, expect } from 'vitest'
import { postgres } from '../../src/backends/postgres/backend.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import type { ClaimedJob, JobId, NewJob } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { pruneRules } from '../../src/maintenance/pruner.ts'
import { checkRetention } from '../../src/maintenance/retention-options.ts'
import type { RetentionOptions } from '../../src/maintenance/retention-options.ts'
import type { RetainReply } from '../../src/store/ports.ts'
import { createWorld, queueSettings } from '../conformance/world.ts'
import type { World } from '../conformance/world.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase, PostgresVersion } from '../support/postgres-server.ts'

export const DAY = 24 * 60 * 60_000
/** A Thursday, where weeks since 1970 begin: partitions of a week are easy to tell. */
export const START_MS = Date.UTC(2030, 0, 3)
const STEPS_MAX = 2_000

export interface RetentionWorld extends World {
  readonly url: string
  sql(text: string, ...values: readonly unknown[]): Promise<Record<string, unknown>[]>
  /** The same, one value. */
  value(text: string, ...values: readonly unknown[]): Promise<unknown>
  /** One pass, as the pruner makes it. */
  step(options?: RetentionOptions, limit?: number): Promise<RetainReply>
  /** Passes until nothing is due. */
  settle(options?: RetentionOptions, limit?: number): Promise<void>
  /** Adds jobs and ends each at once, as `end` says. */
  ended(end: (run: ClaimedJob) => Transition, ...jobs: readonly Partial<NewJob>[]): Promise<readonly JobId[]>
  /** Many finished jobs at once, written by hand: `count` of them, minted within a minute. */
  fill(count: number, ended: 1 | 2 | 3, queue?: string): Promise<void>
  /** The partitions that hold the body and the attempts of a job, without the names of the tables. */
  placeOf(id: JobId): Promise<readonly string[]>
  partitions(table?: string): Promise<readonly string[]>
  /** A job id of another moment. */
  idAt(ms: number): JobId
  /** Everything that counts agrees with what is there, and nothing hangs on a job that is not. */
  expectSound(): Promise<void>
  /** Another client of the same store. */
  open(): Promise<{ readonly sql: pg.Client; readonly close: () => Promise<void> }>
}

export function retentionWorlds(version: PostgresVersion): { readonly setup: () => Promise<RetentionWorld> } {
  let template: Promise<FreshDatabase> | undefined
  const ends: (() => Promise<unknown>)[] = []
  afterAll(async () => {
    for (const end of ends.toReversed()) await end()
    await (await template)?.drop()
  })

  async function makeTemplate(): Promise<FreshDatabase> {
    const database = await freshDatabase(await sharedPostgres(version))
    const migrator = createMigrator({ url: database.url })
    await migrator.up()
    await migrator.close()
    const client = new pg.Client(database.url)
    await client.connect()
    await client.query(CLOCK)
    await client.end()
    return database
  }

  return {
    async setup() {
      const server = await sharedPostgres(version)
      const database = await freshDatabase(server, (await (template ??= makeTemplate())).name)
      const { url } = database
      const client = new pg.Client(url)
      await client.connect()
      await client.query(`alter database ${database.name} set synchronous_commit = off`)
      const backend = postgres({ url, poolMax: 4 })
      await backend.start()
      ends.push(async () => {
        await backend.stop()
        await client.end()
        await database.drop()
      })
      let nowMs = START_MS
      const clock = {
        nowMs: () => nowMs,
        async advance(ms: number) {
          nowMs += ms
          await client.query('update millrace.test_clock set now_ms = $1', [nowMs])
        },
      }
      return createRetentionWorld(createWorld(backend, clock), client, url)
    },
  }
}

const CLOCK = `
  create table millrace.test_clock (now_ms float8 not null);
  insert into millrace.test_clock values (${START_MS});
  create or replace function millrace.now_at() returns timestamptz language sql volatile
    as $$ select to_timestamp(now_ms / 1000) from millrace.test_clock $$`

function createRetentionWorld(world: World, client: pg.Client, url: string): RetentionWorld {
  const sql: RetentionWorld['sql'] = async (text, ...values) => (await client.query(text, [...values])).rows
  const value: RetentionWorld['value'] = async (text, ...values) =>
    Object.values((await sql(text, ...values))[0] ?? {})[0]
  const step: RetentionWorld['step'] = async (options, limit = 1_000) => {
    const periods = checkRetention(options)
    const { archiveMs, logsMs, partitionMs } = periods
    const rules = pruneRules(await world.queues.list(), periods)
    return world.jobs.retain!({ rules, archiveMs, logsMs, partitionMs }, limit)
  }
  return {
    ...world,
    url,
    sql,
    value,
    step,
    async settle(options, limit) {
      for (let no = 0; no < STEPS_MAX; no++) if ((await step(options, limit)).next === 'later') return
      throw new Error(`retention has not come to an end after ${STEPS_MAX} passes`)
    },
    async ended(end, ...jobs) {
      const ids = await world.add(...jobs)
      const worker = await world.worker()
      const queues = [...new Set(jobs.map(({ queue = 'mail' }) => queue))]
      for (let left = ids.length; left > 0;) {
        const runs = await worker.claim(Math.min(left, 1_000), queues)
        expect(runs.length).toBeGreaterThan(0)
        await world.apply(...runs.map((run) => end(run)))
        left -= runs.length
      }
      return ids
    },
    async fill(count, ended, queue = 'mail') {
      await world.queues.ensure([queueSettings(queue)])
      await sql(FILL, count, ended, queue)
    },
    async placeOf(id) {
      const rows = await sql(
        `select regexp_replace(c.relname, '^job_(bodies|attempts)_', '') as place from pg_class c
         join (select tableoid as leaf from millrace.job_bodies where id = $1
               union all select distinct tableoid from millrace.job_attempts where job_id = $1) p on p.leaf = c.oid`,
        id,
      )
      return rows.map(({ place }) => String(place))
    },
    async partitions(table = 'job_bodies') {
      const rows = await sql('select leaf from millrace.time_partitions($1) order by lower', table)
      return rows.map(({ leaf }) => String(leaf).slice(table.length + 1))
    },
    idAt(ms) {
      const hex = Math.floor(ms).toString(16).padStart(12, '0')
      return `${hex.slice(0, 8)}-${hex.slice(8)}${world.newId().slice(13)}` as JobId // the shape of an id
    },
    async expectSound() {
      expect(await sql(COUNTS)).toEqual([])
      expect(await sql(ORPHANS)).toEqual([])
    },
    async open() {
      const other = new pg.Client(url)
      await other.connect()
      return { sql: other, close: () => other.end() }
    },
  }
}

const FILL = `
  with made as (
    insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload)
    select (left(millrace.uuid_at(n.at + (g.no % 60000) * interval '1 millisecond')::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid,
           n.at, n.at, q.id, 1000, 3, 100, 'filler', '{}'
    from generate_series(1, $1::int) as g(no), (select millrace.now_at() as at) n, millrace.job_queues q where q.name = $3
    returning id, queue_id, enqueued_at
  ), logged as (
    insert into millrace.job_attempts (job_id, no, started_at, finished_at, queue_id, attempt, attempt_count, crash_count, status, ended)
    select m.id, 1, m.enqueued_at, m.enqueued_at, m.queue_id, 1, 1, 0, case $2::int when 1 then 1 when 2 then 3 else 4 end, $2::int from made m
  )
  insert into millrace.final_counts (queue_id, ended, n) select queue_id, $2::int, count(*) from made group by 1`

/** Counters that a recount does not confirm. */
const COUNTS = `
  select * from (
    select 'final ' || queue_id || ' ' || ended as what, sum(n) as counted from millrace.final_counts group by 1
    union all
    select 'kept ' || id, kept from millrace.batches) c
  full join (
    select 'final ' || queue_id || ' ' || ended as what, count(*) as found from millrace.job_attempts where ended is not null group by 1
    union all
    select 'kept ' || b.id, (select count(*) from millrace.job_bodies j where j.batch_id = b.id) from millrace.batches b) f using (what)
  where coalesce(counted, 0) <> coalesce(found, 0)`

/** Rows that belong to no job, and jobs that are in no place or in two. */
const ORPHANS = `
  select 'attempt' as what, job_id as id from millrace.job_attempts where job_id not in (select id from millrace.job_bodies)
  union all select 'state', id from millrace.job_states where id not in (select id from millrace.job_bodies)
  union all select 'parent', child from millrace.job_parents where child not in (select id from millrace.job_bodies)
  union all select 'line', job_id from millrace.job_lines
    where job_id not in (select id from millrace.job_bodies union all select id from millrace.job_archive)
  union all select 'job', id from millrace.jobs where status is null
  union all select 'archived twice', id from millrace.job_archive where id in (select id from millrace.job_bodies)`
