// The HTTP port: node:http with a bound on everything a stranger could make large, slow or many. Knows routes, not what they
// are for; the API and the dashboard are meant to be further routes of it.
import { createServer } from 'node:http'
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { MillraceError, isMillraceError } from '../core/errors.ts'
import type { ErrorCode } from '../core/errors.ts'
import { LIMITS } from '../core/limits.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Service } from '../runtime/service.ts'
import { SECURITY_HEADERS, createGuard, isLoopback } from './guard.ts'
import { checkHttpOptions } from './http-options.ts'
import type { HttpOptions } from './http-options.ts'
import { errorReply, findRoute } from './route.ts'
import type { HttpReply, HttpRequest, Route } from './route.ts'

export interface HttpServerOptions extends HttpOptions {
  readonly routes: readonly Route[]
  readonly runtime: Pick<Runtime, 'clock' | 'logger'>
  /** How long the head of a request may take to arrive, for tests. Default 5 s. */
  readonly headersMaxMs?: number
}

export interface HttpService extends Service {
  /** Such as `http://127.0.0.1:9464`; with the real port once it has started. */
  readonly url: string
}

const LOOK_MS = 1_000
const SERVER_OPTIONS = {
  maxHeaderSize: LIMITS.httpHeaderBytesMax,
  requestTimeout: LIMITS.httpRequestMaxMs,
  keepAliveTimeout: LIMITS.httpIdleMaxMs,
} as const

export function createHttpServer(options: HttpServerOptions): HttpService {
  const { routes, runtime, headersMaxMs = LIMITS.httpHeadersMaxMs, ...http } = options
  const { host, port, token } = checkHttpOptions(http)
  const { clock, logger } = runtime
  const guard = createGuard({ host, token })
  const times = { headersTimeout: headersMaxMs, connectionsCheckingInterval: Math.min(LOOK_MS, headersMaxMs) }
  const server = createServer({ ...SERVER_OPTIONS, ...times }, (request, response) => {
    answer(request)
      .then((reply) => send(request, response, reply))
      // Also a reply that cannot be sent, such as one that is no JSON: it must not end the process.
      .catch((error: unknown) => send(request, response, failed(error, request)))
  })
  server.maxConnections = LIMITS.httpConnectionsMax
  server.maxRequestsPerSocket = LIMITS.httpRequestsPerConnectionMax
  // Also for those who do not read what they asked for.
  server.timeout = LIMITS.httpRequestMaxMs
  server.on('clientError', refuse)
  let isStopping = false
  let starting: Promise<void> | undefined
  let stopping: Promise<void> | undefined

  async function answer(request: IncomingMessage): Promise<HttpReply> {
    const asked = parse(request)
    const found = findRoute(routes, asked)
    const refusal = guard(request.headers, !('refusal' in found) && found.isOpen === true)
    if (refusal !== undefined) return refusal
    if ('refusal' in found) return found.refusal
    if (hasBody(request)) return errorReply(413, 'BODY_REFUSED', 'this port takes no request bodies')
    return bounded(clock, LIMITS.httpHandlerMaxMs, asked.path, found.handle(asked))
  }

  function failed(error: unknown, { url }: IncomingMessage): HttpReply {
    const status = isMillraceError(error) ? STATUSES[error.code] : undefined
    if (isMillraceError(error) && status !== undefined) return errorReply(status, error.code, error.message)
    // What a stranger has no use for, and may not be for strangers.
    logger.error({ error, path: pathOf(url ?? '') }, 'a request could not be answered')
    return errorReply(500, 'FAILED', 'this request could not be answered; the log says why')
  }

  function send(request: IncomingMessage, response: ServerResponse, reply: HttpReply): void {
    if (response.headersSent || response.destroyed) return
    const [text, type] =
      'json' in reply
        ? [`${JSON.stringify(reply.json)}\n`, 'application/json; charset=utf-8']
        : [reply.text, reply.type]
    const body = Buffer.from(text)
    // A body that nobody reads would be taken for the next request.
    const isLast = isStopping || hasBody(request)
    response.writeHead(reply.status, {
      ...SECURITY_HEADERS,
      'content-type': type,
      'content-length': body.length,
      ...('headers' in reply && reply.headers),
      ...(isLast && { connection: 'close' }),
    })
    response.end(request.method === 'HEAD' ? undefined : body)
  }

  async function listen(): Promise<void> {
    await new Promise<void>((resolve, reject) => {
      server.once('error', (error) => reject(listenError(error, host, port)))
      server.listen({ host, port }, resolve)
    })
    server.on('error', (error) => logger.error({ error }, 'the HTTP port failed'))
    if (isLoopback(host)) return
    const whom = token === undefined ? 'everybody who can reach it, without a token' : 'others; it asks for its token'
    logger.warn({ host, port: portOf() }, `the HTTP port is open to ${whom}`)
  }

  async function close(): Promise<void> {
    isStopping = true
    if (starting === undefined) return
    // One that could not listen has nothing to close.
    await starting.catch(() => undefined)
    if (!server.listening) return
    const closed = new Promise<void>((resolve) => void server.close(() => resolve()))
    server.closeIdleConnections()
    const force = clock.timer(LIMITS.httpStopMaxMs, () => server.closeAllConnections())
    await closed
    force.cancel()
  }

  const portOf = (): number => (server.address() as AddressInfo | null)?.port ?? port // of a TCP server

  return {
    get url() {
      return `http://${host.includes(':') ? `[${host}]` : host}:${portOf()}`
    },
    start: () => (starting ??= listen()),
    stop: () => (stopping ??= close()),
  }
}

/** What a caller did, what the store did; the rest is ours. */
const STATUSES: Partial<Record<ErrorCode, number>> = {
  INVALID_NAME: 400,
  INVALID_OPTION: 400,
  QUEUE_NOT_FOUND: 404,
  STORE_UNAVAILABLE: 503,
  STORE_TIMEOUT: 503,
  STOPPED: 503,
}

function parse({ method = '', url = '' }: IncomingMessage): HttpRequest {
  const path = pathOf(url)
  return { method, path, query: new URLSearchParams(url.slice(path.length + 1)) }
}

function pathOf(url: string): string {
  return url.split('?', 1)[0] ?? ''
}

function hasBody({ headers }: IncomingMessage): boolean {
  return headers['transfer-encoding'] !== undefined || (headers['content-length'] ?? '0') !== '0'
}

/** What is no HTTP, or too long, or too slow. Told why, and cut off: whoever only lets go of one half keeps a place. */
function refuse(error: Error & { readonly code?: string }, socket: Socket): void {
  if (!socket.writable) return void socket.destroy()
  const [status, reason] =
    error.code === 'HPE_HEADER_OVERFLOW'
      ? ['431 Request Header Fields Too Large', 'the address and the headers are too long']
      : error.code === 'ERR_HTTP_REQUEST_TIMEOUT'
        ? ['408 Request Timeout', 'the request did not come in time']
        : ['400 Bad Request', 'this is not an HTTP request']
  const body = `${JSON.stringify({ error: { code: 'BAD_REQUEST', message: reason } })}\n`
  const head = [
    `HTTP/1.1 ${status}`,
    'connection: close',
    'content-type: application/json',
    `content-length: ${body.length}`,
  ]
  socket.write(`${head.join('\r\n')}\r\n\r\n${body}`)
  socket.destroySoon()
}

function listenError(error: Error & { readonly code?: string }, host: string, port: number): MillraceError {
  const reason =
    error.code === 'EADDRINUSE'
      ? 'another process has it: choose another port, or 0 for any free one'
      : error.code === 'EACCES'
        ? 'this user may not: choose a port above 1023'
        : error.message
  return new MillraceError('PORT_UNAVAILABLE', `port ${port} of ${host} cannot be opened: ${reason}`, { cause: error })
}
