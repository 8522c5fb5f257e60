// pg-boss under chaos. A worker takes one job at a time, so that each is settled when it ends and not with its batch.
// It polls: notifying nearly halved what a producer got in (650 of 1200 jobs/s) and makes nothing safer. Its heartbeat
// belongs to the queue and is ten seconds at the least, so the ttl of a scenario does not apply.
import { loadPeer } from '../../bench/peers.ts'
import { query } from '../query.ts'
import type { Census, ChaosJob, ChaosSystem, Place } from '../system.ts'

const QUEUE = 'chaos'
const DEAD_LETTERS = 'chaos-dead'

/** The least that it takes. Off by default: then a job of a dead worker waits for fifteen minutes. */
const HEARTBEAT_SECONDS = 10
/** The least that it takes, instead of 60: a pass over the queues finds the heartbeats that are missing. */
const CHECK_SECONDS = 1
/** A crash counts as an attempt like any other. */
const RETRIES = 4
const STOP_MAX_MS = 60_000

interface PgBossModule {
  readonly PgBoss: new (options: object) => PgBoss
}

interface PgBoss {
  on(event: 'error', listener: (error: Error) => void): void
  start(): Promise<unknown>
  createQueue(name: string, options?: object): Promise<void>
  send(name: string, data: ChaosJob, options: object): Promise<unknown>
  insert(name: string, jobs: readonly object[]): Promise<unknown>
  work(name: string, options: object, handler: (jobs: readonly { data: ChaosJob }[]) => Promise<void>): Promise<string>
  stop(options: object): Promise<void>
}

export const pgBoss: ChaosSystem = {
  name: 'pg-boss',
  backends: ['postgres'],
  settings:
    `job ids of the producer; heartbeatSeconds ${HEARTBEAT_SECONDS} whatever the ttl (its minimum), superviseIntervalSeconds ` +
    `and monitorIntervalSeconds ${CHECK_SECONDS}; retryLimit ${RETRIES} without delay, dead letter queue; one job per ` +
    `fetch, as many local workers as the concurrency, pollingIntervalSeconds 0.5, burstWhenReadyExceeds 1; pool of 10, its default`,

  async prepare(place) {
    const boss = await open(place)
    await boss.createQueue(DEAD_LETTERS)
    await boss.createQueue(QUEUE, {
      heartbeatSeconds: HEARTBEAT_SECONDS,
      retryLimit: RETRIES,
      deadLetter: DEAD_LETTERS,
    })
    await boss.stop({ graceful: false })
  },

  async openProducer(place) {
    const boss = await open(place)
    return {
      async enqueue(job) {
        // Answers null for an id that is there already, which is as good.
        await boss.send(QUEUE, job, optionsOf(job))
      },
      async enqueueMany(jobs) {
        await boss.insert(
          QUEUE,
          jobs.map((job) => ({ data: job, ...optionsOf(job) })),
        )
      },
      close: () => boss.stop({ graceful: false }),
    }
  },

  async openWorker(place, { concurrency }, run) {
    const boss = await open(place)
    const options = {
      localConcurrency: concurrency,
      burstWhenReadyExceeds: 1,
      pollingIntervalSeconds: 0.5,
    }
    await boss.work(QUEUE, options, async (jobs) => {
      for (const { data } of jobs) await run(data)
    })
    return { close: () => boss.stop({ graceful: true, timeout: STOP_MAX_MS }) }
  },

  async inspect(place) {
    // A job of a dead worker stays `active` until a pass misses its heartbeat.
    const [census] = await query<Census>(
      place,
      `select count(*) filter (where state in ('created', 'retry'))::int as waiting,
              count(*) filter (where state = 'active')::int as running,
              count(*) filter (where state in ('failed', 'cancelled'))::int as failed,
              count(*) filter (where state = 'completed')::int as completed
         from pgboss.job where name = $1`,
      [QUEUE],
    )
    return census!
  },
}

function optionsOf({ id, dueMs, timeoutMs }: ChaosJob): object {
  return {
    id,
    ...(dueMs !== undefined && { startAfter: new Date(dueMs) }),
    ...(timeoutMs !== undefined && { expireInSeconds: timeoutMs / 1000 }),
  }
}

async function open({ postgres }: Place): Promise<PgBoss> {
  const { PgBoss } = await loadPeer<PgBossModule>('pg-boss')
  const boss = new PgBoss({
    connectionString: postgres,
    superviseIntervalSeconds: CHECK_SECONDS,
    monitorIntervalSeconds: CHECK_SECONDS,
    queueCacheIntervalSeconds: CHECK_SECONDS,
  })
  // Without a listener an error ends the process. What fails shows in the calls and in the books.
  boss.on('error', () => undefined)
  await boss.start()
  return boss
}
