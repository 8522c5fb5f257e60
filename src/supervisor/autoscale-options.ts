// What the autoscaler is told, checked once: numbers for all queues, and for single ones.
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { SCALING } from '../core/limits.ts'
import { checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { SCALING_OPTIONS, mergeScaling, scalingLimits } from '../core/scaling-limits.ts'
import type { ScalingLimits, ScalingOptions } from '../core/scaling-limits.ts'

export interface AutoscaleOptions extends ScalingOptions {
  /** What is different for single queues. */
  readonly queues?: Readonly<Record<string, ScalingOptions>>
  /** Between two looks. Default 5 s. */
  readonly interval?: Duration
  /** Over which rates are smoothed. Default 15 s. */
  readonly smoothing?: Duration
}

export interface AutoscaleSettings {
  readonly intervalMs: number
  readonly smoothingMs: number
  limitsOf(queue: string): ScalingLimits
}

const OWN = ['queues', 'interval', 'smoothing'] as const
/** Rates of a look that comes later than this would count as no rates at all. */
const INTERVAL_MAX_MS = SCALING.staleMs / 2

export function autoscaleSettings(options: AutoscaleOptions = {}): AutoscaleSettings {
  checkKnownOptions(options, [...SCALING_OPTIONS, ...OWN], 'autoscale')
  const { queues = {}, interval, smoothing, ...all } = options
  if (typeof queues !== 'object' || queues === null)
    throw invalidOption('autoscale.queues', queues, 'an object by queue')
  const common = scalingLimits(all)
  const single = new Map(
    Object.entries(queues).map(([queue, own]) => {
      const what = `autoscale.queues.${checkName(queue, 'queue')}`
      checkKnownOptions(own, SCALING_OPTIONS, what)
      const limits = scalingLimits(mergeScaling(all, own), what)
      // Off for all is off for each.
      return [queue, { ...limits, enabled: common.enabled && limits.enabled }] as const
    }),
  )
  return {
    intervalMs: parseDuration(interval ?? SCALING.sampleMs, 'autoscale.interval', {
      minMs: 100,
      maxMs: INTERVAL_MAX_MS,
    }),
    smoothingMs: parseDuration(smoothing ?? SCALING.smoothingMs, 'autoscale.smoothing', { minMs: 1 }),
    limitsOf: (queue) => single.get(queue) ?? common,
  }
}
