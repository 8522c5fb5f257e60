// What a configuration file says: the options of `createMillrace`, and how `millrace work` runs them. Kept
// free of the rest of the command line, because every configuration file imports it.
import type { AlertOptions } from '../alerts/options.ts'
import type { AnyJob } from '../core/definition.ts'
import type { HttpOptions } from '../http/http-options.ts'
import type { MillraceOptions } from '../millrace.ts'
import type { AutoscaleOptions } from '../supervisor/autoscale-options.ts'
import type { PoolConfig } from '../supervisor/pool-options.ts'
import type { SuperviseConfig } from '../supervisor/options.ts'
import type { WorkOptions } from '../works.ts'

export type MillraceConfig<Known extends readonly AnyJob[] = readonly AnyJob[]> = Omit<
  MillraceOptions<Known>,
  'postgres' | 'redis' | 'runtime'
> & {
  /** As of `createMillrace`; undefined, such as a variable that is not set, is the same as nothing. */
  readonly postgres?: MillraceOptions<Known>['postgres'] | undefined
  readonly redis?: MillraceOptions<Known>['redis'] | undefined
  /** What `millrace work` and `millrace dev` do when their flags say nothing else. */
  readonly work?: WorkOptions
  /** The worker processes of `millrace supervise`, by name. Default: one pool of all queues. */
  readonly pools?: Readonly<Record<string, PoolConfig>>
  readonly supervise?: SuperviseConfig
  /** The port of `millrace work` for health, metrics and scalers; without it there is none. */
  readonly http?: HttpOptions
  /** How pools follow their load; false: they do not. Default: by the thresholds of docs/autoscaling.md. */
  readonly autoscale?: AutoscaleOptions | false
  /** Rules, sinks, who is told what; false: nobody looks. Without it the usual rules and the log. */
  readonly alerts?: AlertOptions | false
}

/** For the types: answers what it was given. */
export function defineConfig<const Known extends readonly AnyJob[]>(
  config: MillraceConfig<Known>,
): MillraceConfig<Known> {
  return config
}
