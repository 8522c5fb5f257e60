// Everything that can be measured. A system is loaded only in the process that measures it, so that one
// peer's client never weighs on another's numbers.
import type { Scenario } from './scenario.ts'
import { drain, drainFresh, drainLarge, drainSlowLink, drainUnset } from './scenarios/drain.ts'
import { enqueueBulk, enqueueLarge, enqueueSingle } from './scenarios/enqueue.ts'
import { footprint } from './scenarios/footprint.ts'
import { handlers } from './scenarios/handlers.ts'
import { heldTransaction } from './scenarios/held-transaction.ts'
import { latency500, latencyIdle } from './scenarios/latency.ts'
import { longBacklog } from './scenarios/long-backlog.ts'
import { produceConsume } from './scenarios/produce-consume.ts'
import { POOL_SIZE } from './system.ts'
import type { Aim, System } from './system.ts'
import { WINDOW_SAYS } from './window.ts'

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
  drainUnset,
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

export { OURS } from './system.ts'

export interface Setting {
  readonly says: string
  readonly backends?: readonly string[]
  /** Of the scenarios in which it plays a part. */
  readonly aims?: readonly Aim[]
}

export interface SystemEntry {
  readonly backends: readonly string[]
  /** How it is set up, where that is not its default; parts that are not about all of its rows say which. */
  readonly settings: readonly Setting[]
  /** The package of bench/peers whose version counts; absent for Millrace itself. */
  readonly package?: string
  readonly load: () => Promise<System>
}

export const SYSTEMS: Readonly<Record<string, SystemEntry>> = {
  millrace: {
    backends: ['memory', 'postgres', 'redis', 'redis-no-aof', 'hybrid', 'hybrid-no-aof'],
    settings: [
      { says: 'defaults; schema, timeout, audit trail and all events on' },
      { says: WINDOW_SAYS, backends: ['hybrid', 'hybrid-no-aof'] },
    ],
    load: async () => (await import('./systems/millrace.ts')).millrace,
  },
  'graphile-worker': {
    backends: ['postgres'],
    settings: [{ says: `defaults; pool ${POOL_SIZE}, log off` }],
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorker,
  },
  'graphile-worker-tuned': {
    backends: ['postgres'],
    settings: [
      { says: `localQueue.size 500, completeJobBatchDelay 0, failJobBatchDelay 0; pool ${POOL_SIZE}, log off` },
    ],
    package: 'graphile-worker',
    load: async () => (await import('./systems/graphile-worker.ts')).graphileWorkerTuned,
  },
  'pg-boss': {
    backends: ['postgres'],
    settings: [
      {
        says: 'work: batches of 1000 × 2 workers whatever the concurrency, listen/notify, burstWhenBatchFull',
        aims: ['throughput'],
      },
      {
        says: 'handlers that take time: batches of 100 × 2 workers, which share the concurrency',
        aims: ['handlers'],
      },
      { says: 'latency: batches of 1000 × 1 worker, listen/notify', aims: ['latency'] },
      { says: 'enqueue: no notify', aims: ['enqueue'] },
      { says: `pool ${POOL_SIZE}` },
    ],
    package: 'pg-boss',
    load: async () => (await import('./systems/pg-boss.ts')).pgBoss,
  },
  bullmq: {
    backends: ['postgres', 'redis', 'redis-no-aof'],
    settings: [
      { says: 'removeOnComplete, removeOnFail' },
      { says: `createPostgresBackend, pool ${POOL_SIZE}`, backends: ['postgres'] },
      { says: 'ioredis', backends: ['redis', 'redis-no-aof'] },
    ],
    package: 'bullmq',
    load: async () => (await import('./systems/bullmq.ts')).bullmq,
  },
  'bee-queue': {
    backends: ['redis', 'redis-no-aof'],
    settings: [{ says: 'removeOnSuccess, removeOnFailure; no events sent or listened to, storeJobs off' }],
    package: 'bee-queue',
    load: async () => (await import('./systems/bee-queue.ts')).beeQueue,
  },
}
