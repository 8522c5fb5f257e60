// pg-boss, set up for each aim in the way that serves it best (measured, see the settings in the catalogue).
// A worker of pg-boss takes a batch and completes it with one statement, so its concurrency is a number of
// batches. The concurrency of a scenario says how many jobs of all batches run at once, where they take time. Finished jobs are kept for seven days, its default.
import { POOL_SIZE } from '../system.ts'
import type { Aim, Payload, System, WorkOptions } from '../system.ts'
import { countOf, createPool } from '../peer-pool.ts'
import { loadPeer } from '../peers.ts'

const QUEUE = 'bench'

interface PgBossModule {
  readonly PgBoss: new (options: object) => PgBoss
}

interface PgBoss {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  createQueue(name: string, options: object): Promise<void>
  send(name: string, data: Payload): Promise<unknown>
  insert(name: string, jobs: readonly { data: Payload }[]): Promise<unknown>
  work(name: string, options: object, handler: (jobs: readonly { data: Payload }[]) => Promise<void>): Promise<string>
  offWork(name: string): Promise<void>
  stop(options: object): Promise<void>
}

interface Work {
  readonly batchSize: number
  /** Workers in the process, each with a batch of its own. */
  readonly localConcurrency: number
  readonly burstWhenBatchFull: boolean
}

/** Notifying costs the producer, so it is on only where somebody listens. */
const SETUPS: Readonly<Record<Aim, { readonly notify: boolean; readonly work: Work }>> = {
  enqueue: { notify: false, work: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true } },
  throughput: { notify: true, work: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true } },
  // Batches small enough that the last of them does not leave lanes idle.
  handlers: { notify: true, work: { batchSize: 100, localConcurrency: 2, burstWhenBatchFull: true } },
  // A second worker is woken by every notification too, for nothing: p50 at 500/s was 22 ms with one worker of
  // 1000, from 12 ms to 3.8 s with two of 100, and seconds with ten.
  latency: { notify: true, work: { batchSize: 1000, localConcurrency: 1, burstWhenBatchFull: true } },
}

/** The jobs of a batch run side by side, so many at once. */
async function runBatch(
  jobs: readonly { readonly data: Payload }[],
  lanes: number,
  onStart: WorkOptions['onStart'],
): Promise<void> {
  let next = 0
  const lane = async (): Promise<void> => {
    while (next < jobs.length) {
      const busy = onStart(jobs[next++]!.data.seq)
      // A handler that does nothing is not worth a turn of the loop.
      if (busy !== undefined) await busy
    }
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

export const pgBoss: System = {
  async open({ url, aim }) {
    const { PgBoss } = await loadPeer<PgBossModule>('pg-boss')
    const { notify, work } = SETUPS[aim]
    const boss = new PgBoss({
      connectionString: url,
      max: POOL_SIZE,
      useListenNotify: notify,
      // Its default of 10 s fails calls that wait for a connection when it is offered more than it can take.
      connectionTimeoutMillis: 60_000,
    })
    boss.on('error', console.error)
    await boss.start()
    await boss.createQueue(QUEUE, { notify })
    const pool = await createPool(url!, 1)
    return {
      async enqueue(payload) {
        await boss.send(QUEUE, payload)
      },
      async enqueueMany(payloads) {
        await boss.insert(
          QUEUE,
          payloads.map((data) => ({ data })),
        )
      },
      unfinished: () =>
        countOf(
          pool,
          `select count(*)::int as count from pgboss.job where name = '${QUEUE}' and state in ('created', 'retry', 'active')`,
        ),
      async work({ concurrency, onStart }) {
        const lanes = Math.ceil(concurrency / work.localConcurrency)
        await boss.work(QUEUE, work, (jobs) => runBatch(jobs, lanes, onStart))
        return { stop: () => boss.offWork(QUEUE) }
      },
      async close() {
        await boss.stop({ graceful: false })
        await pool.end()
      },
    }
  },
}
