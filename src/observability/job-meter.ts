// Counts the life of jobs per queue and kind. Each pair has one array of numbers (counts, then the buckets of its times), so
// that counting is a few additions and no object is made. Pairs beyond a bound share one array under the name `other`.
import { JOB_BOUNDS_SECONDS } from '../core/buckets.ts'
import type { Buckets } from '../core/buckets.ts'
import { ERROR_CLASSES } from '../core/classify.ts'
import type { ErrorClass } from '../core/classify.ts'
import type { EdgeName } from '../core/edges.ts'
import { JOB_COUNTS, JOB_TIMES, OTHER } from '../core/job-series.ts'
import type { JobCount, JobSeries, JobTime } from '../core/job-series.ts'
import type { ClaimedJob } from '../core/job.ts'
import type { Lane } from '../core/priority.ts'
import type { Transition } from '../core/transition.ts'

const BOUNDS_MS = JOB_BOUNDS_SECONDS.map((seconds) => seconds * 1_000)
/** Buckets, the one above the last bound, and the sum. */
const TIME_SIZE = BOUNDS_MS.length + 2
const FAILED_AT = JOB_COUNTS.length
const TIMES_AT = FAILED_AT + ERROR_CLASSES.length
const SIZE = TIMES_AT + JOB_TIMES.length * TIME_SIZE

const at = (count: JobCount): number => JOB_COUNTS.indexOf(count)
const timeAt = (time: JobTime): number => TIMES_AT + JOB_TIMES.indexOf(time) * TIME_SIZE
const [ENQUEUED, DUPLICATES, STARTED] = [at('enqueued'), at('duplicates'), at('startedHigh')]
const [RETRIED, DEAD, STALE, EXPIRED] = [at('retried'), at('dead'), at('stale'), at('expired')]
const CANCELLED = at('cancelled')
const [WAIT, RUN, TOTAL] = [timeAt('wait'), timeAt('run'), timeAt('total')]

interface Ended {
  readonly count: number
  /** It was a run with an end of its own, and took its time. */
  readonly ran: boolean
  /** The job is over. */
  readonly final: boolean
}

/** What the edges that end a run are counted as. */
const ENDS: Readonly<Partial<Record<EdgeName, Ended>>> = {
  complete: { count: at('completed'), ran: true, final: true },
  retry: { count: RETRIED, ran: true, final: false },
  fail: { count: DEAD, ran: true, final: true },
  cancelRunning: { count: CANCELLED, ran: true, final: true },
  cancelUnstarted: { count: CANCELLED, ran: false, final: true },
  snooze: { count: at('snoozed'), ran: true, final: false },
  release: { count: at('released'), ran: false, final: false },
}

interface Cell {
  readonly queue: string
  readonly kind: string
  readonly values: Float64Array
}

export class JobMeter {
  readonly #seriesMax: number
  readonly #cells = new Map<string, Map<string, Cell>>()
  readonly #other: Cell = newCell(OTHER, OTHER)
  #count = 0
  /** Jobs of one kind come in rows. */
  #last: Cell = this.#other

  constructor(seriesMax: number) {
    this.#seriesMax = seriesMax
  }

  enqueued(queue: string, kind: string, isDuplicate: boolean): void {
    const { values } = this.#cell(queue, kind)
    values[isDuplicate ? DUPLICATES : ENQUEUED]! += 1
  }

  /** `nowMs` is the wall clock here, the times of the job are those of the store: a difference of the clocks is in the wait. */
  started({ queue, name, runAtMs, enqueuedAtMs }: ClaimedJob, lane: Lane, nowMs: number): void {
    const { values } = this.#cell(queue, name)
    values[STARTED + lane]! += 1
    observe(values, WAIT, nowMs - (runAtMs > enqueuedAtMs ? runAtMs : enqueuedAtMs))
  }

  ended({ queue, name, enqueuedAtMs }: ClaimedJob, settled: Transition, nowMs: number): void {
    const end = ENDS[settled.edge]
    if (end === undefined) return
    const { values } = this.#cell(queue, name)
    values[end.count]! += 1
    if (end.ran) observe(values, RUN, settled.ranMs ?? 0)
    if (end.final) observe(values, TOTAL, nowMs - enqueuedAtMs)
    if (end.count === RETRIED || end.count === DEAD) countFailure(values, settled)
  }

  stale(queue: string, kind: string): void {
    this.#cell(queue, kind).values[STALE]! += 1
  }

  /** A job that waited. */
  cancelled(queue: string, kind: string): void {
    this.#cell(queue, kind).values[CANCELLED]! += 1
  }

  /** A run whose worker was lost, or a job that will never run. */
  rescued(queue: string, kind: string, { edge, error }: Transition): void {
    const { values } = this.#cell(queue, kind)
    const isExpiry = edge === 'expire' || edge === 'expireForGood'
    if (isExpiry) values[EXPIRED]! += 1
    if (edge === 'expire') values[RETRIED]! += 1
    if (edge === 'expireForGood' || edge === 'failOrphan') values[DEAD]! += 1
    if (edge === 'cancelOrphan' || edge === 'cancel') values[CANCELLED]! += 1
    if (isExpiry && error !== undefined) countFailure(values, { error })
  }

  series(): readonly JobSeries[] {
    const cells = [...this.#cells.values()].flatMap((kinds) => [...kinds.values()])
    const isOtherUsed = this.#other.values.some((value) => value > 0)
    return [...cells, ...(isOtherUsed ? [this.#other] : [])].map(seriesOf)
  }

  #cell(queue: string, kind: string): Cell {
    const last = this.#last
    if (last.kind === kind && last.queue === queue) return last
    return (this.#last = this.#cells.get(queue)?.get(kind) ?? this.#newCell(queue, kind))
  }

  #newCell(queue: string, kind: string): Cell {
    if (this.#count >= this.#seriesMax || (queue === OTHER && kind === OTHER)) return this.#other
    this.#count += 1
    let kinds = this.#cells.get(queue)
    if (kinds === undefined) this.#cells.set(queue, (kinds = new Map()))
    const cell = newCell(queue, kind)
    kinds.set(kind, cell)
    return cell
  }
}

function newCell(queue: string, kind: string): Cell {
  return { queue, kind, values: new Float64Array(SIZE) }
}

function countFailure(values: Float64Array, { error }: Pick<Transition, 'error'>): void {
  const known = error === undefined ? -1 : ERROR_CLASSES.indexOf(error.class)
  values[FAILED_AT + (known === -1 ? ERROR_CLASSES.indexOf('unknown') : known)]! += 1
}

/** Short times are the ones that come often, so the bounds are tried from below. */
function observe(values: Float64Array, start: number, ms: number): void {
  const tookMs = ms > 0 ? ms : 0
  let bucket = 0
  while (bucket < BOUNDS_MS.length && tookMs > BOUNDS_MS[bucket]!) bucket += 1
  values[start + bucket]! += 1
  values[start + TIME_SIZE - 1]! += tookMs
}

function seriesOf({ queue, kind, values }: Cell): JobSeries {
  const counts: Partial<Record<JobCount, number>> = {}
  for (const [index, name] of JOB_COUNTS.entries()) if (values[index]! > 0) counts[name] = values[index]!
  const failed: Partial<Record<ErrorClass, number>> = {}
  for (const [index, name] of ERROR_CLASSES.entries()) {
    if (values[FAILED_AT + index]! > 0) failed[name] = values[FAILED_AT + index]!
  }
  const times: Partial<Record<JobTime, Buckets>> = {}
  for (const time of JOB_TIMES) {
    const start = timeAt(time)
    const own = [...values.subarray(start, start + TIME_SIZE - 1)]
    if (own.some((count) => count > 0)) {
      times[time] = { counts: own, sumSeconds: values[start + TIME_SIZE - 1]! / 1_000 }
    }
  }
  return { queue, kind, counts, failed, times }
}
