// How long a failed job waits before its next attempt. A policy is a plain value, so it can be kept
// in a queue record; only a custom function lives in code. How many attempts a job has is decided
// when it is enqueued (`attempts` of the policy is that default): this file only tells the delay.

import { type Duration, parseDuration } from './duration.ts'
import { assertNever } from './errors.ts'
import { DEFAULTS, LIMITS } from './limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from './names.ts'

interface Attempts {
  /** How often the job runs at most, the first run included. */
  readonly attempts?: number
}

export interface ExponentialRetry extends Attempts {
  readonly kind: 'exponential'
  readonly baseMs: number
  readonly factor: number
  readonly maxMs: number
  readonly jitter: number
}

export interface LinearRetry extends Attempts {
  readonly kind: 'linear'
  readonly stepMs: number
  readonly maxMs: number
  readonly jitter: number
}

export interface FixedRetry extends Attempts {
  readonly kind: 'fixed'
  readonly delayMs: number
  readonly jitter: number
}

/** The delay in ms after failure number `attempt` (from 1), or null to give up. `random` is in [0, 1). */
export type RetryFunction = (attempt: number, error: unknown, random: () => number) => number | null

export interface CustomRetry extends Attempts {
  readonly kind: 'custom'
  readonly delayOf: RetryFunction
}

/** What a queue record can hold. */
export type RetryPolicyRecord = ExponentialRetry | LinearRetry | FixedRetry
export type RetryPolicy = RetryPolicyRecord | CustomRetry

export interface ExponentialOptions extends Attempts {
  /** Default 1 s, or `max` when that is shorter. */
  readonly base?: Duration
  readonly factor?: number
  /** Default 5 minutes, or `base` when that is longer. */
  readonly max?: Duration
  readonly jitter?: number
}

export interface LinearOptions extends Attempts {
  /** Default 5 s, or `max` when that is shorter. */
  readonly step?: Duration
  /** Default 5 minutes, or `step` when that is longer. */
  readonly max?: Duration
  readonly jitter?: number
}

export interface FixedOptions extends Attempts {
  readonly delay?: Duration
  readonly jitter?: number
}

const FACTOR_MAX = 100

/** base, base*factor, base*factor^2 ... up to `max`, each spread by the jitter. */
export function exponential(options: ExponentialOptions = {}): ExponentialRetry {
  checkKnownOptions(options, ['attempts', 'base', 'factor', 'max', 'jitter'], 'exponential()')
  const [baseMs, maxMs] = rangeOf(options.base, DEFAULTS.retryBaseMs, options.max, 'base')
  return {
    kind: 'exponential',
    ...checkedAttempts(options),
    baseMs,
    factor: checkFraction(options.factor ?? DEFAULTS.retryFactor, 'factor', 1, FACTOR_MAX),
    maxMs,
    jitter: checkFraction(options.jitter ?? DEFAULTS.retryJitter, 'jitter', 0, 1),
  }
}

/** step, 2*step, 3*step ... up to `max`. */
export function linear(options: LinearOptions = {}): LinearRetry {
  checkKnownOptions(options, ['attempts', 'step', 'max', 'jitter'], 'linear()')
  const [stepMs, maxMs] = rangeOf(options.step, DEFAULTS.retryFixedMs, options.max, 'step')
  return {
    kind: 'linear',
    ...checkedAttempts(options),
    stepMs,
    maxMs,
    jitter: checkFraction(options.jitter ?? 0, 'jitter', 0, 1),
  }
}

/** Always the same delay. */
export function fixed(options: FixedOptions = {}): FixedRetry {
  checkKnownOptions(options, ['attempts', 'delay', 'jitter'], 'fixed()')
  return {
    kind: 'fixed',
    ...checkedAttempts(options),
    delayMs: parseDuration(options.delay ?? DEFAULTS.retryFixedMs, 'delay'),
    jitter: checkFraction(options.jitter ?? 0, 'jitter', 0, 1),
  }
}

/** The function runs in the worker that saw the failure; it must be quick and should be pure. */
export function customRetry(delayOf: RetryFunction, options: Attempts = {}): CustomRetry {
  if (typeof delayOf !== 'function')
    throw invalidOption('customRetry()', delayOf, 'a function (attempt, error, random)')
  checkKnownOptions(options, ['attempts'], 'customRetry()')
  return { kind: 'custom', ...checkedAttempts(options), delayOf }
}

export const DEFAULT_RETRY: ExponentialRetry = exponential()

const FIELDS = {
  exponential: ['kind', 'attempts', 'baseMs', 'factor', 'maxMs', 'jitter'],
  linear: ['kind', 'attempts', 'stepMs', 'maxMs', 'jitter'],
  fixed: ['kind', 'attempts', 'delayMs', 'jitter'],
  custom: ['kind', 'attempts', 'delayOf'],
} as const satisfies Readonly<Record<RetryPolicy['kind'], readonly string[]>>

/** A policy from a caller, who may have made it by hand: a missing delay would become a wrong moment in a store. */
export function checkRetryPolicy(policy: unknown): RetryPolicy {
  const kind: unknown = typeof policy === 'object' && policy !== null && 'kind' in policy ? policy.kind : undefined
  if (typeof kind !== 'string' || !Object.hasOwn(FIELDS, kind)) {
    throw invalidOption('retry', policy, 'made by exponential(), linear(), fixed() or customRetry()')
  }
  // Its kind is known; every field is checked below.
  const checked = policy as RetryPolicy
  checkKnownOptions(checked, FIELDS[checked.kind], `retry of kind ${kind}`)
  checkedAttempts(checked)
  switch (checked.kind) {
    case 'exponential':
      checkRange(checked.baseMs, checked.maxMs, 'retry.baseMs', 'retry.maxMs')
      checkFraction(checked.factor, 'retry.factor', 1, FACTOR_MAX)
      checkFraction(checked.jitter, 'retry.jitter', 0, 1)
      return checked
    case 'linear':
      checkRange(checked.stepMs, checked.maxMs, 'retry.stepMs', 'retry.maxMs')
      checkFraction(checked.jitter, 'retry.jitter', 0, 1)
      return checked
    case 'fixed':
      checkInteger(checked.delayMs, 'retry.delayMs', 0, LIMITS.delayMaxMs)
      checkFraction(checked.jitter, 'retry.jitter', 0, 1)
      return checked
    case 'custom':
      if (typeof checked.delayOf !== 'function') throw invalidOption('retry.delayOf', checked.delayOf, 'a function')
      return checked
    default:
      return assertNever(checked)
  }
}

/** `attempt` is 1 after the first failure. Only a custom function gives up here. */
export function retryDelayMs(
  policy: RetryPolicy,
  attempt: number,
  random: () => number,
  error?: unknown,
): number | 'give-up' {
  switch (policy.kind) {
    case 'exponential': {
      const growth = policy.factor ** (attempt - 1)
      // 0 * Infinity is NaN: without a base there is nothing to grow.
      const plainMs = policy.baseMs === 0 ? 0 : Math.min(policy.baseMs * growth, policy.maxMs)
      return jittered(plainMs, policy.jitter, random)
    }
    case 'linear':
      return jittered(Math.min(policy.stepMs * attempt, policy.maxMs), policy.jitter, random)
    case 'fixed':
      return jittered(policy.delayMs, policy.jitter, random)
    case 'custom':
      return customDelayMs(policy, attempt, random, error)
    default:
      return assertNever(policy)
  }
}

/** A broken function must not lose the job nor park it for ever: the default delay stands in. */
function customDelayMs(policy: CustomRetry, attempt: number, random: () => number, error: unknown): number | 'give-up' {
  try {
    const delayMs: unknown = policy.delayOf(attempt, error, random)
    if (delayMs === null) return 'give-up'
    if (typeof delayMs === 'number' && delayMs >= 0) return Math.min(Math.round(delayMs), LIMITS.delayMaxMs)
  } catch {
    // Falls through to the default: the job already failed once, that is the error worth keeping.
  }
  return retryDelayMs(DEFAULT_RETRY, attempt, random)
}

/** Jitter comes after the cap: jobs that all wait the longest time must still not return together. */
function jittered(plainMs: number, jitter: number, random: () => number): number {
  const spread = jitter === 0 ? 0 : plainMs * jitter * random()
  return Math.min(Math.round(plainMs + spread), LIMITS.delayMaxMs)
}

/** The first delay and the longest; the one that is left out gives way to the other. */
function rangeOf(first: Duration | undefined, usualMs: number, max: Duration | undefined, what: string) {
  const askedMs = first === undefined ? undefined : parseDuration(first, what)
  const maxMs = max === undefined ? Math.max(DEFAULTS.retryMaxMs, askedMs ?? 0) : parseDuration(max, 'max')
  const firstMs = askedMs ?? Math.min(usualMs, maxMs)
  checkRange(firstMs, maxMs, what, 'max')
  return [firstMs, maxMs] as const
}

function checkRange(firstMs: number, maxMs: number, what: string, whatMax: string): void {
  checkInteger(maxMs, whatMax, 0, LIMITS.delayMaxMs)
  checkInteger(firstMs, what, 0, LIMITS.delayMaxMs)
  if (firstMs > maxMs) throw invalidOption(what, firstMs, `at most ${whatMax} (${maxMs} ms)`)
}

function checkedAttempts(options: Attempts): Attempts {
  if (options.attempts === undefined) return {}
  return { attempts: checkInteger(options.attempts, 'attempts', 1, LIMITS.attemptsMax) }
}

function checkFraction(value: unknown, what: string, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw invalidOption(what, value, `a number from ${min} to ${max}`)
}
