// The stage of a chaos run: a PostgreSQL and a Redis of its own behind a proxy, worker processes, a producer process
// with books outside both stores. What a scenario does to them is in scenarios.ts, what is judged in verdict.ts.
import { mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { ackedIn } from '../postgres/faults/ledger.ts'
import { startProducer, startWorker } from '../postgres/faults/start-process.ts'
import type { Books, FaultProcess } from '../postgres/faults/start-process.ts'
import { until } from '../postgres/faults/until.ts'
import { freshDatabase, startTestPostgres } from '../support/postgres-server.ts'
import type { TestPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { runDirectory } from '../support/run-directory.ts'
import { startTcpProxy } from '../support/tcp-proxy.ts'
import type { TcpProxy } from '../support/tcp-proxy.ts'

/** Short enough for a test, and long enough for a machine with other things to do. */
export const TIMES = { heartbeatMs: 600, ttlMs: 3_000 } as const

export interface Stage {
  readonly postgres: TestPostgres
  readonly redis: RedisProcess
  readonly proxy: TcpProxy
  readonly books: Books
  readonly workers: FaultProcess[]
  readonly producer: FaultProcess
  /** For looking from outside; connected anew after a restart. */
  query<Row extends object>(text: string): Promise<readonly Row[]>
  readonly startWorker: () => Promise<FaultProcess>
  /** Resolves when so many more jobs were acknowledged. */
  readonly flow: (jobs: number) => Promise<void>
  close(): Promise<void>
}

export type ChaosBackend = 'postgres' | 'hybrid'

export interface Servers {
  readonly postgres: TestPostgres
  readonly redis: RedisProcess
  readonly proxy: TcpProxy
  close(): Promise<void>
}

export async function startServers(): Promise<Servers> {
  const [postgres, redis] = await Promise.all([startTestPostgres({ version: 18 }), startRedis()])
  const proxy = await startTcpProxy(redis.port)
  return {
    postgres,
    redis,
    proxy,
    async close() {
      await proxy.close()
      await Promise.all([postgres.stop('immediate'), redis.stop()])
    },
  }
}

/** An empty database and an empty Redis, two workers, and a producer at a steady pace with long jobs among the short. */
export async function openStage(servers: Servers, backend: ChaosBackend): Promise<Stage> {
  const { postgres, redis, proxy } = servers
  const folder = mkdtempSync(join(await runDirectory(), 'chaos-'))
  const books = { ledger: join(folder, 'ledger'), runs: join(folder, 'runs') }
  await redis.command('FLUSHALL')
  proxy.retarget(redis.port)
  const { url } = await freshDatabase(postgres)
  const stores = { url, ...(backend === 'hybrid' && { redis: `redis://127.0.0.1:${proxy.port}` }) }
  const workers: FaultProcess[] = []
  const start = async (): Promise<FaultProcess> => {
    const worker = await startWorker(books, { ...stores, concurrency: 20, ...TIMES })
    workers.push(worker)
    return worker
  }
  await start()
  await start()
  const producer = await startProducer(books, {
    ...stores,
    jobsMax: 200_000,
    longEvery: 25,
    longMs: 1_500,
  })
  return {
    ...servers,
    books,
    workers,
    producer,
    startWorker: start,
    async query<Row extends object>(text: string) {
      const client = new pg.Client(url)
      client.on('error', () => undefined)
      await client.connect()
      try {
        return (await client.query<Row>(text)).rows
      } finally {
        await client.end()
      }
    },
    async flow(jobs) {
      const before = ackedIn(books.ledger).length
      await until(() => ackedIn(books.ledger).length >= before + jobs, `${jobs} more jobs`, { limitMs: 60_000 })
    },
    async close() {
      for (const process of [...workers, producer]) process.signal('SIGKILL')
      await until(() => [...workers, producer].every(({ isAlive }) => !isAlive), 'all processes to end')
    },
  }
}
