// Everything that can be measured. A system is loaded only in the process that measures it, so that one
// peer's client never weighs on another's numbers.
import type { Scenario } from './scenario.ts'
import { drain, drainFresh, drainLarge, drainSlowLink } from './scenarios/drain.ts'
import { enqueueBulk, enqueueLarge, enqueueSingle } from './scenarios/enqueue.ts'
import { footprint } from './scenarios/footprint.ts'
import { handlers } from './scenarios/handlers.ts'
import { heldTransaction } from './scenarios/held-transaction.ts'
import { latency500, latencyIdle } from './scenarios/latency.ts'
import { longBacklog } from './scenarios/long-backlog.ts'
import { produceConsume } from './scenarios/produce-consume.ts'
import { POOL_SIZE } from './system.ts'
import type { System } from './system.ts'

export const SCENARIOS: readonly Scenario[] = [
  enqueueSingle,
  enqueueBulk,
  enqueueLarge,
  drain(1),
  drain(1, 2),
  drain(10),
  drain(10, 2),
  drain(100),
  drain(100, 2),
  drainFresh,
  drainSlowLink,
  drainLarge,
  longBacklog,
  handlers(1),
  handlers(2),
  produceConsume,
  latencyIdle,
  latency500,
  footprint,
  heldTransaction,
]

export const OURS = 'millrace'

export interface SystemEntry {
  readonly backends: readonly string[]
  /** How it is set up, where that is not its default. */
  readonly settings: string
  /** The package of bench/peers whose version counts; absent for Millrace itself. */
  readonly package?: string
  readonly load: () => Promise<System>
}

export const SYSTEMS: Readonly<Record<string, SystemEntry>> = {
  millrace: {
    backends: ['memory', 'postgres', 'redis', 'redis-no-aof', 'hybrid', 'hybrid-no-aof'],
    settings: 'defaults (hybrid: window 160 000, in all 1 000 000); schema, timeout, audit trail and all events on',
    load: async () => (await import('./systems/millrace.ts')).millrace,
  },
  'graphile-worker': {
    backends: ['postgres'],
    settings: `defaults; pool ${POOL_SIZE}, log off`,
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorker,
  },
  'graphile-worker-tuned': {
    backends: ['postgres'],
    settings: `localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0; pool ${POOL_SIZE}, log off`,
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorkerTuned,
  },
  'pg-boss': {
    backends: ['postgres'],
    settings:
      'work: batches of 1000 × 2 workers whatever the concurrency, listen/notify, burstWhenBatchFull; ' +
      'handlers that take time: batches of 100 × 2 workers, which share the concurrency; ' +
      `latency: batches of 1000 × 1 worker, listen/notify; enqueue: no notify; pool ${POOL_SIZE}`,
    package: 'pg-boss',
    load: async () => (await import('./systems/pg-boss.ts')).pgBoss,
  },
  bullmq: {
    backends: ['postgres', 'redis', 'redis-no-aof'],
    settings: `removeOnComplete, removeOnFail; on PostgreSQL createPostgresBackend, pool ${POOL_SIZE}; on Redis ioredis`,
    package: 'bullmq',
    load: async () => (await import('./systems/bullmq.ts')).bullmq,
  },
  'bee-queue': {
    backends: ['redis', 'redis-no-aof'],
    settings: 'removeOnSuccess, removeOnFailure; no events sent or listened to, storeJobs off',
    package: 'bee-queue',
    load: async () => (await import('./systems/bee-queue.ts')).beeQueue,
  },
}
