// The live status of single jobs in Redis, for people: `HGETALL <prefix>:{<queue>}:job:<id>`, with the fields that it has where
// Redis is the only store. Only jobs that run for a while, fail or are retried have one, so quick jobs cost nothing; it
// expires by itself, and no rule reads it. Best effort: sent in batches, one call per queue under way, waited for by nobody.
//
// A quick job that ends well is shown only if it was shown before: because it ran for long, or had runs that failed.
import { clean } from '../../core/attempt-error.ts'
import { isFinal } from '../../core/job.ts'
import type { LeaseNumber, WorkerId } from '../../core/job.ts'
import type { Transition, Verdict } from '../../core/transition.ts'
import { bounded } from '../../runtime/bounded.ts'
import type { Runtime } from '../../runtime/runtime.ts'
import { createLoop } from '../../runtime/service.ts'
import type { Loop } from '../../runtime/service.ts'
import type { RaceEye, ShownJob } from './eye.ts'
import type { Flight } from './in-flight.ts'
import type { Sessions } from './session.ts'

export interface LiveStatusOptions {
  readonly runtime: Runtime
  readonly eye: RaceEye
  readonly sessions: Sessions
  /** Monotonic, as in the in-flight tables. */
  readonly monoMs: () => number
  /** In flight for this long: shown as running. */
  readonly afterMs: number
  readonly timeoutMs: number
  /** Whether the Redis of this queue can be used now. */
  readonly mayShow: (queue: string) => boolean
  /** 1, and less when the memory of Redis runs out; 0: nothing is shown. */
  readonly share: () => number
}

const LOOK_MS = 200
const KEPT_MS = 60 * 60_000
const KEPT_MIN_MS = 60_000
/** Renewed while it runs, so that a run whose worker is gone does not look alive for long. */
const RUNNING_KEPT_MS = 5 * 60_000
const RENEW_MS = 2 * 60_000
/** A job that was put back without a failure is not followed further. */
const PUT_BACK_KEPT_MS = 10_000
const PENDING_MAX = 1_000
const NOT_ENDED: ReadonlySet<Transition['edge']> = new Set(['report', 'requestCancel'])
const ALWAYS_SHOWN: ReadonlySet<Transition['edge']> = new Set(['fail', 'retry'])

export class LiveStatus {
  readonly #options: LiveStatusOptions
  readonly #loop: Loop
  /** When a lease was shown as running. */
  readonly #shown = new Map<LeaseNumber, number>()
  readonly #pending = new Map<string, ShownJob[]>()
  readonly #sending = new Set<string>()

  constructor(options: LiveStatusOptions) {
    this.#options = options
    const { runtime } = options
    this.#loop = createLoop({ name: 'live status', runtime, pass: () => this.#pass() })
  }

  start(): Promise<void> {
    return this.#loop.start()
  }

  stop(): Promise<void> {
    return this.#loop.stop()
  }

  /** A run has ended, here, with this verdict. Sent with `flush`. */
  ended(worker: WorkerId, flight: Flight, transition: Transition, verdict: Verdict): void {
    const wasShown = this.#shown.delete(flight.lease)
    const isKnown = wasShown || flight.attemptCount + flight.crashCount > 0
    if (!isKnown && !ALWAYS_SHOWN.has(transition.edge)) return
    if (verdict !== 'applied' && verdict !== 'alternative' && verdict !== 'already') return
    const end = (verdict === 'alternative' ? transition.ifCancelRequested : transition) ?? transition
    if (!NOT_ENDED.has(end.edge)) this.#put(flight.queue, endOf(worker, flight, end, this.#options.share()))
  }

  /** What has gathered goes out; nobody waits for it. */
  flush(): void {
    for (const queue of this.#pending.keys()) void this.#send(queue)
  }

  #pass(): Promise<number> {
    const { sessions, monoMs, afterMs } = this.#options
    const nowMs = monoMs()
    for (const { worker, inFlight } of sessions.all()) {
      if (inFlight.size === 0) continue
      for (const { flight, ageMs } of inFlight.olderThan(afterMs, nowMs)) {
        const shownMs = this.#shown.get(flight.lease)
        if (shownMs !== undefined && nowMs - shownMs < RENEW_MS) continue
        this.#shown.set(flight.lease, nowMs)
        this.#put(flight.queue, runOf(worker, flight, ageMs))
      }
    }
    // Lost, or given back: nobody tells their end.
    for (const lease of this.#shown.keys()) if (sessions.holding({ lease }) === null) this.#shown.delete(lease)
    this.flush()
    return Promise.resolve(LOOK_MS)
  }

  #put(queue: string, job: ShownJob): void {
    const { mayShow, share } = this.#options
    if (!mayShow(queue) || share() <= 0) return
    const jobs = this.#pending.get(queue)
    if (jobs === undefined) this.#pending.set(queue, [job])
    else if (jobs.length < PENDING_MAX) jobs.push(job)
  }

  /** In order, so that what came later stays. Never throws: what does not arrive is missing for a while. */
  async #send(queue: string): Promise<void> {
    const { eye, runtime, timeoutMs } = this.#options
    if (this.#sending.has(queue)) return
    this.#sending.add(queue)
    for (let jobs = this.#pending.get(queue); jobs !== undefined; jobs = this.#pending.get(queue)) {
      this.#pending.delete(queue)
      await bounded(runtime.clock, timeoutMs, 'Redis', eye.show(queue, jobs)).catch(() => undefined)
    }
    this.#sending.delete(queue)
  }
}

function runOf(worker: WorkerId, { jobId, lease, attemptCount }: Flight, ageMs: number): ShownJob {
  const fields = { status: 'running', worker, ...(attemptCount > 0 && { attempt: String(attemptCount) }) }
  const times = { started: -Math.round(ageMs) }
  return { id: jobId, lease, keepMs: RUNNING_KEPT_MS, fields, times, gone: ['finished', 'nextRetry'] }
}

function endOf(worker: WorkerId, { jobId, lease, attemptCount }: Flight, end: Transition, share: number): ShownJob {
  const { edge, to, error, attempt, delayMs, ranMs } = end
  const isOver = isFinal(to)
  const isLater = to === 'scheduled' && delayMs !== undefined
  const counted = attemptCount + (attempt === 'count' ? 1 : 0)
  const fields = {
    status: to,
    worker,
    ...(counted > 0 && { attempt: String(counted) }),
    ...(error !== undefined && { error: JSON.stringify(error, cleanly) }),
  }
  const times = {
    ...(ranMs !== undefined && { started: -Math.round(ranMs) }),
    ...(isOver && { finished: 0 }),
    ...(isLater && { nextRetry: Math.ceil(delayMs) }),
  }
  const gone = [...(isOver ? [] : ['finished']), ...(isLater ? [] : ['nextRetry'])]
  const keptMs = Math.max(KEPT_MS * share, KEPT_MIN_MS)
  const isFollowed = isOver || edge === 'retry'
  const keepMs = isFollowed ? keptMs : Math.min(keptMs, (delayMs ?? 0) + PUT_BACK_KEPT_MS)
  return { id: jobId, lease, keepMs, fields, times, gone }
}

function cleanly(_: string, value: unknown): unknown {
  return typeof value === 'string' ? clean(value) : value
}
