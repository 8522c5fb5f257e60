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
  /** Their jobs are locked; they wait for a timer. */
  readonly #resting = new Set<JobRun>()

  constructor(options: ReportsOptions) {
    this.#options = options
  }

  add(run: JobRun): void {
    if (this.#resting.has(run)) return
    this.#waiting.add(run)
    this.#options.onWaiting()
  }

  /** At most so many of those that wait, as sent from now on. Each run has at most one under way. */
  take(most: number): readonly Settlement[] {
    if (this.#waiting.size === 0) return NOTHING
    const taken: Settlement[] = []
    for (const run of this.#waiting) {
      if (taken.length >= most) break
      if (run.reportOut !== undefined) continue
      this.#waiting.delete(run)
      const report = unsent(run)
      // After a completion inside a transaction it goes with that, or not at all.
      if (report === undefined || run.completion !== undefined) continue
      // The end of a run waits for a lock anyway, and must not overtake its report.
      const transition = decideReport(run.claimed, run.over ? report : { ...report, ifFree: true })
      run.progress = undefined
      run.logLinesSent += run.logLines?.length ?? 0
      run.logLines = undefined
      run.reportOut = transition
      taken.push({ run, transition })
    }
    return taken
  }

  /** It may not have arrived: the run has it again, before what it reported since. */
  takeBack(run: JobRun, report: Transition): void {
    if (run.reportOut !== report) return // it was answered
    const { progress, logLines } = report
    run.reportOut = undefined
    run.progress ??= progress
    if (logLines !== undefined) {
      run.logLinesSent -= logLines.length
      run.logLines = [...logLines, ...(run.logLines ?? [])]
    }
    this.add(run)
  }

  /** The job is locked: the same, a little later. */
  rest(run: JobRun, transition: Transition): void {
    if (!run.over) {
      this.#resting.add(run)
      this.#options.clock.timer(BUSY_WAIT_MS, () => this.#wake(run))
    }
    this.takeBack(run, transition)
  }

  /** What it reported goes before its end, also if it was to rest. */
  ended(run: JobRun): void {
    if (run.hasUnsentReport) this.#wake(run)
  }

  #wake(run: JobRun): void {
    this.#resting.delete(run)
    this.add(run)
  }
}

/** Whatever the run reported and no answer confirms, as one report that may be sent again. It stays with the run. */
export function openReport(run: JobRun): readonly Transition[] {
  const { reportOut } = run
  const later = unsent(run)
  const progress = later?.progress ?? reportOut?.progress
  const logFrom = reportOut?.logFrom ?? later?.logFrom
  const logLines = [...(reportOut?.logLines ?? []), ...(later?.logLines ?? [])]
  if (progress === undefined && logFrom === undefined) return []
  return [
    decideReport(run.claimed, {
      ...(progress !== undefined && { progress }),
      ...(logFrom !== undefined && { logLines, logFrom }),
    }),
  ]
}

/** What was reported and never sent. */
function unsent(run: JobRun): Report | undefined {
  if (!run.hasUnsentReport) return undefined
  const { progress, logLines, logLinesSent } = run
  return {
    ...(progress !== undefined && { progress }),
    ...(logLines !== undefined && { logLines: [...logLines], logFrom: logLinesSent }),
  }
}
