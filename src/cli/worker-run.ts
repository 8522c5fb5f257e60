// The life of a worker process: it works until somebody or something ends it, then drains with a deadline.
//
// What ends it: a signal (a second one ends at once), a stop command from the store, the memory limit, or the
// number of jobs it was to run. The first of them counts; the last two wait for running jobs without a deadline.
import type { Millrace } from '../millrace.ts'
import { sleep } from '../runtime/clock.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { Worker } from '../worker/worker.ts'
import type { WorkOptions } from '../works.ts'
import { EXIT } from './exit-codes.ts'
import type { ExitCode } from './exit-codes.ts'
import type { CliIo } from './io.ts'

export interface WorkerRunOptions {
  readonly mill: Millrace
  readonly io: Pick<CliIo, 'onSignal' | 'exit' | 'rssBytes'>
  readonly clock: Clock
  readonly log: Logger
  readonly work: WorkOptions
  readonly deadlineMs: number
  readonly memoryMb?: number
  readonly maxJobs?: number
  /** One log line per job; otherwise only for those that fail. */
  readonly eachJob: boolean
  /** It takes jobs; it takes none any more. */
  readonly onState?: (state: 'working' | 'draining') => void
  /** Every second while it works. */
  readonly onSecond?: () => void
}

export interface JobTotals {
  started: number
  completed: number
  retried: number
  failed: number
  cancelled: number
  released: number
}

export interface WorkerRunReport {
  readonly reason: EndReason
  readonly exitCode: ExitCode
  readonly jobs: Readonly<JobTotals>
  readonly ranMs: number
  /** False: jobs still ran at the deadline; they were aborted and given back. */
  readonly drained: boolean
}

export type EndReason = 'SIGINT' | 'SIGTERM' | 'stop-command' | 'memory' | 'max-jobs'

const WATCH_MS = 1_000
const IDLE_POLL_MS = 50
const MB = 1024 * 1024

export async function runWorker(options: WorkerRunOptions): Promise<WorkerRunReport> {
  const { mill, io, clock, log, work, deadlineMs } = options
  const startMs = clock.monoMs()
  const totals: JobTotals = { started: 0, completed: 0, retried: 0, failed: 0, cancelled: 0, released: 0 }
  const end = createEnd()
  let worker: Worker | undefined

  const deaf = [countJobs(mill, totals), logJobs(mill, log, options.eachJob)]
  const offStarted = mill.on('started', () => {
    totals.started += 1
    if (totals.started < (options.maxJobs ?? Infinity)) return
    // Within the event of the last start, so that not one more begins.
    worker?.quiet()
    end.because('max-jobs')
  })
  const offStopped = mill.on('workerStopped', () => end.because('stop-command'))
  let signals = 0
  const offSignal = io.onSignal((signal) => {
    signals += 1
    if (signals > 1) {
      log.warn({}, `${signal} again: ends at once; its jobs are given to others`)
      io.exit(EXIT.interrupted)
      return
    }
    log.info({}, `${signal}: takes no new jobs and waits for running ones; once more ends at once`)
    end.because(signal)
  })
  const watch = watchProcess(options, () => end.because('memory'))
  try {
    worker = await mill.work(work)
    log.info({ workers: worker.ids, ...queuesOf(work) }, 'worker started')
    if (end.reason !== undefined) worker.quiet()
    else options.onState?.('working')
    const reason = await end.reached
    options.onState?.('draining')
    if (reason === 'max-jobs' || reason === 'memory') {
      // Nobody is in a hurry: running jobs have their own timeouts. A signal makes it one.
      worker.quiet()
      while (worker.running > 0 && signals === 0) await sleep(clock, IDLE_POLL_MS)
    }
    const [busy, askedMs] = [worker.running > 0, clock.monoMs()]
    await worker.stop({ deadline: deadlineMs })
    const drained = !busy || clock.monoMs() - askedMs < deadlineMs
    const report = { reason, jobs: totals, ranMs: Math.round(clock.monoMs() - startMs), drained }
    log.info({ reason, ...totals, ranMs: report.ranMs }, drained ? 'work ended' : 'work ended at its deadline')
    return { ...report, exitCode: exitCodeOf(reason, drained) }
  } finally {
    watch.cancel()
    for (const off of [...deaf, offStarted, offStopped, offSignal]) off()
  }
}

/** Jobs that were cut off are a failure of the stop, whatever asked for it. */
function exitCodeOf(reason: EndReason, drained: boolean): ExitCode {
  if (!drained) return EXIT.timedOut
  return reason === 'memory' ? EXIT.unmet : EXIT.done
}

/** The first reason counts. */
function createEnd() {
  let resolve: (reason: EndReason) => void
  const reached = new Promise<EndReason>((done) => (resolve = done))
  const end: { reason: EndReason | undefined; readonly reached: Promise<EndReason>; because(why: EndReason): void } = {
    reason: undefined,
    reached,
    because(why) {
      end.reason ??= why
      resolve(end.reason)
    },
  }
  return end
}

/** Also what keeps the process alive: the timers of a worker do not. */
function watchProcess({ clock, io, log, memoryMb = Infinity, onSecond }: WorkerRunOptions, onFull: () => void): Timer {
  let timer: Timer
  let isFull = false
  const tick = (): void => {
    onSecond?.()
    const rssMb = Math.round(io.rssBytes() / MB)
    if (rssMb > memoryMb && !isFull) {
      isFull = true
      log.warn({ rssMb, memoryMb }, 'over its memory limit: takes no new jobs and waits for running ones')
      onFull()
    }
    timer = clock.timer(WATCH_MS, tick, { keepAlive: true })
  }
  timer = clock.timer(WATCH_MS, tick, { keepAlive: true })
  return { cancel: () => timer.cancel() }
}

function countJobs(mill: Millrace, totals: JobTotals): () => void {
  const ends = ['completed', 'retried', 'failed', 'cancelled', 'released'] as const
  const offs = ends.map((end) => mill.on(end, () => void (totals[end] += 1)))
  return () => offs.forEach((off) => off())
}

/** A line for each job that fails; for all that happens to every one, if asked for. */
export function logJobs(mill: Millrace, log: Logger, eachJob: boolean): () => void {
  const offs = [
    mill.on('failed', ({ id, name, queue, attempt, error }) =>
      log.error({ id, queue, attempt, error: `${error.name}: ${error.message}` }, `${name} failed`),
    ),
    mill.on('workerLost', ({ worker, reason }) => log.error({ worker, reason }, 'worker lost; a new life begins')),
  ]
  if (eachJob) {
    offs.push(
      mill.on('started', ({ id, name, queue, attempt }) => log.info({ id, queue, attempt }, `${name} started`)),
      mill.on('completed', ({ id, name, queue, attempt, ranMs }) =>
        log.info({ id, queue, attempt, ranMs: Math.round(ranMs) }, `${name} completed`),
      ),
      mill.on('retried', ({ id, name, queue, attempt, error, delayMs }) => {
        const facts = { id, queue, attempt, error: error.message, delayMs: Math.round(delayMs) }
        log.warn(facts, `${name} will be tried again`)
      }),
      mill.on('cancelled', ({ id, name, queue }) => log.info({ id, queue }, `${name} was cancelled`)),
      mill.on('released', ({ id, name, queue, reason }) => log.info({ id, queue, reason }, `${name} was given back`)),
    )
  }
  return () => offs.forEach((off) => off())
}

function queuesOf({ queues, concurrency }: WorkOptions): Record<string, unknown> {
  return { queues: queues ?? 'all', ...(concurrency !== undefined && { concurrency }) }
}
