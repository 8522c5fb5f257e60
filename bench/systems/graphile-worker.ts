// Graphile Worker, twice: as it is out of the box, and with the batching options under which its own
// performance page publishes its numbers (a local queue of 500 jobs, completions batched without delay).
// Finished jobs are deleted; it keeps no history. Its log is switched off.
import { POOL_SIZE } from '../system.ts'
import type { Payload, System } from '../system.ts'
import { countOf, createPool } from '../peer-pool.ts'
import type { Pool } from '../peer-pool.ts'
import { loadPeer } from '../peers.ts'

const TASK = 'noop'
const TUNED = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 }

interface GraphileWorker {
  readonly Logger: new (factory: () => () => void) => object
  makeWorkerUtils(options: object): Promise<Utils>
  run(options: object): Promise<{ stop(): Promise<void>; readonly promise: Promise<void> }>
}

interface Utils {
  migrate(): Promise<void>
  addJob(identifier: string, payload: Payload): Promise<unknown>
  addJobs(specs: readonly { identifier: string; payload: Payload }[]): Promise<unknown>
  release(): Promise<void>
}

export const graphileWorker: System = { open: ({ url }) => open(url!, {}) }
export const graphileWorkerTuned: System = { open: ({ url }) => open(url!, TUNED) }

async function open(url: string, worker: object): ReturnType<System['open']> {
  const graphile = await loadPeer<GraphileWorker>('graphile-worker')
  const pgPool: Pool = await createPool(url, POOL_SIZE)
  const logger = new graphile.Logger(() => () => undefined)
  const utils = await graphile.makeWorkerUtils({ pgPool, logger })
  await utils.migrate()
  return {
    async enqueue(payload) {
      await utils.addJob(TASK, payload)
    },
    async enqueueMany(payloads) {
      await utils.addJobs(payloads.map((payload) => ({ identifier: TASK, payload })))
    },
    unfinished: () => countOf(pgPool, 'select count(*)::int as count from graphile_worker._private_jobs'),
    async work({ concurrency, onStart }) {
      const runner = await graphile.run({
        pgPool,
        logger,
        concurrency,
        noHandleSignals: true,
        parsedCronItems: [],
        taskList: { [TASK]: ({ seq }: Payload) => onStart(seq) },
        preset: { worker },
      })
      return { stop: () => runner.stop() }
    },
    async close() {
      await utils.release()
      await pgPool.end()
    },
  }
}
