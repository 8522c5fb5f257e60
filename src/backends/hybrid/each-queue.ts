// One queue after the other: what fails for one is no reason to leave the others.
import type { Logger } from '../../runtime/logger.ts'

/** So many failures are not the fault of a queue: the pass ends, and begins again later. */
const FAILURES_MAX = 3

/** Throws when none, or too many, could be done. */
export async function eachQueue<Queue extends { readonly queue: string }>(
  logger: Logger,
  what: string,
  queues: readonly Queue[],
  act: (queue: Queue) => Promise<void>,
): Promise<void> {
  const failures: { readonly queue: string; readonly error: unknown }[] = []
  for (const one of queues) {
    try {
      await act(one)
    } catch (error) {
      failures.push({ queue: one.queue, error })
      if (failures.length === Math.min(FAILURES_MAX, queues.length)) throw error
    }
  }
  for (const failure of failures) logger.warn(failure, `${what} failed for a queue and will try again`)
}
