// Progress and log lines of running handlers on their way to the store: what gathers between two calls of the pump
// travels as one report per run. A report never waits for a lock on its job, because everything else of the worker would
// wait with it: it comes back as `busy` and goes out again a little later.
import { decideReport } from '../core/decide.ts'
import type { Report } from '../core/decide.ts'
import type { Transition } from '../core/transition.ts'
import type { Clock } from '../runtime/clock.ts'
import type { JobRun } from './job-run.ts'
import type { Settlement } from './pump.ts'

const NOTHING: readonly Settlement[] = []
const BUSY_WAIT_MS = 100

export interface ReportsOptions {
  readonly clock: Clock
  /** There is something to take. */
  readonly onWaiting: () => void
}

export class Reports {
  readonly #options: ReportsOptions
  readonly #waiting = new Set<JobRun>()

  constructor(options: ReportsOptions) {
    this.#options = options
  }

  add(run: JobRun): void {
    this.#waiting.add(run)
    this.#options.onWaiting()
  }

  /** Everything that waits, as sent from now on. */
  take(): readonly Settlement[] {
    if (this.#waiting.size === 0) return NOTHING
    // After a completion inside a transaction they go with that, or not at all.
    const runs = [...this.#waiting].filter(({ completion }) => completion === undefined)
    this.#waiting.clear()
    return runs.flatMap((run) => {
      const report = unsent(run)
      if (report === undefined) return NOTHING
      // The end of a run waits for a lock anyway, and must not overtake its report.
      const transition = decideReport(run.claimed, run.over ? report : { ...report, ifFree: true })
      run.progress = undefined
      run.logLinesSent += run.logLines?.length ?? 0
      run.logLines = undefined
      run.reportsOut = [...(run.reportsOut ?? []), transition]
      return [{ run, transition }]
    })
  }

  answered(run: JobRun, transition: Transition): void {
    const rest = run.reportsOut?.filter((out) => out !== transition)
    run.reportsOut = rest?.length === 0 ? undefined : rest
  }

  /** It was answered with `busy`: the run has it again, before what it reported since. */
  takeBack(run: JobRun, { progress, logLines }: Transition): void {
    run.progress ??= progress
    if (logLines !== undefined) {
      run.logLinesSent -= logLines.length
      run.logLines = [...logLines, ...(run.logLines ?? [])]
    }
    if (run.over) this.add(run)
    else this.#options.clock.timer(BUSY_WAIT_MS, () => this.add(run))
  }

  /** What it reported goes before its end, also if it was to wait a little. */
  ended(run: JobRun): void {
    if (run.progress !== undefined || run.logLines !== undefined) this.add(run)
  }
}

/** Whatever the run reported and no answer confirms, as one report that may be sent again. It stays with the run. */
export function openReport(run: JobRun): readonly Transition[] {
  const all: readonly Report[] = [...(run.reportsOut ?? []), unsent(run) ?? {}]
  const progress = all.findLast((report) => report.progress !== undefined)?.progress
  const logLines = all.flatMap((report) => report.logLines ?? [])
  if (progress === undefined && logLines.length === 0) return []
  const logFrom = all.find((report) => report.logFrom !== undefined)?.logFrom
  return [
    decideReport(run.claimed, {
      ...(progress !== undefined && { progress }),
      ...(logFrom !== undefined && { logLines, logFrom }),
    }),
  ]
}

/** What was reported and never sent. */
function unsent({ progress, logLines, logLinesSent }: JobRun): Report | undefined {
  if (progress === undefined && logLines === undefined) return undefined
  return {
    ...(progress !== undefined && { progress }),
    ...(logLines !== undefined && { logLines: [...logLines], logFrom: logLinesSent }),
  }
}
