// How much a queue asks for, as one number that an outside scaler can divide by what a worker takes: KEDA, an HPA, a
// script. The same rule as the view millrace.scale_hint (src/backends/postgres/sql/81_scale.sql).
import { DEFAULTS, LIMITS } from './limits.ts'

export interface ScaleFacts {
  readonly queue: string
  readonly paused: boolean
  /** Ready, whether or not Redis has their token. */
  readonly ready: number
  readonly running: number
  readonly oldestReadyMs: number | null
  /** The concurrency of each live worker that serves it. */
  readonly slots: readonly number[]
}

export interface ScaleSignal {
  readonly queue: string
  readonly paused: boolean
  /** Counted up to 100 000: more ask for no more workers. */
  readonly ready: number
  readonly running: number
  readonly oldestReadySeconds: number
  /** Live workers that serve it, and the jobs that they run at once. */
  readonly workers: number
  readonly slots: number
  /** Jobs that want a slot now: divide it by the concurrency of one worker. Running ones count, or a busy worker would be ended. */
  readonly value: number
  /** `value` in workers like those that are there; in workers of the default concurrency where there is none. */
  readonly wantedWorkers: number
}

export function scaleSignal({ queue, paused, running, oldestReadyMs, ...facts }: ScaleFacts): ScaleSignal {
  const ready = Math.min(facts.ready, LIMITS.scaleReadyMax)
  const slots = facts.slots.reduce((sum, one) => sum + one, 0)
  // Nothing of a paused queue starts, however many workers there are.
  const value = paused ? running : ready + running
  const perWorker = slots === 0 ? DEFAULTS.concurrency : slots / facts.slots.length
  return {
    queue,
    paused,
    ready,
    running,
    oldestReadySeconds: Math.max(0, Math.floor((oldestReadyMs ?? 0) / 1000)),
    workers: facts.slots.length,
    slots,
    value,
    wantedWorkers: Math.ceil(value / perWorker),
  }
}

/** Of several queues that the same workers serve. */
export function sumOfSignals(signals: readonly ScaleSignal[]): ScaleSignal {
  const sum = (of: (signal: ScaleSignal) => number): number => signals.reduce((all, one) => all + of(one), 0)
  const most = (of: (signal: ScaleSignal) => number): number => Math.max(0, ...signals.map(of))
  // Workers that serve two of them must not count twice; those that serve all of them are in each number.
  const [workers, slots] = [most((one) => one.workers), most((one) => one.slots)]
  const value = sum((one) => one.value)
  return {
    queue: signals.map(({ queue }) => queue).join(','),
    paused: signals.every(({ paused }) => paused),
    ready: sum((one) => one.ready),
    running: sum((one) => one.running),
    oldestReadySeconds: most((one) => one.oldestReadySeconds),
    workers,
    slots,
    value,
    wantedWorkers: Math.ceil(value / (slots === 0 ? DEFAULTS.concurrency : slots / workers)),
  }
}
