// BullMQ under chaos, on Redis, its home, and on its PostgreSQL backend. Finished jobs are kept, its default: an id that
// is added a second time is then known, whatever became of the first.
import { loadPeer } from '../../bench/peers.ts'
import type { Census, ChaosJob, ChaosSystem, Place } from '../system.ts'

const QUEUE = 'chaos'

/** The third stall fails a job, as the third crash fails one of ours. */
const STALLS_MAX = 2
const ATTEMPTS = 5
/** Its pages name no ratio. With a fifth a lost job waits for little more than its lock. */
const CHECKS_PER_LOCK = 5

interface BullMq {
  readonly createPostgresBackend: unknown
  readonly Queue: new (name: string, options: object, backend?: unknown) => Queue
  readonly Worker: new (
    name: string,
    processor: (job: { readonly data: ChaosJob }) => Promise<void>,
    options: object,
    backend?: unknown,
  ) => Worker
}

interface Closable {
  waitUntilReady(): Promise<unknown>
  on(event: 'error', listener: (error: Error) => void): void
  close(): Promise<void>
}

type Worker = Closable

interface Queue extends Closable {
  add(name: string, job: ChaosJob, options: object): Promise<unknown>
  addBulk(jobs: readonly { readonly name: string; readonly data: ChaosJob; readonly opts: object }[]): Promise<unknown>
  getJobCounts(...types: readonly string[]): Promise<Readonly<Record<string, number>>>
}

export const bullmq: ChaosSystem = {
  name: 'bullmq',
  backends: ['redis', 'postgres'],
  settings:
    `job ids of the producer, finished jobs kept; ${ATTEMPTS} attempts without delay, maxStalledCount ${STALLS_MAX}; ` +
    `lockDuration and stalledInterval 30 s, its defaults (with a ttl: that, and a fifth of it); on Redis ` +
    'maxRetriesPerRequest null; on PostgreSQL createPostgresBackend with a pool of 10, its default',

  async prepare(place) {
    const queue = await openQueue(place, { migrate: true })
    await queue.close()
  },

  async openProducer(place) {
    const queue = await openQueue(place)
    return {
      async enqueue(job) {
        await queue.add('job', job, optionsOf(job))
      },
      async enqueueMany(jobs) {
        await queue.addBulk(jobs.map((job) => ({ name: 'job', data: job, opts: optionsOf(job) })))
      },
      close: () => queue.close(),
    }
  },

  async openWorker(place, { concurrency, ttlMs }, run) {
    const bull = await loadPeer<BullMq>('bullmq')
    const lock = ttlMs !== undefined && { lockDuration: ttlMs, stalledInterval: ttlMs / CHECKS_PER_LOCK }
    const options = { connection: connectionOf(place), concurrency, maxStalledCount: STALLS_MAX, ...lock }
    const processor = async ({ data }: { readonly data: ChaosJob }): Promise<void> => void (await run(data))
    const worker = new bull.Worker(QUEUE, processor, options, backendOf(bull, place))
    return await ready(worker)
  },

  async inspect(place) {
    const queue = await openQueue(place)
    try {
      return censusOf(await queue.getJobCounts())
    } finally {
      await queue.close()
    }
  },
}

/** It takes a delay, by the clock of the producer. */
function optionsOf({ id, dueMs }: ChaosJob): object {
  return { jobId: id, attempts: ATTEMPTS, ...(dueMs !== undefined && { delay: Math.max(dueMs - Date.now(), 0) }) }
}

/** A job of a dead worker stays `active` until a check finds its lock gone. */
function censusOf({ active = 0, failed = 0, completed = 0, ...waiting }: Readonly<Record<string, number>>): Census {
  return {
    waiting: Object.values(waiting).reduce((sum, count) => sum + count, 0),
    running: active,
    failed,
    completed,
  }
}

async function openQueue(place: Place, more: object = {}): Promise<Queue> {
  const bull = await loadPeer<BullMq>('bullmq')
  const connection = { ...connectionOf(place), ...more }
  return await ready(new bull.Queue(QUEUE, { connection }, backendOf(bull, place)))
}

/** Without a listener an error ends the process. What fails shows in the calls and in the books. */
async function ready<Opened extends Closable>(opened: Opened): Promise<Opened> {
  opened.on('error', () => undefined)
  await opened.waitUntilReady()
  return opened
}

/** On Redis what its page on going to production says for workers; a producer then waits, too, until Redis is back. */
function connectionOf({ backend, redis, postgres }: Place): object {
  if (backend === 'redis') return { url: redis, maxRetriesPerRequest: null }
  return { connectionString: postgres }
}

function backendOf(bull: BullMq, { backend }: Place): unknown {
  return backend === 'redis' ? undefined : bull.createPostgresBackend
}
