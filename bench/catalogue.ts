// Everything that can be measured. A system is loaded only in the process that measures it, so that one
// peer's client never weighs on another's numbers.
import type { Scenario } from './scenario.ts'
import { drain, drainFresh } from './scenarios/drain.ts'
import { enqueueBulk, enqueueSingle } from './scenarios/enqueue.ts'
import { footprint } from './scenarios/footprint.ts'
import { heldTransaction } from './scenarios/held-transaction.ts'
import { latency500, latencyIdle } from './scenarios/latency.ts'
import { produceConsume } from './scenarios/produce-consume.ts'
import { POOL_SIZE } from './system.ts'
import type { System } from './system.ts'

export const SCENARIOS: readonly Scenario[] = [
  enqueueSingle,
  enqueueBulk,
  drain(1),
  drain(10),
  drain(100),
  drain(100, 2),
  drainFresh,
  produceConsume,
  latencyIdle,
  latency500,
  footprint,
  heldTransaction,
]

export interface SystemEntry {
  readonly backends: readonly string[]
  /** What survives a crash after an acknowledged write, by backend; stands beside every number. */
  readonly durability: Readonly<Record<string, string>>
  /** How it is set up, where that is not its default. */
  readonly settings: string
  /** The package of bench/peers whose version counts; absent for Millrace itself. */
  readonly package?: string
  readonly load: () => Promise<System>
}

const SYNCED = 'fsync, synchronous_commit on'

export const SYSTEMS: Readonly<Record<string, SystemEntry>> = {
  millrace: {
    backends: ['memory', 'postgres'],
    durability: { memory: 'none: memory', postgres: SYNCED },
    settings: 'defaults; schema, timeout, audit trail and all events on',
    load: async () => (await import('./systems/millrace.ts')).millrace,
  },
  'graphile-worker': {
    backends: ['postgres'],
    durability: { postgres: SYNCED },
    settings: `defaults; pool ${POOL_SIZE}, log off`,
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorker,
  },
  'graphile-worker-tuned': {
    backends: ['postgres'],
    durability: { postgres: SYNCED },
    settings: `localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0; pool ${POOL_SIZE}, log off`,
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorkerTuned,
  },
  'pg-boss': {
    backends: ['postgres'],
    durability: { postgres: SYNCED },
    settings:
      'work: batches of 1000 × 2 workers whatever the concurrency, listen/notify, burstWhenBatchFull; ' +
      `latency: batches of 1000 × 1 worker, listen/notify; enqueue: no notify; pool ${POOL_SIZE}`,
    package: 'pg-boss',
    load: async () => (await import('./systems/pg-boss.ts')).pgBoss,
  },
  bullmq: {
    backends: ['postgres'],
    durability: { postgres: SYNCED },
    settings: `createPostgresBackend, removeOnComplete, removeOnFail; pool ${POOL_SIZE}`,
    package: 'bullmq',
    load: async () => (await import('./systems/bullmq.ts')).bullmq,
  },
}

/** Backends that keep jobs in a PostgreSQL database. */
export function usesPostgres(backend: string): boolean {
  return backend === 'postgres' || backend === 'hybrid'
}
