// A run over a topology: worker processes with heartbeat threads, a producer process with books of its own, and at the
// end the books against what the ledger says. The servers and what is done to them are the tests'.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { onTestFinished } from 'vitest'
import type { Millrace } from '../../src/index.ts'
import type { StoreSettings } from '../postgres/faults/fixtures/protocol.ts'
import { ackedIn, balance, balanceOf, liveJobs } from '../postgres/faults/ledger.ts'
import type { Balance } from '../postgres/faults/ledger.ts'
import { startProducer, startWorker } from '../postgres/faults/start-process.ts'
import type { Books, FaultProcess } from '../postgres/faults/start-process.ts'
import { booksOf, liveIn } from '../redis/faults/books.ts'
import { runDirectory } from '../support/run-directory.ts'
import { until } from '../support/until.ts'

export interface TopologyRun {
  readonly books: Books
  readonly workers: readonly FaultProcess[]
  readonly producer: FaultProcess
  readonly acked: () => readonly string[]
  /** Resolves when so many more jobs were acknowledged. */
  flow(jobs: number): Promise<void>
  addWorker(): Promise<FaultProcess>
  /** Ends the producer, waits until nothing is left to do, and compares with what this PostgreSQL says. */
  finish(url: string): Promise<Balance>
  /** The same on Redis alone. */
  finishOn(mill: Millrace): Promise<Balance>
}

/** Short enough for a test, and long enough for a machine with other things to do. */
const TIMES = { heartbeatMs: 600, ttlMs: 4_000 } as const
const WORKERS = 2
const FLOW_MAX_MS = 30_000
const DRAIN_MAX_MS = 40_000

/** Short jobs with long ones among them, so that something is in flight whenever a fault strikes. */
export async function openRun(stores: StoreSettings): Promise<TopologyRun> {
  const folder = mkdtempSync(join(await runDirectory(), 'topology-'))
  const books = { ledger: join(folder, 'ledger'), runs: join(folder, 'runs') }
  const processes: FaultProcess[] = []
  onTestFinished(async () => {
    for (const process of processes) process.signal('SIGKILL')
    await until('all processes to end', () => processes.every(({ isAlive }) => !isAlive))
  })
  const workers: FaultProcess[] = []
  const addWorker = async (): Promise<FaultProcess> => {
    const worker = await startWorker(books, { ...stores, concurrency: 20, ...TIMES })
    processes.push(worker)
    workers.push(worker)
    return worker
  }
  await Promise.all(Array.from({ length: WORKERS }, addWorker))
  const producer = await startProducer(books, { ...stores, jobsMax: 200_000, longEvery: 20, longMs: 1_000 })
  processes.push(producer)
  const acked = (): readonly string[] => ackedIn(books.ledger)
  return {
    books,
    workers,
    producer,
    acked,
    addWorker,
    async flow(jobs) {
      const before = acked().length
      await until(`${jobs} more jobs`, () => acked().length >= before + jobs, { withinMs: FLOW_MAX_MS })
    },
    async finish(url) {
      await producer.stop()
      return onServer(url, async (client) => {
        await until('everything to drain', async () => (await liveJobs(client)) === 0, { withinMs: DRAIN_MAX_MS })
        return balance(client, books)
      })
    },
    async finishOn(mill) {
      await producer.stop()
      await until('everything to drain', async () => (await liveIn(mill)) === 0, { withinMs: DRAIN_MAX_MS })
      return balanceOf(await booksOf(mill), books)
    },
  }
}

export async function onServer<Value>(url: string, look: (client: pg.Client) => Promise<Value>): Promise<Value> {
  const client = new pg.Client(url)
  client.on('error', () => undefined) // the statement that fails says it too
  await client.connect()
  try {
    return await look(client)
  } finally {
    await client.end()
  }
}

export interface Dispatched {
  readonly queue: string
  readonly mode: string
  readonly epoch: number
  readonly redis: string
  readonly isBorn: boolean
}

/** How the queues are handed out now, by name. */
export function dispatchOf(url: string): Promise<readonly Dispatched[]> {
  return onServer(url, async (client) => {
    const { rows } = await client.query<Dispatched>(
      `select q.name as queue, d.mode, d.epoch::float8 as epoch, d.redis_id as redis, d.birth is not null as "isBorn"
       from millrace.dispatch d join millrace.job_queues q on q.id = d.queue_id order by 1`,
    )
    return rows
  })
}

/** Resolves when all these queues go through Redis. */
export async function flowsThroughRedis(url: string, queues: readonly string[]): Promise<readonly Dispatched[]> {
  let found: readonly Dispatched[] = []
  await until('tokens in all queues', async () => {
    found = (await dispatchOf(url)).filter(({ queue }) => queues.includes(queue))
    return found.length === queues.length && found.every(({ mode, isBorn }) => mode === 'token' && isBorn)
  })
  return found
}
