// Progress and log lines of running handlers on their way to the store: what gathers between two calls of the pump
// travels as one report per run.
import { decideReport } from '../core/decide.ts'
import type { Transition } from '../core/transition.ts'
import type { JobRun } from './job-run.ts'
import type { Settlement } from './pump.ts'

const NOTHING: readonly Settlement[] = []

export class Reports {
  readonly #waiting = new Set<JobRun>()

  add(run: JobRun): void {
    this.#waiting.add(run)
  }

  /** Everything that waits, as sent from now on. */
  take(): readonly Settlement[] {
    if (this.#waiting.size === 0) return NOTHING
    // After a completion inside a transaction they go with that, or not at all.
    const runs = [...this.#waiting].filter(({ completion }) => completion === undefined)
    this.#waiting.clear()
    return runs.flatMap((run) =>
      unsentReport(run).map((transition) => {
        run.progress = undefined
        run.logLinesSent += run.logLines?.length ?? 0
        run.logLines = undefined
        run.reportsOut += 1
        return { run, transition }
      }),
    )
  }

  answered(run: JobRun): void {
    run.reportsOut -= 1
    if (run.reportsOut === 0) for (const resume of run.onReportsBack.splice(0)) resume()
  }
}

/** What the run reported and nobody sent, if anything. It stays with the run. */
export function unsentReport({ claimed, progress, logLines, logLinesSent }: JobRun): readonly Transition[] {
  if (progress === undefined && logLines === undefined) return []
  return [
    decideReport(claimed, {
      ...(progress !== undefined && { progress }),
      ...(logLines !== undefined && { logLines: [...logLines], logFrom: logLinesSent }),
    }),
  ]
}
