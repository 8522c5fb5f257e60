// Durations as people write them (`'5m'`, `250`) and as the code keeps them (whole milliseconds).

import { MillraceError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { shown } from './names.ts'

/** A whole number of milliseconds, or a number with a unit: `'250ms'`, `'1.5h'`, `'7d'`. */
export type Duration = number | `${number}${'ms' | 's' | 'm' | 'h' | 'd' | 'w'}`

export interface DurationBounds {
  readonly minMs?: number
  readonly maxMs?: number
}

const UNIT_MS: ReadonlyMap<string, number> = new Map([
  ['ms', 1],
  ['s', 1_000],
  ['m', 60_000],
  ['h', 3_600_000],
  ['d', 86_400_000],
  ['w', 604_800_000],
])

const TEXT = /^(\d{1,16}(?:\.\d{1,16})?)(ms|s|m|h|d|w)$/
const TEXT_CHARS_MAX = 40

/** `what` names the option in the message. Without bounds: 0 to the longest delay (5 years). */
export function parseDuration(value: Duration, what: string, bounds: DurationBounds = {}): number {
  const minMs = bounds.minMs ?? 0
  const maxMs = bounds.maxMs ?? LIMITS.delayMaxMs
  const ms = typeof value === 'string' ? parseText(value) : wholeNumber(value)
  if (ms !== undefined && ms >= minMs && ms <= maxMs) return ms
  throw new MillraceError(
    'INVALID_DURATION',
    `${what} is ${shown(value)}, but must be whole milliseconds or text like '250ms', '30s', '5m', '2h', '7d', ` +
      `from ${formatDuration(minMs)} to ${formatDuration(maxMs)}`,
    { details: { what, minMs, maxMs } },
  )
}

/** Short and for people: `250ms`, `1.5s`, `1h 30m`, `2d 4h`; what is smaller than the second unit is dropped. */
export function formatDuration(ms: number): string {
  if (ms < 0) return `-${formatDuration(-ms)}`
  if (!(ms >= 1_000)) return `${Math.round(ms * 1_000) / 1_000}ms`
  if (ms < 60_000) return `${Math.floor(ms) / 1_000}s`
  const [unit, unitMs, lesser, lesserMs] =
    ms >= 86_400_000
      ? (['d', 86_400_000, 'h', 3_600_000] as const)
      : ms >= 3_600_000
        ? (['h', 3_600_000, 'm', 60_000] as const)
        : (['m', 60_000, 's', 1_000] as const)
  const rest = Math.floor((ms % unitMs) / lesserMs)
  return `${Math.floor(ms / unitMs)}${unit}${rest > 0 ? ` ${rest}${lesser}` : ''}`
}

function wholeNumber(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isSafeInteger(value) ? value + 0 : undefined
}

function parseText(value: string): number | undefined {
  if (value.length > TEXT_CHARS_MAX) return undefined
  const match = TEXT.exec(value)
  if (match === null) return undefined
  const exact = Number(match[1]) * (UNIT_MS.get(match[2]!) ?? Number.NaN)
  const ms = Math.round(exact)
  // 1.1 * 1000 is 1100.0000000000002: a rounding error of the product is not a fraction of a millisecond.
  const isWhole = Math.abs(exact - ms) <= 1e-6
  return isWhole && Number.isSafeInteger(ms) ? ms : undefined
}
