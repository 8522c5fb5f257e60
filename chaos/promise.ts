// What is promised of Millrace in one cell beside what holds always, as numbers: judged, written down with the result, and said
// beside it.
import { DEFAULTS } from '../src/core/limits.ts'
import type { PerBackend, Scenario } from './scenario.ts'
import type { Backend } from './system.ts'

export interface Promised {
  /** Of `recoverySeconds`. Null: nothing stops, or nobody offers anything. */
  readonly recoveryMaxS: number | null
  /** Of `throughputRatio`. Null: nothing is said of the rate. */
  readonly ratioMin: number | null
  /** Of `steadySeconds`: so much of the offered rate. */
  readonly steady: { readonly share: number; readonly perSecond: number; readonly withinS: number } | null
}

export interface PromisedTo {
  readonly scenario: Scenario
  readonly backend: Backend
  /** Undefined: the default. */
  readonly ttlMs: number | undefined
  readonly ratePerS: number
  /** In the cut of the tests, where a span lasts two seconds. */
  readonly isShort: boolean
}

/** From the end of a ttl to the last start: heartbeat, look of maintenance, claim. */
const RESTART_MAX_S = 5
const FIRST_START_MAX_S = 1
/** Of the rate before, where nothing stops. */
const GOES_ON_MIN = 0.9
/** Of that: half a second in which a busy machine stands still is a quarter of a short span, and no fault of ours. */
const SHORT_SHARE = 2 / 3

export function promisedOf({ scenario, backend, ttlMs, ratePerS, isShort }: PromisedTo): Promised {
  const { promise = {}, interrupts, goesOn } = scenario
  const usualMaxS = interrupts ? (ttlMs ?? DEFAULTS.workerTtlMs) / 1000 + RESTART_MAX_S : FIRST_START_MAX_S
  const isExpected = !goesOn && (ratePerS > 0 || interrupts === true)
  const ratioMin = of(backend, promise.ratioMin) ?? (goesOn && ratePerS > 0 ? GOES_ON_MIN : null)
  return {
    recoveryMaxS: of(backend, promise.recoveryMaxS) ?? (isExpected ? usualMaxS : null),
    ratioMin: ratioMin === null ? null : ratioMin * (isShort ? SHORT_SHARE : 1),
    steady: promise.steady === undefined ? null : { ...promise.steady, perSecond: ratePerS },
  }
}

/** `≤ 15 s, ≥ 95 %` */
export function promisedText(promised: Promised | null): string {
  const { recoveryMaxS = null, ratioMin = null, steady = null } = promised ?? {}
  const parts = [
    ...(recoveryMaxS === null ? [] : [`≤ ${recoveryMaxS} s`]),
    ...(ratioMin === null ? [] : [`≥ ${Math.round(ratioMin * 100)} %`]),
    ...(steady === null
      ? []
      : [`${Math.round(steady.share * 100)} % of ${steady.perSecond}/s within ${steady.withinS} s`]),
  ]
  return parts.join(', ') || '–'
}

function of(backend: Backend, promised: PerBackend | undefined): number | undefined {
  return typeof promised === 'object' ? promised[backend] : promised
}
