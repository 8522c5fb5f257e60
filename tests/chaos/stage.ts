// The stage of a chaos run: a PostgreSQL and a Redis of its own behind a proxy, worker processes, a producer process
// with books outside both stores. What a scenario does to them is in scenarios.ts, what is judged in verdict.ts.
import { appendFileSync, mkdtempSync } from 'node:fs'
import { join } from 'node:path'
import { Redis } from 'ioredis'
import pg from 'pg'
import { uuidv7 } from 'uuidv7'
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

/** Who has which token of the queue of these jobs. */
export const HELD = 'millrace:{faults}:held'

export interface Stage {
  readonly postgres: TestPostgres
  readonly redis: RedisProcess
  readonly proxy: TcpProxy
  readonly books: Books
  readonly workers: FaultProcess[]
  /** The last one is at work. */
  readonly producers: FaultProcess[]
  /** For looking from outside; connected anew after a restart. */
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<readonly Row[]>
  readonly startWorker: () => Promise<FaultProcess>
  readonly startProducer: () => Promise<FaultProcess>
  /** A job that is ready in PostgreSQL and needs the relay, in the books like those of the producer. Answers its id. */
  readonly enqueueReady: () => Promise<string>
  /** Resolves when a token that was minted from now on has been taken from Redis: what comes next does go through it. */
  readonly flowsThroughRedis: () => Promise<void>
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
  const producers: FaultProcess[] = []
  const startOne = async (): Promise<FaultProcess> => {
    const settings = { ...stores, concurrency: 20, ...TIMES, dieAt: 'hybrid.relay-minted' } as const
    const worker = await startWorker(books, settings)
    workers.push(worker)
    return worker
  }
  const startMore = async (): Promise<FaultProcess> => {
    const load = { jobsMax: 200_000, longEvery: 50, longMs: 1_500, dieAt: 'hybrid.before-push' } as const
    const producer = await startProducer(books, { ...stores, ...load })
    producers.push(producer)
    return producer
  }
  const query = async <Row extends object>(text: string, values: readonly unknown[] = []): Promise<readonly Row[]> => {
    const client = new pg.Client(url)
    client.on('error', () => undefined)
    await client.connect()
    try {
      return (await client.query<Row>(text, [...values])).rows
    } finally {
      await client.end()
    }
  }
  await startOne()
  await startOne()
  await startMore()
  return {
    ...servers,
    books,
    workers,
    producers,
    startWorker: startOne,
    startProducer: startMore,
    query,
    async enqueueReady() {
      const id = uuidv7()
      appendFileSync(books.ledger, `asked ${id}\n`)
      await query(
        `select millrace.insert_one($1, 'faults', 'plain', '0', 30000, null, 5, null, null, null, null, null)`,
        [id],
      )
      appendFileSync(books.ledger, `acked ${id}\n`)
      return id
    },
    async flowsThroughRedis() {
      if (backend === 'postgres') return
      const [row] = await query<{ mark: string }>('select last_value as mark from millrace.lease_seq')
      // By the way that the workers take.
      const client = new Redis(proxy.port, '127.0.0.1')
      try {
        const isTaken = async (): Promise<boolean> =>
          Object.entries(await client.hgetall(HELD)).some(
            ([field, holder]) => holder.includes('/') && Number(field.split(':')[1]) > Number(row!.mark),
          )
        await until(isTaken, 'a new token in the hands of a worker')
      } finally {
        client.disconnect()
      }
    },
    async flow(jobs) {
      const before = ackedIn(books.ledger).length
      await until(() => ackedIn(books.ledger).length >= before + jobs, `${jobs} more jobs`, { limitMs: 60_000 })
    },
    async close() {
      const all = [...workers, ...producers]
      for (const process of all) process.signal('SIGKILL')
      await until(() => all.every(({ isAlive }) => !isAlive), 'all processes to end')
    },
  }
}
