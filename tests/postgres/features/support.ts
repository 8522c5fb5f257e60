// What the feature tests on Postgres stand on: a database per test, processes over it that are stopped at its end, and
// plain SQL. Time is real: a test waits for an event, a result or a condition, never for a while.
import pg from 'pg'
import { afterAll, beforeAll } from 'vitest'
import { createMigrator } from '../../../src/backends/postgres/migrate.ts'
import { createMillrace, postgres } from '../../../src/index.ts'
import type { AnyJob, Backend, Millrace, MillraceOptions, PostgresOptions } from '../../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../../support/postgres-server.ts'
import type { FreshDatabase, PostgresServer } from '../../support/postgres-server.ts'

export interface Place extends AsyncDisposable {
  readonly url: string
  /** A Millrace with connections of its own, as in a process of its own. */
  process<const Known extends readonly AnyJob[]>(jobs: Known, options?: ProcessOptions<Known>): Promise<Millrace<Known>>
  /** Plain SQL, as a person at a console would write it. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
}

export type ProcessOptions<Known extends readonly AnyJob[]> = Partial<Omit<MillraceOptions<Known>, 'jobs'>>

/** Call it at the top of a test file: each call of what it answers is an empty database, a copy of a migrated one. */
export function usePostgres(): () => Promise<Place> {
  let server: PostgresServer
  let template: FreshDatabase

  beforeAll(async () => {
    server = await sharedPostgres(18)
    template = await freshDatabase(server)
    const migrator = createMigrator({ url: template.url })
    await migrator.up()
    await migrator.close()
  })
  afterAll(() => template.drop())

  return async () => openPlace(await freshDatabase(server, template.name))
}

/** The backend of one process. A thread of Node 20 loads no TypeScript: beats come from the loop, except in processes.test.ts. */
export function backendOf(options: PostgresOptions): Backend {
  const backend = postgres({ poolMax: 4, ...options })
  return { ...backend, capabilities: { ...backend.capabilities, threadLiveness: null } }
}

async function openPlace(database: FreshDatabase): Promise<Place> {
  const { url } = database
  const mills: { stop(options: { readonly deadline: number }): Promise<void> }[] = []
  const client = new pg.Client({ connectionString: url })
  await client.connect()
  return {
    url,
    async process(jobs, options = {}) {
      const backend = options.connections === undefined ? { backend: backendOf({ url }) } : {}
      const create = (all: MillraceOptions<typeof jobs>): Promise<Millrace<typeof jobs>> => createMillrace(all)
      const mill = await create({ jobs, ...backend, ...options })
      mills.push(mill)
      return mill
    },
    query: async (text, values = []) => (await client.query(text, [...values])).rows,
    async [Symbol.asyncDispose]() {
      await Promise.all(mills.map((mill) => mill.stop({ deadline: 0 })))
      await client.end()
      await database.drop()
    },
  }
}
