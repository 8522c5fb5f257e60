// BullMQ on Redis, its home, and on its PostgreSQL backend. Finished jobs are removed, as its page on tuning advises.
import { POOL_SIZE } from '../system.ts'
import type { OpenSystem, Payload, System } from '../system.ts'
import { countOf, createPool } from '../peer-pool.ts'
import { loadPeer } from '../peers.ts'

const QUEUE = 'bench'
const NAME = 'noop'

interface BullMq {
  readonly createPostgresBackend: unknown
  readonly Queue: new (name: string, options: object, backend?: unknown) => Queue
  readonly Worker: new (
    name: string,
    processor: (job: { readonly data: Payload }) => Promise<void>,
    options: object,
    backend?: unknown,
  ) => Worker
}

interface Queue {
  waitUntilReady(): Promise<unknown>
  add(name: string, data: Payload): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: Payload }[]): Promise<unknown>
  getJobCountByTypes(...types: readonly string[]): Promise<number>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

interface Worker {
  waitUntilReady(): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

/** All that are neither completed nor failed. */
const UNFINISHED = ['wait', 'active', 'delayed', 'prioritized', 'paused', 'waiting-children']

export const bullmq: System = {
  async open({ url, redisUrl }) {
    const bull = await loadPeer<BullMq>('bullmq')
    return redisUrl === undefined ? openOnPostgres(bull, url!) : openOnRedis(bull, redisUrl)
  },
}

/** Queue and worker have connections of their own, and the worker one more that blocks, as BullMQ makes them. */
async function openOnRedis(bull: BullMq, url: string): Promise<OpenSystem> {
  // What its page on going to production says for workers.
  const { queue, system } = await open(bull, { url, maxRetriesPerRequest: null })
  return { ...system, unfinished: () => queue.getJobCountByTypes(...UNFINISHED), close: () => queue.close() }
}

async function openOnPostgres(bull: BullMq, connectionString: string): Promise<OpenSystem> {
  const connection = { connectionString, max: POOL_SIZE, migrate: true }
  const { queue, system } = await open(bull, connection, bull.createPostgresBackend)
  const pool = await createPool(connectionString, 1)
  return {
    ...system,
    unfinished: () =>
      countOf(pool, `select count(*)::int as count from bullmq.job where state not in ('completed', 'failed')`),
    async close() {
      await queue.close()
      await pool.end()
    },
  }
}

interface Opened {
  readonly queue: Queue
  readonly system: Omit<OpenSystem, 'unfinished' | 'close'>
}

async function open({ Queue, Worker }: BullMq, connection: object, backend?: unknown): Promise<Opened> {
  const defaultJobOptions = { removeOnComplete: true, removeOnFail: true }
  const queue = new Queue(QUEUE, { connection, defaultJobOptions }, backend)
  queue.on('error', console.error)
  await queue.waitUntilReady()
  const system: Opened['system'] = {
    async enqueue(payload) {
      await queue.add(NAME, payload)
    },
    async enqueueMany(payloads) {
      await queue.addBulk(payloads.map((data) => ({ name: NAME, data })))
    },
    async work({ concurrency, onStart }) {
      // BullMQ awaits what the processor answers.
      const processor = async ({ data }: { readonly data: Payload }): Promise<void> => onStart(data.seq)
      const worker = new Worker(QUEUE, processor, { connection, concurrency }, backend)
      worker.on('error', console.error)
      await worker.waitUntilReady()
      return { stop: () => worker.close() }
    },
  }
  return { queue, system }
}
