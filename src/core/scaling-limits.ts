// What the autoscaler may do with a queue, as people write it and as the rules read it. Every number has a default
// and every default can be changed for one queue.
import { parseDuration } from './duration.ts'
import type { Duration } from './duration.ts'
import { LIMITS, SCALING } from './limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from './names.ts'
import type { DecideScale } from './scaling.ts'

export interface ScalingOptions {
  /** False: the number of workers stays as it is, until somebody forces another. Default true. */
  readonly enabled?: boolean
  /** Workers of a queue, on all hosts together. Default 1 and 15. */
  readonly min?: number
  readonly max?: number
  /** Hold this longest wait by Little's law instead of comparing with thresholds. */
  readonly maxWait?: Duration
  /** Any of them is a reason for more workers. */
  readonly up?: UpOptions
  /** Any of them is a reason for fewer, if there is none for more. */
  readonly down?: DownOptions
  /** Share of busy slots that a step down may leave at most, and that holding a wait aims at. Default 0.85. */
  readonly busyMax?: number
  /** Between two changes. Default 5 minutes; with `maxWait`, 15 seconds before an up. `up.cooldown` and `down.cooldown` go before it. */
  readonly cooldown?: Duration
  /** Jobs per second from which arrival and processing are compared. Default 0.5. */
  readonly arrivalMin?: number
  /** Instead of the rules, or around them. */
  readonly decide?: DecideScale
}

export interface UpOptions {
  /** More ready jobs than this. Default 100. */
  readonly size?: number
  /** Jobs arrive this many times as fast as they are processed. Default 1.5. */
  readonly arrivalRatio?: number
  /** More than this share of the slots is busy. Default 0.85. */
  readonly utilisation?: number
  /** The oldest ready job waits longer. Default 30 s. */
  readonly wait?: Duration
  /** Workers more. Default 2. */
  readonly step?: number
  readonly cooldown?: Duration
}

export interface DownOptions {
  /** Fewer ready jobs than this. Default 10. */
  readonly size?: number
  /** Less than this share of the slots is busy, and the oldest job waits less than `wait`. Default 0.3 and 10 s. */
  readonly utilisation?: number
  readonly wait?: Duration
  /** Jobs are processed this many times as fast as they arrive, and fewer than `calmSize` are ready. Default 2 and 5. */
  readonly processingRatio?: number
  readonly calmSize?: number
  /** Workers fewer. Default 1. */
  readonly step?: number
  readonly cooldown?: Duration
}

/** Checked, with every default filled in. */
export interface ScalingLimits {
  readonly enabled: boolean
  readonly min: number
  readonly max: number
  readonly maxWaitMs: number | null
  readonly up: {
    readonly size: number
    readonly arrivalRatio: number
    readonly utilisation: number
    readonly waitMs: number
    readonly step: number
    readonly cooldownMs: number
  }
  readonly down: {
    readonly size: number
    readonly utilisation: number
    readonly waitMs: number
    readonly processingRatio: number
    readonly calmSize: number
    readonly step: number
    readonly cooldownMs: number
  }
  readonly busyMax: number
  readonly arrivalMinPerS: number
  readonly decide: DecideScale | null
}

export const SCALING_OPTIONS = [
  'enabled',
  'min',
  'max',
  'maxWait',
  'up',
  'down',
  'busyMax',
  'cooldown',
  'arrivalMin',
  'decide',
] as const satisfies readonly (keyof ScalingOptions)[]
const UP_OPTIONS = ['size', 'arrivalRatio', 'utilisation', 'wait', 'step', 'cooldown'] as const
const DOWN_OPTIONS = ['size', 'utilisation', 'wait', 'processingRatio', 'calmSize', 'step', 'cooldown'] as const

const COUNT_MAX = 1_000_000_000
const RATIO_MAX = 1_000_000

/** `what` names the options in a message: `autoscale` or `autoscale.queues.mail`. */
export function scalingLimits(options: ScalingOptions = {}, what = 'autoscale'): ScalingLimits {
  checkKnownOptions(options, SCALING_OPTIONS, what)
  const { enabled = true, decide = null, up = {}, down = {} } = options
  checkKnownOptions(up, UP_OPTIONS, `${what}.up`)
  checkKnownOptions(down, DOWN_OPTIONS, `${what}.down`)
  if (typeof enabled !== 'boolean') throw invalidOption(`${what}.enabled`, enabled, 'true or false')
  if (decide !== null && typeof decide !== 'function') throw invalidOption(`${what}.decide`, decide, 'a function')

  const whole = (value: number, name: string, min: number, max: number = COUNT_MAX): number =>
    checkInteger(value, `${what}.${name}`, min, max)
  const ratio = (value: number, name: string, max: number = RATIO_MAX): number => {
    if (typeof value === 'number' && value >= 0 && value <= max) return value
    throw invalidOption(`${what}.${name}`, value, `a number from 0 to ${max}`)
  }
  const time = (value: Duration, name: string, minMs = 0): number =>
    parseDuration(value, `${what}.${name}`, { minMs, maxMs: LIMITS.delayMaxMs })

  const min = whole(options.min ?? Math.min(SCALING.min, options.max ?? SCALING.min), 'min', 1, SCALING.workersMax)
  const max = whole(options.max ?? Math.max(SCALING.max, min), 'max', min, SCALING.workersMax)
  const maxWaitMs = options.maxWait === undefined ? null : time(options.maxWait, 'maxWait', 1)
  const both = options.cooldown === undefined ? undefined : time(options.cooldown, 'cooldown')
  const upCooldown = both ?? (maxWaitMs === null ? SCALING.cooldownMs : SCALING.sloUpCooldownMs)
  const busyMax = ratio(options.busyMax ?? SCALING.busyMax, 'busyMax', 1)
  if (busyMax === 0) throw invalidOption(`${what}.busyMax`, busyMax, 'more than 0')
  return {
    enabled,
    decide,
    min,
    max,
    maxWaitMs,
    busyMax,
    arrivalMinPerS: ratio(options.arrivalMin ?? SCALING.arrivalMinPerS, 'arrivalMin'),
    up: {
      size: whole(up.size ?? SCALING.upSize, 'up.size', 0),
      arrivalRatio: ratio(up.arrivalRatio ?? SCALING.upArrivalRatio, 'up.arrivalRatio'),
      utilisation: ratio(up.utilisation ?? SCALING.upUtilisation, 'up.utilisation', 1),
      waitMs: time(up.wait ?? SCALING.upWaitMs, 'up.wait'),
      step: whole(up.step ?? SCALING.upStep, 'up.step', 1, SCALING.workersMax),
      cooldownMs: time(up.cooldown ?? upCooldown, 'up.cooldown'),
    },
    down: {
      size: whole(down.size ?? SCALING.downSize, 'down.size', 0),
      utilisation: ratio(down.utilisation ?? SCALING.downUtilisation, 'down.utilisation', 1),
      waitMs: time(down.wait ?? SCALING.downWaitMs, 'down.wait'),
      processingRatio: ratio(down.processingRatio ?? SCALING.downProcessingRatio, 'down.processingRatio'),
      calmSize: whole(down.calmSize ?? SCALING.downCalmSize, 'down.calmSize', 0),
      step: whole(down.step ?? SCALING.downStep, 'down.step', 1, SCALING.workersMax),
      cooldownMs: time(down.cooldown ?? both ?? SCALING.cooldownMs, 'down.cooldown'),
    },
  }
}

/** Those of one queue over those of all. */
export function mergeScaling(all: ScalingOptions, own: ScalingOptions = {}): ScalingOptions {
  const up = { ...all.up, ...own.up }
  const down = { ...all.down, ...own.down }
  return { ...all, ...own, up, down }
}
