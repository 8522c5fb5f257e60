// A Postgres store for suites that want an empty one for every test, with a clock that stands still until a test
// moves it. One schema per file, emptied between tests: making it anew would take 30 times as long.
import pg from 'pg'
import { postgres } from '../../src/backends/postgres/backend.ts'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import type { TestStore } from '../conformance/suite.ts'

/** An hour that is full: times in failing tests are easy to read. */
const START_MS = Date.UTC(2030, 0, 1, 12)

export interface TestSchema {
  /** An empty store on the schema, its clock at the start. The one before must be closed. */
  create(): Promise<TestStore>
  close(): Promise<void>
}

export async function createTestSchema(url: string, schema: string): Promise<TestSchema> {
  const migrator = createMigrator({ url, schema })
  await migrator.up()
  await migrator.close()
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  await client.query(`
    create table ${schema}.test_clock (now_ms float8 not null);
    insert into ${schema}.test_clock values (0);
    create or replace function ${schema}.now_at() returns timestamptz language sql volatile
      as $$ select to_timestamp(now_ms / 1000) from ${schema}.test_clock $$;
    create function ${schema}.test_empty() returns void language plpgsql as $$
    declare
      one text;
    begin
      for one in select tablename from pg_tables where schemaname = '${schema}' and tablename not in ('test_clock', 'schema_migrations', 'schema_functions') loop
        execute format('delete from ${schema}.%I', one);
      end loop;
    end $$`)

  return {
    async create() {
      let nowMs = START_MS
      await client.query(`select ${schema}.test_empty()`)
      await client.query(`update ${schema}.test_clock set now_ms = $1`, [nowMs])
      const backend = postgres({ url, schema })
      await backend.start()
      const clock = {
        nowMs: () => nowMs,
        async advance(ms: number) {
          nowMs += ms
          await client.query(`update ${schema}.test_clock set now_ms = $1`, [nowMs])
        },
      }
      return { backend, clock, close: () => backend.stop() }
    },
    async close() {
      await client.query(`drop schema ${schema} cascade`)
      await client.end()
    },
  }
}
