// The worker a user holds: one engine per connection, one set of slots for all of them.
import { DEFAULTS } from '../core/limits.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import type { WorkerId } from '../core/job.ts'
import { checkKnownOptions } from '../core/names.ts'
import { Engine } from './engine.ts'
import type { EngineOptions } from './engine-options.ts'
import { Slots } from './slots.ts'

export interface Worker extends AsyncDisposable {
  /** One id per connection; a life that is lost is followed by one with a new id. */
  readonly ids: readonly WorkerId[]
  /** Jobs whose handlers run now. */
  readonly running: number
  /** Takes no new jobs; running ones go on. */
  quiet(): void
  resume(): void
  /** Waits for running jobs up to the deadline (default 30 s), then aborts and gives them back. */
  stop(options?: { readonly deadline?: Duration }): Promise<void>
}

/** How long running jobs may take when a worker or a whole Millrace is stopped. */
export function checkDeadline(options: { readonly deadline?: Duration }): number {
  checkKnownOptions(options, ['deadline'], 'stop')
  return parseDuration(options.deadline ?? DEFAULTS.drainDeadlineMs, 'deadline')
}

export type EngineParts = Omit<EngineOptions, 'slots' | 'onStopCommand'>

export async function startWorker(
  engines: readonly EngineParts[],
  concurrency: number,
  onStopped: (worker: Worker) => Promise<void>,
): Promise<Worker> {
  const slots = new Slots(concurrency)
  let stopping: Promise<void> | undefined

  async function stopAll(deadlineMs: number): Promise<void> {
    await Promise.all(running.map((engine) => engine.stop(deadlineMs)))
    await onStopped(worker)
  }

  const worker: Worker = {
    get ids() {
      return running.map(({ id }) => id)
    },
    get running() {
      return slots.used
    },
    quiet: () => running.forEach((engine) => engine.quiet()),
    resume: () => running.forEach((engine) => engine.resume()),
    async stop(options = {}) {
      const deadlineMs = checkDeadline(options)
      await (stopping ??= stopAll(deadlineMs))
    },
    [Symbol.asyncDispose]: () => worker.stop(),
  }

  const running = engines.map((parts) => {
    const { logger } = parts.runtime
    const onStopCommand = (): void => {
      worker.stop().catch((error: unknown) => logger.error({ error }, 'a worker that was told to stop could not'))
    }
    return new Engine({ ...parts, slots, onStopCommand })
  })
  try {
    for (const engine of running) await engine.start()
  } catch (error) {
    await Promise.all(running.map((engine) => engine.stop(0)))
    throw error
  }
  return worker
}
