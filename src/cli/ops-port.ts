// The HTTP port of a process that works: open from its first moment, so that a probe is answered while the store is still
// being reached, and until its last one, so that it can be seen to drain.
import { MillraceError } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { createOpsServer } from '../http/ops-server.ts'
import type { OpsSources } from '../http/ops-server.ts'
import type { HttpOptions } from '../http/http-options.ts'
import { remembered } from '../http/remembered.ts'
import type { HttpService } from '../http/server.ts'
import type { Millrace } from '../millrace.ts'
import type { Clock } from '../runtime/clock.ts'
import type { Logger } from '../runtime/logger.ts'
import type { CliIo } from './io.ts'

export interface HttpFlags {
  readonly metricsPort?: number
  readonly metricsHost?: string
}

export function flaggedHttp({ metricsPort, metricsHost }: HttpFlags): Partial<HttpOptions> {
  return {
    ...(metricsPort !== undefined && { port: metricsPort }),
    ...(metricsHost !== undefined && { host: metricsHost }),
  }
}

export interface OpsPort {
  start(): Promise<void>
  stop(): Promise<void>
  /** What it answers from, once there is one. */
  attach(mill: Millrace, own?: OwnSources): void
  state(state: 'working' | 'draining'): void
}

/** Of a process that speaks for others too. */
export interface OwnSources {
  readonly metricsText: () => Promise<string>
  /** False: it takes no more work, whatever `state` says. */
  readonly isWorking: () => boolean
}

export interface OpsPortOptions {
  /** Undefined: nobody wants a port, and nothing is opened. */
  readonly http: HttpOptions | undefined
  readonly clock: Clock
  readonly log: Logger
}

/** What is asked for goes before the configuration. The token is never a flag: others can read those. */
export function httpOf(
  configured: HttpOptions | undefined,
  asked: Partial<HttpOptions>,
  env: CliIo['env'],
): HttpOptions | undefined {
  const port = asked.port ?? configured?.port
  if (port === undefined) {
    if (asked.host === undefined) return undefined
    throw new MillraceError('INVALID_OPTION', '--metrics-host needs a port: add --metrics-port, such as 9464')
  }
  const host = asked.host ?? configured?.host
  const token = asked.token ?? configured?.token ?? (env['MILLRACE_HTTP_TOKEN'] || undefined)
  return { ...configured, port, ...(host !== undefined && { host }), ...(token !== undefined && { token }) }
}

export function createOpsPort({ http, clock, log }: OpsPortOptions): OpsPort {
  let mill: Millrace | undefined
  let own: OwnSources = { metricsText: () => started().metrics.text(), isWorking: () => true }
  let state: 'starting' | 'working' | 'draining' = 'starting'

  function started(): Millrace {
    if (mill !== undefined) return mill
    throw new MillraceError('STORE_UNAVAILABLE', 'this process is still starting', { retryable: true })
  }

  const answers = remembered({ clock, keepMs: LIMITS.httpRememberMs, waitMs: LIMITS.httpHandlerMaxMs }, async () =>
    started().health.answers(),
  )
  const sources: OpsSources = {
    metricsText: async () => own.metricsText(),
    health: async () => started().health.report(),
    // A drain is told at once; the store is asked once a second.
    ready: async () => state === 'working' && own.isWorking() && (await answers()),
    scale: async (queue) => started().health.scale(queue),
  }
  const server: HttpService | undefined =
    http === undefined ? undefined : createOpsServer({ ...http, sources, runtime: { clock, logger: log } })
  return {
    async start() {
      await server?.start()
      if (server !== undefined) log.info({ url: server.url }, 'health, metrics and scale signals are served')
    },
    stop: async () => server?.stop(),
    attach(opened, given = own) {
      mill = opened
      own = given
    },
    state: (now) => void (state = now),
  }
}
