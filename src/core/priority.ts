// Priority is a whole number, lower is more urgent. Three lanes are cut out of the range; a lane that
// waits while others are served gets its share, so nothing starves.
import { MillraceError } from './errors.ts'
import { DEFAULTS, LIMITS } from './limits.ts'
import { shown } from './names.ts'

export const PRIORITY_WORDS = { critical: 10, high: 50, normal: 100, low: 200 } as const
export type PriorityWord = keyof typeof PRIORITY_WORDS
export type Priority = number | PriorityWord

export function parsePriority(value: Priority, what = 'priority'): number {
  if (typeof value === 'string' && Object.hasOwn(PRIORITY_WORDS, value)) return PRIORITY_WORDS[value]
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0 && value <= LIMITS.priorityMax) return value
  throw new MillraceError(
    'INVALID_PRIORITY',
    `${what} is ${shown(value)}: use a whole number from 0 (most urgent) to ` +
      `${LIMITS.priorityMax}, or one of ${Object.keys(PRIORITY_WORDS).join(', ')}`,
    { details: { option: what } },
  )
}

export const LANES = ['high', 'normal', 'low'] as const
/** 0 high, 1 normal, 2 low. */
export type Lane = 0 | 1 | 2
export type LaneBounds = readonly [highMax: number, normalMax: number]

export const DEFAULT_LANES: LaneBounds = [DEFAULTS.laneHighMax, DEFAULTS.laneNormalMax]

export function laneOf(priority: number, lanes: LaneBounds): Lane {
  if (priority <= lanes[0]) return 0
  return priority <= lanes[1] ? 1 : 2
}

/** How many starts each lane has watched go by while it had work. */
export type PassedOver = [high: number, normal: number, low: number]

/**
 * The lane that gives the next start, or null when all are empty. A lower lane is served after at most
 * `share - 1` starts of others; the low lane comes due one start earlier than the normal one, so that
 * both keep the bound when they come due together. `passed` is brought up to date.
 */
export function pickLane(
  waiting: readonly [boolean, boolean, boolean],
  passed: PassedOver,
  share: number,
): Lane | null {
  const best: Lane | null = waiting[0] ? 0 : waiting[1] ? 1 : waiting[2] ? 2 : null
  if (best === null) return null
  let pick: Lane = best
  if (share > 0) {
    const normalDue = waiting[1] && passed[1] >= share - 1
    const lowDue = best < 2 && waiting[2] && passed[2] >= Math.max(share - 2, 1)
    if (normalDue) pick = 1
    else if (lowDue) pick = 2
  }
  for (const lane of [0, 1, 2] as const) {
    if (lane === pick || !waiting[lane]) passed[lane] = 0
    else passed[lane] += 1
  }
  return pick
}
