// Millrace as a user would run it: schema, codec, timeout, audit trail and events on, one listener per
// event. Nothing is switched off for the benchmark.
import { z } from 'zod'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import { EVENT_NAMES } from '../../src/runtime/events.ts'
import type { System } from '../system.ts'

const QUEUE = 'bench'

export const millrace: System = {
  async open(backend) {
    if (backend !== 'memory') throw new Error(`millrace is not measured on '${backend}'`)
    let onStart: ((seq: number) => void) | undefined
    const noop = defineJob({
      name: 'noop',
      queue: QUEUE,
      input: z.object({ seq: z.number(), to: z.string(), body: z.string() }),
      timeout: '30s',
      run: ({ input }) => onStart?.(input.seq),
    })
    const mill = await createMillrace({ jobs: [noop], backend: memory() })
    let others = 0
    let onCompleted: (() => void) | undefined
    for (const name of EVENT_NAMES)
      mill.on(name, name === 'completed' ? () => onCompleted?.() : () => void (others += 1))
    return {
      async enqueue(payload) {
        await mill.enqueue(noop, payload)
      },
      async enqueueMany(payloads) {
        await mill.enqueueMany(payloads.map((payload) => [noop, payload]))
      },
      async work(options) {
        onStart = options.onStart
        onCompleted = options.onCompleted
        const worker = await mill.work({ queues: [QUEUE], concurrency: options.concurrency })
        return { stop: () => worker.stop() }
      },
      close: () => mill.stop(),
    }
  },
}
