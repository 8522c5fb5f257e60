// What a pool may be told, and what it then is. Everything is checked before the first process starts.
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'
import { RESTART_TERMS } from '../core/restart.ts'
import type { RestartTerms } from '../core/restart.ts'

export interface PoolConfig {
  /** Default: the queues of all jobs. */
  readonly queues?: readonly string[]
  /** Jobs at once in each process. Default 10. */
  readonly concurrency?: number
  /** So many, or between these, as the autoscaler or a person says; it starts with the least. Default 1 to 15. */
  readonly processes?: number | { readonly min?: number; readonly max?: number }
  /** Above it a process drains and is replaced. Default 512. */
  readonly memoryMb?: number
  /** No run here takes longer, whatever the timeout of its job is. */
  readonly timeout?: Duration
  /** A job that fails here for the nth time has failed for good, whatever its own `attempts` are. */
  readonly attempts?: number
  /** After about so many runs a process is replaced. Default: never. */
  readonly maxJobs?: number
  /** A process that is so old is replaced, up to a fifth earlier. Default: never. */
  readonly maxAge?: Duration
  /** How long running jobs may go on when a process has to go. Default: that of the supervisor, 60 s. */
  readonly drainDeadline?: Duration
  /** A process that is silent for so long is ended. Default 60 s: a handler may block its loop for a while. */
  readonly unresponsiveAfter?: Duration
  /** A process that does not begin to work within this time is ended. Default 60 s. */
  readonly startTimeout?: Duration
  readonly restart?: RestartOptions
}

/** How a pool starts processes again that end soon after their start. */
export interface RestartOptions {
  /** The wait before the second restart, which then doubles. Default 1 s. */
  readonly delay?: Duration
  /** Default 60 s. */
  readonly maxDelay?: Duration
  /** A process that lived shorter than this has failed to start. Default 10 s. */
  readonly stableAfter?: Duration
  /** So many of them, one after the other, are a crash loop. Default 5. */
  readonly crashLoopAfter?: number
}

const POOL_OPTIONS = [
  'queues',
  'concurrency',
  'processes',
  'memoryMb',
  'timeout',
  'attempts',
  'maxJobs',
  'maxAge',
  'drainDeadline',
  'unresponsiveAfter',
  'startTimeout',
  'restart',
] as const satisfies readonly (keyof PoolConfig)[]
const RESTART_OPTIONS = [
  'delay',
  'maxDelay',
  'stableAfter',
  'crashLoopAfter',
] as const satisfies readonly (keyof RestartOptions)[]

export interface PoolSettings {
  readonly name: string
  /** Null: of all jobs. */
  readonly queues: readonly string[] | null
  readonly concurrency: number
  readonly min: number
  readonly max: number
  readonly memoryBytes: number
  readonly timeoutMs: number | null
  /** Null: those of the jobs. */
  readonly attempts: number | null
  readonly maxJobs: number
  readonly maxAgeMs: number
  readonly drainMs: number
  readonly unresponsiveMs: number
  readonly startTimeoutMs: number
  readonly restart: RestartTerms
}

/** Whoever names no pools has one, of this name, for all queues. */
export const DEFAULT_POOL = 'default'
const MB = 1024 * 1024
const UNRESPONSIVE_MIN_MS = 2_000
/** Sooner than this is no wait: a start costs most of a second of processor. */
const RESTART_MIN_MS = 100
const CRASH_LOOP_AFTER_MAX = 1_000

export interface PoolDefaults {
  readonly drainMs: number
  readonly processesMax: number
  /** Of `work` in the configuration. */
  readonly queues?: readonly string[]
  readonly concurrency?: number
  readonly timeout?: Duration
  readonly attempts?: number
}

export function checkPools(
  pools: Readonly<Record<string, PoolConfig>> | undefined,
  defaults: PoolDefaults,
): readonly PoolSettings[] {
  const named = Object.entries(pools ?? { [DEFAULT_POOL]: {} })
  if (named.length === 0 || named.length > LIMITS.poolsMax) {
    throw invalidOption('pools', named.length, `1 to ${LIMITS.poolsMax} pools`)
  }
  const settings = named.map(([name, config]) => checkPool(name, config, defaults))
  const least = settings.reduce((sum, { min }) => sum + min, 0)
  if (least > defaults.processesMax) {
    throw invalidOption(
      'pools',
      least,
      `at most ${defaults.processesMax} processes in all; raise supervise.processesMax, or make a pool smaller`,
    )
  }
  return settings
}

function checkPool(name: string, config: PoolConfig, defaults: PoolDefaults): PoolSettings {
  checkName(name, 'pool')
  const at = `pools.${name}`
  checkKnownOptions(config, POOL_OPTIONS, at)
  const time = (value: Duration | undefined, what: string, none: number, minMs = 1): number =>
    value === undefined ? none : parseDuration(value, `${at}.${what}`, { minMs })
  const queues = config.queues ?? defaults.queues ?? null
  if (queues !== null && (!Array.isArray(queues) || queues.length === 0)) {
    throw invalidOption(`${at}.queues`, queues, 'an array of at least one queue, or nothing for all of them')
  }
  for (const queue of queues ?? []) checkName(queue, 'queue')
  const memoryMb = checkInteger(config.memoryMb ?? DEFAULTS.poolMemoryMb, `${at}.memoryMb`, 1, LIMITS.memoryMbMax)
  const timeout = config.timeout ?? defaults.timeout
  const attempts = config.attempts ?? defaults.attempts
  return {
    name,
    queues,
    concurrency: checkInteger(
      config.concurrency ?? defaults.concurrency ?? DEFAULTS.concurrency,
      `${at}.concurrency`,
      1,
      LIMITS.concurrencyMax,
    ),
    ...checkProcesses(config.processes, at, defaults.processesMax),
    memoryBytes: memoryMb * MB,
    timeoutMs:
      timeout === undefined ? null : parseDuration(timeout, `${at}.timeout`, { minMs: 1, maxMs: LIMITS.timeoutMaxMs }),
    attempts: attempts === undefined ? null : checkInteger(attempts, `${at}.attempts`, 1, LIMITS.attemptsMax),
    maxJobs:
      config.maxJobs === undefined
        ? Infinity
        : checkInteger(config.maxJobs, `${at}.maxJobs`, 1, Number.MAX_SAFE_INTEGER),
    maxAgeMs: time(config.maxAge, 'maxAge', Infinity, 1_000),
    drainMs: time(config.drainDeadline, 'drainDeadline', defaults.drainMs, 0),
    unresponsiveMs: time(config.unresponsiveAfter, 'unresponsiveAfter', DEFAULTS.unresponsiveMs, UNRESPONSIVE_MIN_MS),
    startTimeoutMs: time(config.startTimeout, 'startTimeout', DEFAULTS.startTimeoutMs, 1_000),
    restart: checkRestart(config.restart, `${at}.restart`),
  }
}

function checkRestart(options: RestartOptions = {}, at: string): RestartTerms {
  checkKnownOptions(options, RESTART_OPTIONS, at)
  const { delay, maxDelay, stableAfter, crashLoopAfter = RESTART_TERMS.crashLoopAfter } = options
  const delayMinMs =
    delay === undefined
      ? RESTART_TERMS.delayMinMs
      : parseDuration(delay, `${at}.delay`, { minMs: RESTART_MIN_MS, maxMs: LIMITS.restartMaxMs })
  return {
    delayMinMs,
    delayMaxMs:
      maxDelay === undefined
        ? Math.max(RESTART_TERMS.delayMaxMs, delayMinMs)
        : parseDuration(maxDelay, `${at}.maxDelay`, { minMs: delayMinMs, maxMs: LIMITS.restartMaxMs }),
    stableAfterMs:
      stableAfter === undefined
        ? RESTART_TERMS.stableAfterMs
        : parseDuration(stableAfter, `${at}.stableAfter`, { minMs: RESTART_MIN_MS, maxMs: LIMITS.restartMaxMs }),
    crashLoopAfter: checkInteger(crashLoopAfter, `${at}.crashLoopAfter`, 2, CRASH_LOOP_AFTER_MAX),
  }
}

function checkProcesses(
  processes: PoolConfig['processes'],
  at: string,
  most: number,
): { readonly min: number; readonly max: number } {
  const what = `${at}.processes`
  if (typeof processes === 'number') {
    const fixed = checkInteger(processes, what, 0, most)
    return { min: fixed, max: fixed }
  }
  const { min: asked, max: upTo } = processes ?? {}
  if (processes !== undefined) checkKnownOptions(processes, ['min', 'max'], what)
  const max = upTo === undefined ? undefined : checkInteger(upTo, `${what}.max`, 1, most)
  const min = checkInteger(asked ?? Math.min(DEFAULTS.poolProcessesMin, max ?? most), `${what}.min`, 0, max ?? most)
  return { min, max: max ?? Math.min(most, Math.max(min, DEFAULTS.poolProcessesMax)) }
}
