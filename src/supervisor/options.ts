// What a supervisor may be told.
import type { Duration } from '../core/duration.ts'
import { parseDuration } from '../core/duration.ts'
import { SECRET_CHARS_MIN } from '../core/command.ts'
import { DEFAULTS, LIMITS } from '../core/limits.ts'
import { checkInteger, checkKnownOptions, invalidOption } from '../core/names.ts'

export interface SuperviseConfig {
  /** How long running jobs may go on when everything stops. Default 60 s. */
  readonly drainDeadline?: Duration
  /** At most so many processes in all pools together. Default 20. */
  readonly processesMax?: number
  /** Three of these without a word from a process: it is shown as unhealthy. Default 5 s. */
  readonly healthCheck?: Duration
  /** Commands from the store must be signed with it. Default: the variable MILLRACE_SECRET; without both, none are signed. */
  readonly secret?: string | undefined
}

const OPTIONS = [
  'drainDeadline',
  'processesMax',
  'healthCheck',
  'secret',
] as const satisfies readonly (keyof SuperviseConfig)[]

export interface SuperviseSettings {
  readonly drainMs: number
  readonly processesMax: number
  readonly healthCheckMs: number
  readonly secret: string | undefined
}

const HEALTH_CHECK_MIN_MS = 100

export function checkSupervise(
  config: SuperviseConfig = {},
  env: Readonly<Record<string, string | undefined>> = {},
): SuperviseSettings {
  checkKnownOptions(config, OPTIONS, 'supervise')
  const { drainDeadline = DEFAULTS.supervisorDrainMs, healthCheck = DEFAULTS.healthCheckMs } = config
  return {
    drainMs: parseDuration(drainDeadline, 'supervise.drainDeadline'),
    processesMax: checkInteger(
      config.processesMax ?? DEFAULTS.processes,
      'supervise.processesMax',
      1,
      LIMITS.processesMax,
    ),
    healthCheckMs: parseDuration(healthCheck, 'supervise.healthCheck', { minMs: HEALTH_CHECK_MIN_MS }),
    secret: secretOf(config, env),
  }
}

/** An empty variable is none, as everywhere. */
export function secretOf(
  { secret }: SuperviseConfig = {},
  env: Readonly<Record<string, string | undefined>> = {},
): string | undefined {
  const found = secret ?? (env['MILLRACE_SECRET'] || undefined)
  if (found === undefined) return undefined
  if (typeof found === 'string' && found.length >= SECRET_CHARS_MIN) return found
  // Its value stands in no message.
  throw invalidOption('supervise.secret', typeof found, `a text of at least ${SECRET_CHARS_MIN} characters`)
}
