// BullMQ on its PostgreSQL backend. Finished jobs are removed, as its page on tuning advises.
import { POOL_SIZE } from '../system.ts'
import type { OpenSystem, Payload, System } from '../system.ts'
import { countOf, createPool } from '../peer-pool.ts'
import { loadPeer } from '../peers.ts'

const QUEUE = 'bench'
const NAME = 'noop'

interface BullMq {
  readonly createPostgresBackend: unknown
  readonly Queue: new (name: string, options: object, backend: unknown) => Queue
  readonly Worker: new (
    name: string,
    processor: (job: { readonly data: Payload }) => Promise<void>,
    options: object,
    backend: unknown,
  ) => Worker
}

interface Queue {
  waitUntilReady(): Promise<unknown>
  add(name: string, data: Payload): Promise<unknown>
  addBulk(jobs: readonly { name: string; data: Payload }[]): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

interface Worker {
  waitUntilReady(): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

export const bullmq: System = {
  async open({ backend, url }) {
    if (backend !== 'postgres') throw new Error(`bullmq is not measured on '${backend}'`)
    return openOnPostgres(await loadPeer<BullMq>('bullmq'), url!)
  },
}

async function openOnPostgres(
  { Queue, Worker, createPostgresBackend }: BullMq,
  connectionString: string,
): Promise<OpenSystem> {
  const connection = { connectionString, max: POOL_SIZE, migrate: true }
  const queue = new Queue(
    QUEUE,
    { connection, defaultJobOptions: { removeOnComplete: true, removeOnFail: true } },
    createPostgresBackend,
  )
  queue.on('error', console.error)
  await queue.waitUntilReady()
  const pool = await createPool(connectionString, 1)
  return {
    async enqueue(payload) {
      await queue.add(NAME, payload)
    },
    async enqueueMany(payloads) {
      await queue.addBulk(payloads.map((data) => ({ name: NAME, data })))
    },
    unfinished: () =>
      countOf(pool, `select count(*)::int as count from bullmq.job where state not in ('completed', 'failed')`),
    async work({ concurrency, onStart }) {
      // BullMQ awaits what the processor answers.
      const processor = async ({ data }: { readonly data: Payload }): Promise<void> => onStart(data.seq)
      const worker = new Worker(QUEUE, processor, { connection, concurrency }, createPostgresBackend)
      worker.on('error', console.error)
      await worker.waitUntilReady()
      return { stop: () => worker.close() }
    },
    async close() {
      await queue.close()
      await pool.end()
    },
  }
}
