// A client over the memory backend on a clock that stands still, and a few jobs to enqueue.
import { z } from 'zod'
import { memory } from '../../src/backends/memory/backend.ts'
import { createClient } from '../../src/client/client.ts'
import type { ClientOptions } from '../../src/client/client.ts'
import { defineJob } from '../../src/client/define-job.ts'
import type { AnyJob, RunContext } from '../../src/core/definition.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

export const mail = defineJob({
  name: 'send-mail',
  queue: 'mail',
  input: z.object({ to: z.string(), size: z.number().optional() }),
  run: async ({ input }) => ({ sentTo: input.to }),
})
export const anything = defineJob({ name: 'anything', run: ({ input }: RunContext<unknown>) => input })
export const tick = defineJob({ name: 'tick', queue: 'ticks', run: () => undefined })

const JOBS = [mail, anything, tick] as const

export function setup<const Known extends readonly AnyJob[] = typeof JOBS>(
  options: Partial<Omit<ClientOptions<Known>, 'runtime' | 'connections'>> & {
    readonly wrap?: (backend: Backend) => Backend
  } = {},
) {
  const clock = new ManualClock()
  const { wrap = (backend) => backend, ...rest } = options
  const backend = memory({ clock })
  const runtime = createRuntime({ clock, random: () => 0.5 })
  const mill = createClient<Known>({
    // Without jobs of its own a test gets the usual ones, which is what the default of `Known` says.
    jobs: JOBS as readonly AnyJob[] as Known,
    ...rest,
    runtime,
    connections: { default: wrap(backend) },
  })
  return { clock, backend, runtime, mill }
}

/** How many jobs there are, in any status. */
export async function stored(backend: Backend): Promise<number> {
  const counts = await backend.query.counts()
  return counts.flatMap(({ counts: byStatus }) => Object.values(byStatus)).reduce((sum, count) => sum + count, 0)
}

/** Moves the clock until the promise is settled. */
export async function during<Value>(clock: ManualClock, work: Promise<Value>, stepMs = 100): Promise<Value> {
  let settled = false
  const note = (): void => void (settled = true)
  work.then(note, note)
  for (let step = 0; step < 1_000 && !settled; step++) await clock.advance(stepMs)
  return work
}
