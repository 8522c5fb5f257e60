// What a pool may be told, and what it then is. Everything is checked before the first process starts.
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, checkName, invalidOption } from '../core/names.ts'

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
}

const POOL_OPTIONS = [
  'queues',
  'concurrency',
  'processes',
  'memoryMb',
  'timeout',
  'maxJobs',
  'maxAge',
  'drainDeadline',
  'unresponsiveAfter',
  'startTimeout',
] as const satisfies readonly (keyof PoolConfig)[]

export interface PoolSettings {
  readonly name: string
  /** Null: of all jobs. */
  readonly queues: readonly string[] | null
  readonly concurrency: number
  readonly min: number
  readonly max: number
  readonly memoryBytes: number
  readonly timeoutMs: number | null
  readonly maxJobs: number
  readonly maxAgeMs: number
  readonly drainMs: number
  readonly unresponsiveMs: number
  readonly startTimeoutMs: number
  readonly stableAfterMs: number
}

/** Whoever names no pools has one, of this name, for all queues. */
export const DEFAULT_POOL = 'default'
const MB = 1024 * 1024
const UNRESPONSIVE_MIN_MS = 2_000

export interface PoolDefaults {
  readonly drainMs: number
  readonly processesMax: number
  /** Of `work` in the configuration. */
  readonly queues?: readonly string[]
  readonly concurrency?: number
  readonly timeout?: Duration
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
    maxJobs:
      config.maxJobs === undefined
        ? Infinity
        : checkInteger(config.maxJobs, `${at}.maxJobs`, 1, Number.MAX_SAFE_INTEGER),
    maxAgeMs: time(config.maxAge, 'maxAge', Infinity, 1_000),
    drainMs: time(config.drainDeadline, 'drainDeadline', defaults.drainMs, 0),
    unresponsiveMs: time(config.unresponsiveAfter, 'unresponsiveAfter', DEFAULTS.unresponsiveMs, UNRESPONSIVE_MIN_MS),
    startTimeoutMs: time(config.startTimeout, 'startTimeout', DEFAULTS.startTimeoutMs, 1_000),
    stableAfterMs: DEFAULTS.stableAfterMs,
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
