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
  readonly base?: Duration
  readonly factor?: number
  readonly max?: Duration
  readonly jitter?: number
}

export interface LinearOptions extends Attempts {
  readonly step?: Duration
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
  return {
    kind: 'exponential',
    ...checkedAttempts(options),
    baseMs: parseDuration(options.base ?? DEFAULTS.retryBaseMs, 'base'),
    factor: checkFraction(options.factor ?? DEFAULTS.retryFactor, 'factor', 1, FACTOR_MAX),
    maxMs: parseDuration(options.max ?? DEFAULTS.retryMaxMs, 'max'),
    jitter: checkFraction(options.jitter ?? DEFAULTS.retryJitter, 'jitter', 0, 1),
  }
}

/** step, 2*step, 3*step ... up to `max`. */
export function linear(options: LinearOptions = {}): LinearRetry {
  checkKnownOptions(options, ['attempts', 'step', 'max', 'jitter'], 'linear()')
  return {
    kind: 'linear',
    ...checkedAttempts(options),
    stepMs: parseDuration(options.step ?? DEFAULTS.retryFixedMs, 'step'),
    maxMs: parseDuration(options.max ?? DEFAULTS.retryMaxMs, 'max'),
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

function checkedAttempts(options: Attempts): Attempts {
  if (options.attempts === undefined) return {}
  return { attempts: checkInteger(options.attempts, 'attempts', 1, LIMITS.attemptsMax) }
}

function checkFraction(value: unknown, what: string, min: number, max: number): number {
  if (typeof value === 'number' && value >= min && value <= max) return value
  throw invalidOption(what, value, `a number from ${min} to ${max}`)
}
