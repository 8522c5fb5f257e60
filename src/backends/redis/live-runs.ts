// Runs that have no hash yet: a claim writes none for a plain job, and most are over before anybody could look. Those that
// last get theirs by lua/mark.lua, so that `HGETALL` shows them; nothing else depends on it, and a mark that is late or
// lost costs the view alone.
import type { ClaimedJob, JobId, LeaseNumber } from '../../core/job.ts'
import type { Clock, Timer } from '../../runtime/clock.ts'

export interface LiveRunsOptions {
  readonly clock: Clock
  /** Writes the hashes of those that still run. */
  readonly mark: (queue: string, runs: readonly LiveRun[]) => Promise<void>
}

export interface LiveRun {
  readonly id: JobId
  readonly lease: LeaseNumber
}

/** Shared by the jobs of a claim. */
interface Claim {
  readonly queue: string
  readonly lease: LeaseNumber
  readonly sinceMs: number
}

export const SHOWN_AFTER_MS = 250
const LOOK_MS = 100
const MARKS_MAX = 1_000

export class LiveRuns {
  readonly #options: LiveRunsOptions
  /** In the order of their claims, so the first are the oldest. Without the jobs: their payloads would outlive the young heap. */
  readonly #runs = new Map<JobId, Claim>()
  #timer: Timer | undefined
  #isOn = false

  constructor(options: LiveRunsOptions) {
    this.#options = options
  }

  start(): void {
    this.#isOn = true
  }

  stop(): void {
    this.#isOn = false
    this.#timer?.cancel()
    this.#timer = undefined
    this.#runs.clear()
  }

  claimed(jobs: readonly ClaimedJob[]): void {
    if (jobs.length === 0 || !this.#isOn) return
    const sinceMs = this.#options.clock.monoMs()
    let claim: Claim | undefined
    for (const { id, queue, lease } of jobs) {
      if (claim?.lease !== lease || claim.queue !== queue) claim = { queue, lease, sinceMs }
      this.#runs.set(id, claim)
    }
    this.#plan()
  }

  /** It has ended, or whatever happened has made its hash. */
  settled(id: JobId): void {
    this.#runs.delete(id)
  }

  #plan(): void {
    this.#timer ??= this.#options.clock.timer(LOOK_MS, () => void this.#look())
  }

  /** One call per queue; what fails is tried with the next look. */
  async #look(): Promise<void> {
    const timer = this.#timer
    const marks = [...this.#due()].map(async ([queue, runs]) => {
      await this.#options.mark(queue, runs)
      for (const { id, lease } of runs) if (this.#runs.get(id)?.lease === lease) this.#runs.delete(id)
    })
    await Promise.allSettled(marks)
    if (this.#timer !== timer) return
    this.#timer = undefined
    if (this.#runs.size > 0) this.#plan()
  }

  #due(): ReadonlyMap<string, readonly LiveRun[]> {
    const beforeMs = this.#options.clock.monoMs() - SHOWN_AFTER_MS
    const byQueue = new Map<string, LiveRun[]>()
    let left = MARKS_MAX
    for (const [id, { queue, lease, sinceMs }] of this.#runs) {
      if (sinceMs > beforeMs || left === 0) break
      left -= 1
      const known = byQueue.get(queue)
      if (known === undefined) byQueue.set(queue, [{ id, lease }])
      else known.push({ id, lease })
    }
    return byQueue
  }
}
