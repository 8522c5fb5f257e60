// What is done to the hybrid under load, one function per fault. A scenario answers from when on new starts count, and
// which workers it robbed of their jobs: only what those had started may start again.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { askedOnlyIn } from '../postgres/faults/ledger.ts'
import { until } from '../postgres/faults/until.ts'
import { startRedis } from '../support/redis-server.ts'
import { HELD, TIMES } from './stage.ts'
import type { Stage } from './stage.ts'

export interface Struck {
  /** From here on a new start is expected, in ms since 1970: the store accepts connections again. */
  readonly backMs: number
  /** Pids whose jobs may start again: they died, or were away for longer than a ttl. */
  readonly robbed: readonly number[]
  /** What is to be ended after the run. */
  readonly close?: () => Promise<void>
}

export interface Scenario {
  readonly name: string
  readonly strike: (stage: Stage, times: ScenarioTimes) => Promise<Struck>
  /** How soon after `backMs` a job that was made later must start. Default 1000. */
  readonly firstStartMaxMs?: number
  /** So many runs were interrupted at the least, or the fault was none. Default 0. */
  readonly minRerun?: number
  /** So many enqueues may fail. Default 0: they are repeated, or go to the other store. */
  readonly maxRefused?: number
}

export interface ScenarioTimes {
  /** How long Redis is gone in `redis-gone`. */
  readonly goneMs: number
}

const struck = (robbed: readonly number[] = []): Struck => ({ backMs: Date.now(), robbed })
const wait = (ms: number): Promise<void> => new Promise((resolve) => setTimeout(resolve, ms))

export const SCENARIOS: readonly Scenario[] = [
  {
    name: 'flushall',
    async strike({ redis }) {
      await redis.command('FLUSHALL')
      return struck()
    },
  },
  {
    name: 'redis-restart-empty',
    async strike({ redis }) {
      await redis.restart({ keepData: false })
      return struck()
    },
  },
  {
    name: 'redis-old-snapshot',
    async strike({ redis, flow }) {
      const data = join(redis.dir, 'appendonlydir')
      const copy = join(redis.dir, 'old')
      cpSync(data, copy, { recursive: true })
      await flow(300)
      await redis.kill()
      rmSync(data, { recursive: true })
      cpSync(copy, data, { recursive: true })
      await redis.restart()
      return struck()
    },
  },
  {
    name: 'replica-promoted',
    async strike({ redis, proxy, flow }) {
      const replica = await startRedis()
      await replica.command('REPLICAOF', '127.0.0.1', redis.port)
      await until(
        async () => String(await replica.command('INFO', 'replication')).includes('master_link_status:up'),
        'the replica to follow',
      )
      await flow(100)
      // From here on it misses what the primary takes.
      await replica.command('REPLICAOF', 'NO', 'ONE')
      await flow(200)
      proxy.retarget(replica.port)
      proxy.resetAll()
      return {
        ...struck(),
        async close() {
          proxy.retarget(redis.port)
          await replica.stop()
        },
      }
    },
  },
  {
    name: 'redis-gone',
    async strike({ redis, flow }, { goneMs }) {
      await redis.kill()
      const goneSinceMs = Date.now()
      // Work goes on from Postgres alone.
      await flow(200)
      await wait(Math.max(goneMs - (Date.now() - goneSinceMs), 0))
      await redis.restart({ keepData: false })
      return struck()
    },
  },
  {
    name: 'worker-kill',
    async strike({ workers, startWorker }) {
      const victim = workers[0]!
      victim.signal('SIGKILL')
      const hit = struck([victim.pid])
      await startWorker()
      return hit
    },
    minRerun: 1,
  },
  {
    name: 'worker-stopped',
    async strike({ workers }) {
      // Not the leader of maintenance: its lease would lapse later than the worker's ttl.
      const victim = workers[1]!
      victim.signal('SIGSTOP')
      const hit = struck([victim.pid])
      await wait(TIMES.ttlMs * 2)
      victim.signal('SIGCONT')
      return hit
    },
    minRerun: 1,
  },
  {
    name: 'postgres-restart',
    async strike({ postgres }) {
      await postgres.restart('fast')
      return struck()
    },
    // Connections are made again after a pause that grows; meanwhile every call fails at once, and its caller is told.
    firstStartMaxMs: 5_000,
    maxRefused: 1_000,
  },
  {
    // The relay has minted in Postgres, the token never reaches Redis, and the one who should push it is gone.
    name: 'relay-killed-before-push',
    async strike({ workers, enqueueReady, startWorker, ...stage }) {
      // It was the first, so it leads.
      const victim = workers[0]!
      victim.tell('die')
      const id = await enqueueReady()
      await until(() => !victim.isAlive, 'the relay to die')
      await onlyInPostgres(stage, [id])
      await startWorker()
      return struck([victim.pid])
    },
    minRerun: 1,
  },
  {
    // The same with the producer: its jobs are stored, nobody was told so, and their tokens never reach Redis.
    name: 'producer-killed-before-push',
    async strike({ producers, startProducer, books, ...stage }) {
      const victim = producers.at(-1)!
      victim.tell('die')
      await until(() => !victim.isAlive, 'the producer to die')
      await onlyInPostgres(stage, askedOnlyIn(books.ledger))
      await startProducer()
      return struck()
    },
  },
]

/** Some of these jobs were minted, and Redis has no token of them. */
async function onlyInPostgres({ query, redis }: Pick<Stage, 'query' | 'redis'>, ids: readonly string[]): Promise<void> {
  const rows = await query<{ field: string }>(
    `select id || ':' || lease as field from millrace.running where worker_no = 0 and id = any($1)`,
    [ids],
  )
  if (rows.length === 0) throw new Error('nothing was minted at the moment of death')
  for (const { field } of rows) {
    if ((await redis.command('HGET', HELD, field)) !== null) throw new Error(`the token ${field} was pushed`)
  }
}
