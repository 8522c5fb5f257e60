// Graphile Worker under chaos. A lock of its jobs is held for four hours, which no setting changes: what a killed worker
// held waits that long, so the ttl of a scenario does not apply. Finished jobs are deleted. Completions are not batched:
// when one fails the process ends and can be started again. Batched, the runner tries to stop in order, and in two of
// three restarts of PostgreSQL hung in that, alive and without taking a job.
import { loadPeer } from '../../bench/peers.ts'
import { query } from '../query.ts'
import type { Census, ChaosJob, ChaosSystem, Place } from '../system.ts'

const TASK = 'job'
/** Its page on configuration asks for the concurrency and two more, ten at the least. */
const POOL_SPARE = 2
const POOL_MIN = 10

interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => object
  makeWorkerUtils(options: object): Promise<Utils>
  run(options: object): Promise<{ stop(): Promise<void>; readonly promise: Promise<void> }>
}

interface Utils {
  migrate(): Promise<void>
  addJob(identifier: string, payload: ChaosJob, options: object): Promise<unknown>
  addJobs(specs: readonly object[]): Promise<unknown>
  release(): Promise<void>
}

export const graphileWorker: ChaosSystem = {
  name: 'graphile-worker',
  backends: ['postgres'],
  holdsForHours: true,
  settings:
    `job keys of the producer; pool of the concurrency + ${POOL_SPARE} (${POOL_MIN} at the least), log off; else its ` +
    'defaults: 25 attempts with exponential backoff, no local queue, no batching of completions, poll every 2 s, locks ' +
    'held for 4 h whatever the ttl',

  async prepare(place) {
    const utils = await openUtils(place)
    await utils.migrate()
    await utils.release()
  },

  async openProducer(place) {
    const utils = await openUtils(place)
    return {
      async enqueue(job) {
        await utils.addJob(TASK, job, optionsOf(job))
      },
      async enqueueMany(jobs) {
        await utils.addJobs(jobs.map((job) => ({ identifier: TASK, payload: job, ...optionsOf(job) })))
      },
      close: () => utils.release(),
    }
  },

  async openWorker({ postgres }, { concurrency }, run) {
    const { graphile, logger } = await load()
    const runner = await graphile.run({
      connectionString: postgres,
      maxPoolSize: Math.max(concurrency + POOL_SPARE, POOL_MIN),
      logger,
      concurrency,
      noHandleSignals: true,
      parsedCronItems: [],
      taskList: { [TASK]: async (job: ChaosJob) => void (await run(job)) },
    })
    let isClosing = false
    // A runner that gives up resolves all the same. Its own command line then ends, for somebody to start it again.
    void runner.promise.catch(() => undefined).then(() => isClosing || process.exit(1))
    return {
      async close() {
        isClosing = true
        await runner.stop()
      },
    }
  },

  async inspect(place) {
    // A job of a dead worker stays locked for four hours. One without attempts left is never taken again.
    const [census] = await query<Census>(
      place,
      `select count(*) filter (where locked_at is null and attempts < max_attempts)::int as waiting,
              count(*) filter (where locked_at is not null)::int as running,
              count(*) filter (where locked_at is null and attempts >= max_attempts)::int as failed,
              null::int as completed
         from graphile_worker._private_jobs`,
    )
    return census!
  },
}

interface Loaded {
  readonly graphile: GraphileWorker
  readonly logger: object
}

async function load(): Promise<Loaded> {
  const graphile = await loadPeer<GraphileWorker>('graphile-worker')
  return { graphile, logger: new graphile.Logger(() => () => undefined) }
}

async function openUtils({ postgres }: Place): Promise<Utils> {
  const { graphile, logger } = await load()
  return await graphile.makeWorkerUtils({ connectionString: postgres, logger })
}

function optionsOf({ id, dueMs }: ChaosJob): object {
  return { jobKey: id, ...(dueMs !== undefined && { runAt: new Date(dueMs) }) }
}
