// How many workers should a queue have? Metrics, limits and what was done before go in, an action with its reasons
// comes out. Nothing is measured and nothing is started here. `scaling-rules.ts` compares with thresholds,
// `scaling-slo.ts` holds a longest wait; what both must keep to is here: the limits, the cooldown, and that nobody
// scales on metrics that are missing or old.
import { formatDuration } from './duration.ts'
import { SCALING } from './limits.ts'
import type { ScalingLimits } from './scaling-limits.ts'
import { askRules } from './scaling-rules.ts'
import { askSlo } from './scaling-slo.ts'

/** Of one queue at one moment. Rates are smoothed; see `scaling-rates.ts`. */
export interface ScaleMetrics {
  /** On the same clock as `nowMs` of the question. */
  readonly atMs: number
  /** Ready jobs. */
  readonly size: number
  /** How long the oldest of them has been ready. */
  readonly waitMs: number
  /** Jobs of this queue that run. */
  readonly running: number
  /** Slots of the same workers that jobs of other queues keep busy. */
  readonly busyOthers: number
  readonly arrivalPerS: number
  readonly processingPerS: number
  /** How long a job runs, by Little's law; null: none has ended yet. */
  readonly serviceMs: number | null
  /** Busy slots of the workers that serve it, from 0 to 1. */
  readonly utilisation: number
  /** Jobs at once in one worker. */
  readonly concurrency: number
  /** Processes that are there, whatever they do; those that drain count until they are gone. */
  readonly workers: number
  readonly draining: number
  /** Nothing of it starts, so no worker more would help. */
  readonly paused: boolean
}

export interface ScaleStep {
  readonly action: 'up' | 'down'
  readonly atMs: number
}

export interface ScaleContext {
  readonly queue: string
  /** How many workers are wanted now. */
  readonly from: number
  /** Null: there are none. */
  readonly metrics: ScaleMetrics | null
  readonly limits: ScalingLimits
  /** What was changed before, oldest first. */
  readonly history: readonly ScaleStep[]
  readonly nowMs: number
}

export type ScaleAction = 'up' | 'down' | 'hold'

export interface ScaleDecision {
  readonly action: ScaleAction
  readonly from: number
  readonly to: number
  /** Each says one thing with its numbers; `sentenceOf` joins them. */
  readonly reasons: readonly string[]
}

/** What a rule would like, before limits and cooldown. */
export interface ScaleWish {
  readonly to: number
  readonly reasons: readonly string[]
  /** Only what a user's function may ask for: at once, whatever was done before. */
  readonly ignoreCooldown?: boolean
}

/** Answers a number of workers, or that with reasons. `next` asks the rules that it replaces. */
export type DecideScale = (context: ScaleContext, next: () => ScaleDecision) => number | ScaleWish | ScaleDecision

export interface ScaleAnswer extends ScaleDecision {
  /** The user's function threw, or its answer was none. */
  readonly error?: unknown
}

export function decideScale(context: ScaleContext): ScaleAnswer {
  const { limits, metrics, from, nowMs } = context
  if (!limits.enabled) return hold(context, ['autoscaling is switched off'])
  // The one change that needs no metrics: what the limits ask for.
  if (from < limits.min) return { action: 'up', from, to: limits.min, reasons: [`the minimum is ${limits.min}`] }
  if (metrics === null) return hold(context, ['there are no metrics yet'])
  if (!isSound(metrics)) return hold(context, ['the metrics are not numbers'])
  const ageMs = Math.abs(nowMs - metrics.atMs)
  if (ageMs > SCALING.staleMs) return hold(context, [`the metrics are ${formatDuration(ageMs)} old`])
  const builtIn = (): ScaleDecision => settle(context, metrics, wishOf(context, metrics))
  if (limits.decide === null) return builtIn()
  try {
    return settle(context, metrics, checkedWish(limits.decide(context, builtIn), from))
  } catch (error) {
    return { ...hold(context, ['the function that decides failed']), error }
  }
}

/** All reasons as one sentence: `from 1 to 3 because 240 jobs are ready (more than 100) and …`. */
export function sentenceOf({ action, from, to, reasons }: ScaleDecision): string {
  const why = reasons.join(' and ')
  const step = action === 'hold' ? `stays at ${from}` : `${action} from ${from} to ${to}`
  return why === '' ? step : `${step} because ${why}`
}

function wishOf(context: ScaleContext, metrics: ScaleMetrics): ScaleWish {
  const { limits, from } = context
  if (from > limits.max) return { to: limits.max, reasons: [`the maximum is ${limits.max}`] }
  return limits.maxWaitMs === null ? askRules(from, metrics, limits) : askSlo(from, metrics, limits, limits.maxWaitMs)
}

/** Limits first, then the cooldown: a wish that the limits leave nothing of must not be held up by it. */
function settle(context: ScaleContext, metrics: ScaleMetrics, wish: ScaleWish): ScaleDecision {
  const { limits, from } = context
  const { to, cut } = clamp(wish.to, from, metrics, limits)
  if (to === from) return hold(context, cut === null ? wish.reasons : [...wish.reasons, cut])
  const action = to > from ? 'up' : 'down'
  const cooling = wish.ignoreCooldown === true ? null : coolingOf(context, action)
  if (cooling !== null) return hold(context, [`${action} to ${to} is wanted: ${wish.reasons.join(' and ')}`, cooling])
  return { action, from, to, reasons: cut === null ? wish.reasons : [...wish.reasons, cut] }
}

function clamp(
  wanted: number,
  from: number,
  { draining }: ScaleMetrics,
  { min, max }: ScalingLimits,
): { readonly to: number; readonly cut: string | null } {
  if (wanted < min) return { to: min, cut: `the minimum is ${min}` }
  // A process that drains is still a process: it leaves no room for another one.
  const room = Math.max(Math.min(from, max), max - draining)
  if (wanted <= room) return { to: wanted, cut: null }
  return { to: room, cut: room === max ? `the maximum is ${max}` : `the maximum is ${max} and ${draining} still drain` }
}

/** When may this queue change the pool again? */
export function isCooling(limits: ScalingLimits, history: readonly ScaleStep[], action: 'up' | 'down', nowMs: number) {
  return coolingOf({ limits, history, nowMs }, action) !== null
}

/**
 * Why the action must wait, or null. A step that lies in the future was written under another clock: it is believed
 * for one cooldown at most, so a clock that was set back cannot keep a queue where it is for ever.
 */
function coolingOf(
  { limits, history, nowMs }: Pick<ScaleContext, 'limits' | 'history' | 'nowMs'>,
  action: 'up' | 'down',
): string | null {
  const { cooldownMs } = limits[action]
  const last = history.at(-1)
  if (last === undefined) return null
  const sinceMs = nowMs - last.atMs
  if (sinceMs >= cooldownMs || sinceMs <= -cooldownMs) return null
  const ago = formatDuration(Math.round(Math.max(sinceMs, 0)))
  return `the last change was ${ago} ago, which is within the cooldown of ${formatDuration(cooldownMs)}`
}

function checkedWish(answer: unknown, from: number): ScaleWish {
  const wish = (typeof answer === 'number' ? { to: answer } : answer) as Partial<ScaleWish> | null | undefined
  if (wish === null || wish === undefined || typeof wish !== 'object' || !Number.isFinite(wish.to)) {
    throw new TypeError('decide() must answer a number of workers, or { to, reasons }, and not a promise')
  }
  const to = Math.round(wish.to ?? from)
  const { reasons = ['decide() says so'], ignoreCooldown = false } = wish
  if (!Array.isArray(reasons)) throw new TypeError('the reasons of decide() must be an array of texts')
  const texts = (reasons as readonly unknown[]).slice(0, 20).map((reason) => String(reason).slice(0, 200))
  return { to, reasons: texts, ignoreCooldown: ignoreCooldown === true }
}

function isSound(metrics: ScaleMetrics): boolean {
  const numbers = Object.values({ ...metrics, serviceMs: metrics.serviceMs ?? 0, paused: 0 })
  return numbers.every((value) => Number.isFinite(value)) && metrics.concurrency > 0
}

function hold({ from }: ScaleContext, reasons: readonly string[]): ScaleDecision {
  return { action: 'hold', from, to: from, reasons }
}
