// Runs one job at a time, with the parts of the real worker: executor, deadlines, decision, verdict. Only
// the pump and the slots are missing, so that a test sees one thing happen after the other.
import { AsyncLocalStorage } from 'node:async_hooks'
import { AssertionError } from 'node:assert'
import { decideReport } from '../core/decide.ts'
import type { AnyJob, FailedInfo } from '../core/definition.ts'
import { formatDuration } from '../core/duration.ts'
import { MillraceError } from '../core/errors.ts'
import type { ClaimedJob, LeaseNumber, WorkerId } from '../core/job.ts'
import type { Json } from '../core/json.ts'
import { DEFAULTS } from '../core/limits.ts'
import type { Outcome } from '../core/outcome.ts'
import { decodePayload } from '../core/payload.ts'
import { systemClock } from '../runtime/clock.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { RunServices } from '../core/definition.ts'
import { Deadlines } from '../worker/deadlines.ts'
import { Executor } from '../worker/executor.ts'
import type { RunMiddleware } from '../core/definition.ts'
import { JobRun } from '../worker/job-run.ts'
import type { AbortCause } from '../worker/job-run.ts'
import type { RunReport } from './types.ts'

export interface BenchOptions {
  readonly runtime: Runtime
  readonly worker: WorkerId
  readonly middleware: readonly RunMiddleware[]
  readonly services: (claimed: ClaimedJob, isLive: () => boolean) => RunServices
  readonly stuckAfterMs: number
  /** Set while a handler runs: what it calls is called from inside. */
  readonly inside: AsyncLocalStorage<true>
}

export interface Ended extends Pick<RunReport, 'logs' | 'progress'> {
  readonly run: JobRun
  readonly outcome: Outcome
  readonly ranMs: number
}

type Report = ReturnType<typeof decideReport>

interface Track {
  readonly logs: RunReport['logs'][number][]
  readonly progress: Json[]
  readonly send: (report: Report) => void
  readonly end: (outcome: Outcome) => void
}

export class Bench {
  readonly #options: BenchOptions
  readonly #executor: Executor
  readonly #deadlines: Deadlines
  readonly #tracks = new Map<JobRun, Track>()

  constructor(options: BenchOptions) {
    this.#options = options
    const { clock } = options.runtime
    this.#deadlines = new Deadlines(clock)
    this.#executor = new Executor({
      clock,
      middleware: options.middleware,
      host: {
        clock,
        services: (run) => options.services(run.claimed, () => !run.over),
        onReport: (run) => this.#report(run),
        onExtend: (run) => this.#deadlines.moved(run),
      },
      onEnd: (run, outcome) => this.#tracks.get(run)?.end(outcome),
    })
  }

  runOf(claimed: ClaimedJob, definition: AnyJob | undefined): JobRun {
    return new JobRun(claimed, definition, this.#options.worker, this.#options.runtime.clock.monoMs(), (run) => {
      const { timeoutMs } = run.claimed
      const reason = new MillraceError('JOB_TIMEOUT', `the job ran longer than its timeout of ${timeoutMs} ms`)
      this.#abort(run, { reason, outcome: { kind: 'timed-out', timeoutMs } })
    })
  }

  /** Resolves when the run has an outcome; `send` gets its progress and log lines as they come. */
  start(run: JobRun, send: (report: Report) => void = () => undefined): Promise<Ended> {
    const { runtime, inside } = this.#options
    const { clock } = runtime
    return new Promise((resolve) => {
      const [logs, progress]: [Track['logs'], Json[]] = [[], []]
      const end = (outcome: Outcome): void => {
        this.#tracks.delete(run)
        resolve({ run, outcome, logs, progress, ranMs: clock.monoMs() - run.startedMs })
      }
      this.#tracks.set(run, { logs, progress, send, end })
      run.state = 'running'
      run.startedMs = clock.monoMs()
      run.dueMs = run.startedMs + run.claimed.timeoutMs
      this.#deadlines.add(run, run.claimed.timeoutMs)
      inside.run(true, () => this.#executor.start(run))
    })
  }

  /** Cancellation was asked for while the job runs. */
  cancel(leases: readonly LeaseNumber[]): void {
    for (const run of this.#tracks.keys()) {
      if (!leases.includes(run.claimed.lease)) continue
      const reason = new MillraceError('JOB_CANCELLED', 'the job was cancelled while it ran')
      this.#abort(run, { reason, outcome: { kind: 'cancel', reason: 'cancelled while running' } })
    }
  }

  /** The test must not hang where the clock stands still: after some real time it is told why. */
  async unlessStuck<Value>({ claimed }: JobRun, work: Promise<Value>): Promise<Value> {
    const { stuckAfterMs } = this.#options
    // Whatever comes after the test was told is of no use to anyone.
    work.catch(() => undefined)
    return new Promise((resolve, reject) => {
      const giveUp = (): void => {
        const message =
          `the handler of ${claimed.name} (job ${claimed.id}) has not ended after ${formatDuration(stuckAfterMs)} of real time. ` +
          'Does it wait for the virtual clock? Start it, then move the clock: ' +
          "`const run = mill.drain(); await mill.clock.advance('5m'); await run`. Does it wait for another job? " +
          'Jobs run one after the other here. If it only needs longer, raise `stuckAfter`.'
        reject(new AssertionError({ message, operator: 'drain' }))
      }
      const timer = systemClock.timer(stuckAfterMs, giveUp, { keepAlive: true })
      void work.then(resolve, reject).finally(() => timer.cancel())
    })
  }

  stop(): void {
    this.#deadlines.stop()
  }

  #abort(run: JobRun, cause: AbortCause): void {
    if (run.state === 'running') this.#executor.abort(run, cause, DEFAULTS.abortGraceMs)
  }

  #report(run: JobRun): void {
    const track = this.#tracks.get(run)
    if (track === undefined) return
    const { progress, logLines, logLinesSent } = run
    run.progress = undefined
    run.logLines = undefined
    run.logLinesSent += logLines?.length ?? 0
    if (progress !== undefined) track.progress.push(decodePayload(progress))
    track.logs.push(...(logLines ?? []).map(({ level, message }) => ({ level, message })))
    track.send(
      decideReport(run.claimed, {
        ...(progress !== undefined && { progress }),
        ...(logLines !== undefined && { logLines, logFrom: logLinesSent }),
      }),
    )
  }
}

/** The hooks of dead letters, and a way to wait for them: in a test they are part of what a drain does. */
export class FailedHooks {
  readonly #running = new Set<Promise<void>>()

  /** The same definition; its hook is waited for. */
  watch<Job extends AnyJob | undefined>(definition: Job): Job {
    return definition?.onFailed === undefined ? definition : { ...definition, onFailed: this.wrap(definition.onFailed) }
  }

  wrap(hook: (failed: FailedInfo) => void | Promise<void>): (failed: FailedInfo) => Promise<void> {
    return (failed) => {
      const call = Promise.resolve().then(() => hook(failed))
      const done: Promise<void> = call.catch(() => undefined).finally(() => this.#running.delete(done))
      this.#running.add(done)
      return call
    }
  }

  async ended(): Promise<void> {
    while (this.#running.size > 0) await Promise.all(this.#running)
  }
}
