// Rate-limited jobs take a token before they start. Those that get none are deferred to the place in the
// line that the store reserved for them; no attempt is counted.
import { isPlanted } from '../core/planted.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { LimitStore } from '../store/limit-store.ts'
import type { JobRun } from './job-run.ts'

export interface RateGateOptions {
  readonly runtime: Runtime
  readonly limits: LimitStore
  readonly admit: (runs: readonly JobRun[]) => void
  readonly defer: (run: JobRun, waitMs: number) => void
  readonly giveBack: (run: JobRun) => void
}

/** Lets the unlimited ones through at once; the others follow when their tokens are there. */
export function passRateGate(runs: readonly JobRun[], options: RateGateOptions): void {
  const limited = isPlanted('rate-without-token') ? [] : runs.filter(({ claimed }) => claimed.rateLimited)
  if (limited.length === 0) {
    options.admit(runs)
    return
  }
  const free = runs.filter(({ claimed }) => !claimed.rateLimited)
  if (free.length > 0) options.admit(free)
  void takeTokens(limited, options)
}

async function takeTokens(runs: readonly JobRun[], options: RateGateOptions): Promise<void> {
  const { runtime, limits, admit, defer, giveBack } = options
  const requests = runs.map(({ claimed }) => ({ queue: claimed.queue, key: claimed.limitKey }))
  try {
    const replies = await limits.take(requests)
    runtime.failpoint('rate.after-take')
    const admitted: JobRun[] = []
    for (const [index, run] of runs.entries()) {
      const reply = replies[index]
      if (run.state === 'ended') continue
      if (reply?.ok) admitted.push(run)
      else refuse(run, () => defer(run, reply?.waitMs ?? 0))
    }
    if (admitted.length > 0) admit(admitted)
  } catch (error) {
    // A token may be lost, which only makes the limit stricter; the jobs go back and come again.
    runtime.logger.warn({ error, jobs: runs.length }, 'rate tokens could not be taken; the jobs go back')
    for (const run of runs) refuse(run, () => giveBack(run))
  }
}

function refuse(run: JobRun, settle: () => void): void {
  if (run.state === 'ended') return
  run.state = 'ended'
  settle()
}
