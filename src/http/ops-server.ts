// The port for operations: is it alive, is it ready, how is it, its metrics, and what scalers outside ask for. What is
// answered is read at most about once a second, however often it is asked for; /live asks nobody.
import { LIMITS } from '../core/limits.ts'
import { checkName } from '../core/names.ts'
import { sumOfSignals } from '../core/scale-signal.ts'
import type { ScaleSignal } from '../core/scale-signal.ts'
import type { HealthReport } from '../observability/health.ts'
import { createRuntime } from '../runtime/runtime.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { HttpOptions } from './http-options.ts'
import { remembered } from './remembered.ts'
import { errorReply } from './route.ts'
import type { HttpReply, HttpRequest, Route } from './route.ts'
import { createHttpServer } from './server.ts'
import type { HttpService } from './server.ts'

export interface OpsSources {
  /** In the text format of Prometheus; absent: this process has none. */
  readonly metricsText?: () => Promise<string>
  readonly health: () => Promise<HealthReport>
  /** Whether it does its work: not while it starts, nor while it drains. Every probe asks anew: see `remembered`. */
  readonly ready: () => Promise<boolean>
  /** Null: there is no such queue. */
  readonly scale: (queue: string) => Promise<ScaleSignal | null>
}

export interface OpsServerOptions extends HttpOptions {
  readonly sources: OpsSources
  /** Further routes on the same port. */
  readonly routes?: readonly Route[]
  readonly runtime?: Partial<Pick<Runtime, 'clock' | 'logger'>>
}

export function createOpsServer({ sources, routes = [], runtime, ...http }: OpsServerOptions): HttpService {
  const whole = createRuntime(runtime)
  return createHttpServer({ ...http, runtime: whole, routes: [...opsRoutes(sources, whole), ...routes] })
}

const METRICS_TYPE = 'text/plain; version=0.0.4; charset=utf-8'

export function opsRoutes(sources: OpsSources, { clock }: Pick<Runtime, 'clock'>): readonly Route[] {
  const times = { clock, keepMs: LIMITS.httpRememberMs, waitMs: LIMITS.httpHandlerMaxMs }
  const health = remembered(times, () => sources.health())
  const metrics = remembered(times, () => sources.metricsText?.() ?? Promise.resolve(null))
  const scales = new Map<string, () => Promise<ScaleSignal | null>>()

  function scaleOf(queue: string): Promise<ScaleSignal | null> {
    let read = scales.get(queue)
    if (read === undefined) {
      read = remembered(times, () => sources.scale(queue))
      // The one that was asked for first goes.
      if (scales.size >= LIMITS.scaleQueuesMax) scales.delete(scales.keys().next().value ?? '')
      scales.set(queue, read)
    }
    return read()
  }

  const get = (path: string, handle: Route['handle'], isOpen = false): Route => ({
    method: 'GET',
    path,
    handle,
    isOpen,
  })
  return [
    get('/live', () => Promise.resolve({ status: 200, json: { status: 'live' } }), true),
    get('/ready', () => readyReply(() => sources.ready()), true),
    get('/health', async () => healthReply(await health())),
    get('/metrics', async () => metricsReply(await metrics())),
    get('/scale', (request) => scaleReply(request, scaleOf)),
  ]
}

async function readyReply(ready: () => Promise<boolean>): Promise<HttpReply> {
  const isReady = await ready().catch(() => false)
  return isReady ? { status: 200, json: { status: 'ready' } } : { status: 503, json: { status: 'not ready' } }
}

/** Degraded is still an answer: whoever watches looks at `state`. */
function healthReply(report: HealthReport): HttpReply {
  return { status: report.state === 'failed' ? 503 : 200, json: report }
}

function metricsReply(text: string | null): HttpReply {
  if (text === null) return errorReply(404, 'NOT_FOUND', 'this process keeps no metrics')
  return { status: 200, text, type: METRICS_TYPE }
}

async function scaleReply(
  { query }: HttpRequest,
  scaleOf: (queue: string) => Promise<ScaleSignal | null>,
): Promise<HttpReply> {
  const names = [...new Set(query.getAll('queue').flatMap((value) => value.split(',')))].filter((name) => name !== '')
  if (names.length === 0 || names.length > LIMITS.scaleQueuesPerRequestMax) {
    const message = `name one to ${LIMITS.scaleQueuesPerRequestMax} queues: /scale?queue=mail, or ?queue=mail,webhooks`
    return errorReply(400, 'INVALID_OPTION', message)
  }
  for (const name of names) checkName(name, 'queue')
  const signals: ScaleSignal[] = []
  for (const name of names) {
    const signal = await scaleOf(name)
    if (signal === null) return errorReply(404, 'QUEUE_NOT_FOUND', `there is no queue ${name}`)
    signals.push(signal)
  }
  return { status: 200, json: signals.length === 1 ? signals[0] : sumOfSignals(signals) }
}
