// Runs jobs when asked, one at a time: everything that is ready, the next one, or everything up to the last
// retry. It also follows the clock: at each moment at which something is due it does the upkeep, and with
// `inline` runs what became ready.
import { AssertionError } from 'node:assert'
import type { AsyncLocalStorage } from 'node:async_hooks'
import type { World } from '../backends/memory/world.ts'
import { MillraceError } from '../core/errors.ts'
import { checkInteger, checkKnownOptions } from '../core/names.ts'
import type { Bench, FailedHooks } from './bench.ts'
import type { Line } from './line.ts'
import { RUN_STATUSES } from './types.ts'
import type { DrainOptions, DrainReport, JobReport } from './types.ts'
import type { Upkeep } from './upkeep.ts'
import type { ClockFollower, VirtualClock } from './virtual-clock.ts'

export interface Station {
  readonly line: Line
  readonly upkeep: Upkeep
  readonly bench: Bench
  readonly world: World
}

export interface StepperOptions {
  readonly stations: readonly Station[]
  readonly clock: VirtualClock
  readonly hooks: FailedHooks
  readonly inside: AsyncLocalStorage<true>
  readonly isInline: boolean
}

const LIMIT_DEFAULT = 10_000
const LIMIT_MAX = 10_000_000

export class Stepper implements ClockFollower {
  readonly #options: StepperOptions
  #tail: Promise<unknown> = Promise.resolve()
  #draining = 0

  constructor(options: StepperOptions) {
    this.#options = options
  }

  async drain(options: DrainOptions = {}): Promise<DrainReport> {
    checkKnownOptions(options, ['queue', 'limit', 'withScheduled'], 'drain()')
    const tally = new Tally(checkInteger(options.limit ?? LIMIT_DEFAULT, 'limit', 1, LIMIT_MAX))
    this.#checkQueue(options.queue)
    await this.#alone(() => this.#drain(tally, options, () => false))
    return tally.report()
  }

  async runNext(options: { readonly queue?: string } = {}): Promise<JobReport | null> {
    checkKnownOptions(options, ['queue'], 'runNext()')
    const { queue } = options
    this.#checkQueue(queue)
    return this.#alone(async () => {
      const report = (await this.#runOne(queue)) ?? (await this.#catchUpAndRunOne(queue))
      await this.#rest()
      return report
    })
  }

  /** After a call that may have made jobs ready. Answers what the first failing run threw. */
  async runInline(): Promise<{ readonly thrown: unknown } | undefined> {
    // Called by a handler: the drain that runs it goes on with what it has enqueued.
    if (this.#options.inside.getStore() === true) return undefined
    const tally = new Tally(LIMIT_DEFAULT)
    await this.#alone(() => this.#drain(tally, {}, () => false))
    return tally.firstFailure
  }

  /** Lets time pass until this holds. */
  async runUntil(isReached: () => boolean): Promise<void> {
    await this.#alone(() => this.#drain(new Tally(LIMIT_DEFAULT), { withScheduled: true }, isReached))
  }

  nextDueMs(afterMs: number): number {
    return Math.min(...this.#options.stations.map(({ upkeep }) => upkeep.nextDueMs(afterMs)))
  }

  async onTime(atRest: boolean): Promise<void> {
    await this.#catchUp()
    if (atRest) for (const { upkeep } of this.#options.stations) await upkeep.prune()
    // A drain that is under way takes what became ready; waiting for it here could wait for this very clock.
    if (!this.#options.isInline || this.#draining > 0) return
    await this.#alone(() => this.#drain(new Tally(LIMIT_DEFAULT), {}, () => false))
  }

  async stop(): Promise<void> {
    for (const { upkeep, bench } of this.#options.stations) {
      bench.stop()
      await upkeep.stop()
    }
  }

  async #drain(tally: Tally, { queue, withScheduled }: DrainOptions, isReached: () => boolean): Promise<void> {
    const { clock } = this.#options
    for (;;) {
      await this.#runReady(tally, queue, isReached)
      const nextMs = withScheduled && !isReached() ? this.#nextScheduledMs(queue) : Infinity
      if (nextMs === Infinity || nextMs <= clock.nowMs()) break
      await clock.set(nextMs)
    }
    await this.#rest()
  }

  async #runReady(tally: Tally, queue: string | undefined, isReached: () => boolean): Promise<void> {
    while (!isReached()) {
      const report = (await this.#runOne(queue)) ?? (await this.#catchUpAndRunOne(queue))
      if (report === null) return
      tally.add(report)
    }
  }

  async #runOne(queue: string | undefined): Promise<JobReport | null> {
    for (const { line } of this.#options.stations) {
      const queues = queue === undefined ? line.queues : line.queues.filter((name) => name === queue)
      const report = queues.length === 0 ? null : await line.runNext(queues)
      if (report !== null) return report
    }
    return null
  }

  async #catchUpAndRunOne(queue: string | undefined): Promise<JobReport | null> {
    await this.#catchUp()
    return this.#runOne(queue)
  }

  async #catchUp(): Promise<void> {
    for (const { line, upkeep } of this.#options.stations) {
      await line.beat()
      await upkeep.catchUp()
    }
  }

  /** Hooks and listeners of what has just ended are part of it. */
  async #rest(): Promise<void> {
    await this.#options.hooks.ended()
    await this.#options.clock.breathe()
  }

  #nextScheduledMs(queue: string | undefined): number {
    let nextMs = Infinity
    for (const { world } of this.#options.stations) {
      if (queue === undefined) nextMs = Math.min(nextMs, world.scheduled.first()?.heapKeyMs ?? Infinity)
      else
        for (const job of world.jobs.values())
          if (job.queue === queue && job.status === 'scheduled') nextMs = Math.min(nextMs, job.runAtMs)
    }
    return nextMs
  }

  /** Drains wait for each other; one that a handler asks for runs inside the one that runs the handler. */
  #alone<Value>(work: () => Promise<Value>): Promise<Value> {
    const counted = async (): Promise<Value> => {
      this.#draining += 1
      try {
        return await work()
      } finally {
        this.#draining -= 1
      }
    }
    if (this.#options.inside.getStore() === true) return counted()
    const turn = this.#tail.then(counted)
    this.#tail = turn.catch(() => undefined)
    return turn
  }

  #checkQueue(queue: string | undefined): void {
    const known = this.#options.stations.flatMap(({ line }) => line.queues)
    if (queue === undefined || known.includes(queue)) return
    const message = `no registered job uses the queue ${JSON.stringify(queue)}: known are ${known.join(', ')}`
    throw new MillraceError('QUEUE_NOT_FOUND', message, { details: { queue } })
  }
}

class Tally {
  readonly #limit: number
  readonly #counts = new Map<string, number>()
  readonly #kinds = new Map<string, number>()
  #ran = 0
  firstFailure: { readonly thrown: unknown } | undefined

  constructor(limit: number) {
    this.#limit = limit
  }

  add({ status, name, thrown }: JobReport): void {
    this.#ran += 1
    this.#counts.set(status, (this.#counts.get(status) ?? 0) + 1)
    this.#kinds.set(name, (this.#kinds.get(name) ?? 0) + 1)
    if (status === 'failed' || status === 'retried') this.firstFailure ??= { thrown }
    if (this.#ran > this.#limit) throw this.#tooMany()
  }

  report(): DrainReport {
    const counts = RUN_STATUSES.map((status) => [status, this.#counts.get(status) ?? 0])
    // Every status of the union has a row.
    return { ran: this.#ran, ...Object.fromEntries(counts) } as DrainReport
  }

  #tooMany(): AssertionError {
    const [most] = [...this.#kinds].sort(([, a], [, b]) => b - a)
    const message =
      `the drain was stopped after ${this.#ran} runs, ${most?.[1]} of them of ${most?.[0]}: a job keeps enqueuing itself, ` +
      'or snoozes or retries without an end. If so many runs are right, raise `limit`.'
    return new AssertionError({ message, operator: 'drain' })
  }
}
