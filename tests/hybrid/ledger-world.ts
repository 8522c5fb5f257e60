// A ledger on a real PostgreSQL with one queue in token mode, and a second connection that gets in the way.
import pg from 'pg'
import { postgresWithLedger } from '../../src/backends/postgres/backend.ts'
import type { PostgresWithLedger } from '../../src/backends/postgres/backend.ts'
import type { JobId, JobStatus, LeaseNumber, LeaseRef, NewJob, WorkerId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import type { DispatchRow, Ledger } from '../../src/backends/hybrid/ports.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { PostgresVersion } from '../support/postgres-server.ts'

const { newId } = createRuntime()

export interface LedgerWorld {
  readonly ledger: Ledger
  readonly backend: Backend
  readonly session: PostgresWithLedger['session']
  readonly other: pg.Client
  readonly url: string
  /** A new queue, flipped to token and born: its tag is `<epoch>.born`. */
  queue(name?: string): Promise<{ readonly queue: string; readonly epoch: number; readonly tag: string }>
  flip(queue: string, mode?: 'token' | 'ledger'): Promise<DispatchRow>
  worker(queues?: readonly string[]): Promise<WorkerId>
  /** Minted in a queue of that tag. */
  mint(queue: string, tag: string, count: number, extra?: Partial<NewJob>): Promise<readonly LeaseRef[]>
  statusOf(ref: { readonly jobId: JobId }): Promise<JobStatus | undefined>
  close(): Promise<void>
}

export async function createLedgerWorld(version: PostgresVersion = 18): Promise<LedgerWorld> {
  const database = await freshDatabase(await sharedPostgres(version))
  const { url } = database
  const { backend, ledger, session } = postgresWithLedger({ url, poolMax: 4 })
  await backend.start()
  await ledger.renewServer()
  const other = new pg.Client({ connectionString: url })
  await other.connect()

  async function rowOf(queue: string): Promise<DispatchRow | undefined> {
    return (await ledger.dispatch([queue])).rows[0]
  }

  async function flip(queue: string, mode: 'token' | 'ledger' = 'token'): Promise<DispatchRow> {
    const expected = (await rowOf(queue))?.epoch ?? 0
    const [row] = await ledger.flip({ queues: [{ queue, expected }], mode, redisId: 'r', unlessHealthy: false })
    return row!
  }

  return {
    ledger,
    backend,
    session,
    other,
    url,
    flip,
    async queue(name = newId()) {
      const { epoch } = await flip(name)
      await ledger.born(name, epoch, 'born')
      return { queue: name, epoch, tag: `${epoch}.born` }
    },
    async worker(queues = []) {
      const id = newId() as WorkerId // minted here
      await ledger.register({ id, host: 'localhost', pid: 1, queues, concurrency: 10 })
      return id
    },
    async mint(queue, tag, count, extra = {}) {
      const jobs = Array.from({ length: count }, () => newJob(queue, extra))
      const { leases } = await ledger.insert(jobs, new Map([[queue, tag]]))
      return jobs.map(({ id }, index) => ({ jobId: id, lease: leases[index] as LeaseNumber })) // minted by the ledger
    },
    async statusOf({ jobId }) {
      return (await backend.query.get([jobId]))[0]?.status
    },
    async close() {
      await other.end()
      await backend.stop()
      await database.drop()
    },
  }
}

export function newJob(queue: string, extra: Partial<NewJob> = {}): NewJob {
  return { id: newId() as JobId, queue, name: 'noop', payload: '{"a":1}', timeoutMs: 1_000, ...extra } // minted here
}

export function complete({ jobId, lease }: LeaseRef, ranMs = 5): Transition {
  return { jobId, edge: 'complete', guard: { from: ['running'], lease }, to: 'completed', attempt: 'count', ranMs }
}

export function inFlight(refs: readonly LeaseRef[], ageMs = 300) {
  return refs.map((ref) => ({ ...ref, ageMs }))
}
