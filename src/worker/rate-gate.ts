// Rate-limited jobs take a token before they start. Those that get none are deferred to the place in the
// line that the store reserved for them; no attempt is counted.
import { isPlanted } from '../core/planted.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { LimitStore } from '../store/limit-store.ts'
import type { JobRun } from './job-run.ts'

export interface RateGateOptions {
  readonly runtime: Runtime
  readonly limits: LimitStore
  readonly admit: (run: JobRun) => void
  readonly defer: (run: JobRun, waitMs: number) => void
  readonly giveBack: (run: JobRun) => void
}

/** Each run gets exactly one answer. Never rejects. */
export async function takeTokens(runs: readonly JobRun[], options: RateGateOptions): Promise<void> {
  const { runtime, limits, admit, defer, giveBack } = options
  if (isPlanted('rate-without-token')) {
    runs.forEach(admit)
    return
  }
  try {
    const requests = runs.map(({ claimed }) => ({ queue: claimed.queue, key: claimed.limitKey }))
    const replies = await limits.take(requests)
    runtime.failpoint('rate.after-take')
    for (const [index, run] of runs.entries()) {
      const reply = replies[index]
      if (reply?.ok) admit(run)
      else defer(run, reply?.waitMs ?? 0)
    }
  } catch (error) {
    // A token may be lost, which only makes the limit stricter; the jobs go back and come again.
    runtime.logger.warn({ error, jobs: runs.length }, 'rate tokens could not be taken; the jobs go back')
    runs.forEach(giveBack)
  }
}
