// The work of a child: a worker that does what its supervisor says, tells it every second how it is, and drains when there
// is nobody left to tell.
import type { Millrace } from '../millrace.ts'
import { sleep } from '../runtime/clock.ts'
import type { Clock, Timer } from '../runtime/clock.ts'
import type { ProcessMeter } from '../runtime/process-meter.ts'
import type { Worker } from '../worker/worker.ts'
import type { WorkOptions } from '../works.ts'
import { STATS_MS } from './messages.ts'
import type { FromChild, ToChild } from './messages.ts'

export interface ChildRunOptions {
  readonly mill: Millrace
  readonly clock: Clock
  readonly meter: ProcessMeter
  readonly work: WorkOptions
  readonly isQuiet: boolean
  readonly control: ChildControl
  readonly send: (message: FromChild) => void
  /** Counters and histograms, sent along every few seconds. */
  readonly metrics?: () => unknown
}

const IDLE_POLL_MS = 20
const METRICS_EVERY = 5

/** What the child is to do, as last said; it may be said before there is a worker. */
export class ChildControl {
  readonly #clock: Clock
  #worker: Worker | undefined
  #isQuiet = false
  #tellLeaving: () => void = () => undefined
  /** Resolves with the first reason. */
  readonly leaving = new Promise<void>((resolve) => (this.#tellLeaving = resolve))
  reason: string | undefined
  deadlineAtMs = Infinity

  constructor(clock: Clock) {
    this.#clock = clock
  }

  tell(message: ToChild): void {
    if (message.kind === 'quiet' || message.kind === 'resume') this.setQuiet(message.kind === 'quiet')
    else if (message.kind === 'drain') this.leave('drain', message.deadlineMs)
    else if (message.kind === 'stop') this.leave('stop', 0)
  }

  setQuiet(isQuiet: boolean): void {
    this.#isQuiet = isQuiet
    // Whoever leaves stays quiet.
    if (isQuiet || this.reason !== undefined) this.#worker?.quiet()
    else this.#worker?.resume()
  }

  /** Later words can only make it sooner. */
  leave(reason: string, deadlineMs: number | null): void {
    this.reason ??= reason
    this.deadlineAtMs = Math.min(this.deadlineAtMs, deadlineMs === null ? Infinity : this.#clock.monoMs() + deadlineMs)
    this.#worker?.quiet()
    this.#tellLeaving()
  }

  attach(worker: Worker): void {
    this.#worker = worker
    if (this.#isQuiet || this.reason !== undefined) worker.quiet()
  }
}

/** Answers whether all its jobs had the time they needed. */
export async function runChild(options: ChildRunOptions): Promise<boolean> {
  const { mill, clock, control, send } = options
  if (options.isQuiet) control.setQuiet(true)
  const totals = { processed: 0, failed: 0 }
  const byQueue = new Map<string, number>()
  const ended = ({ queue }: { readonly queue: string }): void => {
    totals.processed += 1
    byQueue.set(queue, (byQueue.get(queue) ?? 0) + 1)
  }
  const failed = (event: { readonly queue: string }): void => {
    ended(event)
    totals.failed += 1
  }
  for (const name of ['completed', 'cancelled'] as const) mill.on(name, ended)
  for (const name of ['retried', 'failed'] as const) mill.on(name, failed)
  mill.on('workerStopped', () => control.leave('stop-command', 0))

  const worker = await mill.work(options.work)
  control.attach(worker)
  const { queues } = options.work
  send({ kind: 'ready', workerIds: worker.ids, ...(queues !== undefined && { queues }) })
  const tell = (isWithMetrics: boolean): void => {
    const { metrics } = options
    const snapshot = metrics !== undefined && isWithMetrics ? { metrics: metrics() } : {}
    const { ids: workerIds, running } = worker
    const stats = { workerIds, running, ...totals, ended: Object.fromEntries(byQueue), ...options.meter.read() }
    send({ kind: 'stats', stats: { ...stats, ...snapshot } })
  }
  let ticks = 0
  const ticking = every(clock, STATS_MS, () => tell(ticks++ % METRICS_EVERY === 0))
  try {
    await control.leaving
    send({ kind: 'draining', reason: control.reason ?? 'drain' })
    while (worker.running > 0 && clock.monoMs() < control.deadlineAtMs) await sleep(clock, IDLE_POLL_MS)
    const drained = worker.running === 0
    // Whatever still runs is aborted and given back.
    await worker.stop({ deadline: 0 })
    // What was counted since the last time would be missing from the sums for ever.
    tell(true)
    send({ kind: 'done', drained })
    return drained
  } finally {
    ticking.cancel()
  }
}

/** At once and then each time; it keeps the process alive, which the timers of a worker do not. */
function every(clock: Clock, periodMs: number, act: () => void): Timer {
  let timer: Timer
  const tick = (): void => {
    timer = clock.timer(periodMs, tick, { keepAlive: true })
    act()
  }
  tick()
  return { cancel: () => timer.cancel() }
}
