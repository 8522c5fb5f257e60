// A database with a table of the user's and a Millrace beside it, and what the tests ask of both.
import pg from 'pg'
import { createMillrace, postgres } from '../../src/index.ts'
import type { AnyJob, Job, JobStatus, Millrace, MillraceOptions } from '../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { PostgresVersion } from '../support/postgres-server.ts'

export interface MillDatabase<Known extends readonly AnyJob[]> {
  readonly url: string
  readonly mill: Millrace<Known>
  /** A statement of somebody else. */
  query(text: string, values?: readonly unknown[]): Promise<readonly Readonly<Record<string, unknown>>[]>
  /** The rows of the user's own table. */
  orders(): Promise<readonly unknown[]>
  /** Until the job is in this status; fails after some seconds. */
  becomes(id: string, status: JobStatus): Promise<Job>
  drop(): Promise<void>
}

/** Short, so that tests of dead workers and lost hints end soon. */
const WAIT_MAX_MS = 10_000
const POLL_MS = 10

export async function createMillDatabase<const Known extends readonly AnyJob[]>(
  options: Pick<MillraceOptions<Known>, 'jobs' | 'queues' | 'logger'>,
  version: PostgresVersion = 18,
): Promise<MillDatabase<Known>> {
  const database = await freshDatabase(await sharedPostgres(version))
  const { url } = database
  const outside = new pg.Client(url)
  await outside.connect()
  await outside.query(
    `create table orders (id text primary key); alter database ${database.name} set synchronous_commit = off`,
  )
  const mill = await createMillrace<Known>({ ...options, backend: postgres({ url, poolMax: 6 }) })

  const query = async (text: string, values: readonly unknown[] = []) =>
    (await outside.query<Record<string, unknown>>(text, [...values])).rows

  return {
    url,
    mill,
    query,
    orders: async () => (await query('select id from orders order by id')).map(({ id }) => id),
    async becomes(id, status) {
      const untilMs = performance.now() + WAIT_MAX_MS
      for (;;) {
        const job = await mill.jobs.get(id)
        if (job?.status === status) return job
        if (performance.now() > untilMs) throw new Error(`job ${id} is ${job?.status ?? 'not there'}, not ${status}`)
        await pause(POLL_MS)
      }
    },
    async drop() {
      await mill.stop({ deadline: 0 })
      await outside.end()
      await database.drop()
    },
  }
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms)
  })
}

/** A promise and the way to keep it. */
export function signal<Value = void>() {
  let resolve!: (value: Value) => void
  const promise = new Promise<Value>((keep) => {
    resolve = keep
  })
  return { promise, resolve }
}
