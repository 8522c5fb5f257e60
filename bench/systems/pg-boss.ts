// pg-boss, set up for each aim in the way that serves it best (measured, see the settings in the catalogue).
// A worker of pg-boss takes a batch and completes it with one statement, so its concurrency is a number of
// batches and the concurrency of a scenario does not apply. Finished jobs are kept for seven days, its default.
import { POOL_SIZE } from '../system.ts'
import type { Aim, Payload, System } from '../system.ts'
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

/** Notifying costs the producer, so it is on only where somebody listens. */
const SETUPS: Readonly<Record<Aim, { readonly notify: boolean; readonly work: object }>> = {
  enqueue: { notify: false, work: {} },
  throughput: { notify: true, work: { batchSize: 1000, localConcurrency: 2, burstWhenBatchFull: true } },
  // A second worker is woken by every notification too, for nothing: p50 at 500/s was 22 ms with one worker of
  // 1000, from 12 ms to 3.8 s with two of 100, and seconds with ten.
  latency: { notify: true, work: { batchSize: 1000, localConcurrency: 1, burstWhenBatchFull: true } },
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
      async work({ onStart }) {
        await boss.work(QUEUE, work, async (jobs) => {
          for (const { data } of jobs) onStart(data.seq)
        })
        return { stop: () => boss.offWork(QUEUE) }
      },
      async close() {
        await boss.stop({ graceful: false })
        await pool.end()
      },
    }
  },
}
