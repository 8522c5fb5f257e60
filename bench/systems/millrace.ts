// Millrace as a user would run it: schema, codec, timeout, audit trail and events on, one listener per
// event. Nothing is switched off for the benchmark, and one thing is raised; see window.ts.
import { z } from 'zod'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import { JOB_STATUSES, isFinal } from '../../src/core/job.ts'
import { EVENT_NAMES } from '../../src/runtime/events.ts'
import type { System, WorkOptions } from '../system.ts'
import { WINDOW, WINDOW_DEFAULT, WINDOW_TOTAL } from '../window.ts'

const QUEUE = 'bench'
const UNFINISHED = JOB_STATUSES.filter((status) => !isFinal(status))

export const millrace: System = {
  async open({ backend, url, redisUrl, isUnset }) {
    let onStart: WorkOptions['onStart'] | undefined
    const noop = defineJob({
      name: 'noop',
      queue: QUEUE,
      input: z.object({ seq: z.number(), to: z.string(), body: z.string() }),
      timeout: '30s',
      run: ({ input }) => onStart?.(input.seq),
    })
    // Beside PostgreSQL the whole backlog of a scenario may wait in Redis, as it does in every system on Redis.
    const isRaised = url !== undefined && isUnset !== true
    const redis = isRaised ? { url: redisUrl!, window: WINDOW, windowTotal: WINDOW_TOTAL } : redisUrl
    const servers = { ...(url !== undefined && { postgres: url }), ...(redisUrl !== undefined && { redis: redis! }) }
    const store = backend === 'memory' ? { backend: memory() } : servers
    const mill = await createMillrace({ jobs: [noop], ...store })
    let events = 0
    for (const name of EVENT_NAMES) mill.on(name, () => void (events += 1))
    return {
      async enqueue(payload) {
        await mill.enqueue(noop, payload)
      },
      async enqueueMany(payloads) {
        await mill.enqueueMany(payloads.map((payload) => [noop, payload]))
      },
      async unfinished() {
        const byQueue = await mill.jobs.counts(QUEUE)
        return byQueue.reduce((sum, { counts }) => sum + UNFINISHED.reduce((all, status) => all + counts[status], 0), 0)
      },
      ...(backend.startsWith('hybrid') && {
        dispatch: {
          most: isUnset ? WINDOW_DEFAULT : WINDOW,
          count: async () => (await mill.jobs.counts(QUEUE)).reduce((sum, { counts }) => sum + counts.dispatched, 0),
        },
      }),
      async work(options) {
        onStart = options.onStart
        const worker = await mill.work({ queues: [QUEUE], concurrency: options.concurrency })
        return { stop: () => worker.stop() }
      },
      close: () => mill.stop(),
    }
  },
}
