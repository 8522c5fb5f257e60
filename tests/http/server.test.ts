// The HTTP port on real sockets: what it answers, and what it refuses to strangers.
import { createServer, request as httpRequest } from 'node:http'
import type { IncomingHttpHeaders } from 'node:http'
import { connect } from 'node:net'
import type { AddressInfo, Socket } from 'node:net'
import { describe, expect, onTestFinished, test } from 'vitest'
import type { OpsServerOptions, OpsSources } from '../../src/http/ops-server.ts'
import { createOpsServer, opsRoutes } from '../../src/http/ops-server.ts'
import { createHttpServer } from '../../src/http/server.ts'
import { decideHealth } from '../../src/observability/health.ts'
import type { LogFields, Logger } from '../../src/runtime/logger.ts'
import { silentLogger } from '../../src/runtime/logger.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { LIMITS } from '../../src/core/limits.ts'
import { scaleSignal } from '../../src/core/scale-signal.ts'
import { MillraceError } from '../../src/index.ts'

const TOKEN = 'a-token-of-some-length'
const report = decideHealth({ queues: [], counts: [], workers: [], nowMs: 0 })
const signal = (queue: string) =>
  scaleSignal({ queue, paused: false, ready: 4, running: 1, oldestReadyMs: 1_000, slots: [] })

const SOURCES: OpsSources = {
  health: () => Promise.resolve(report),
  ready: () => Promise.resolve(true),
  scale: (queue) => Promise.resolve(queue === 'nowhere' ? null : signal(queue)),
  metricsText: () => Promise.resolve('millrace_jobs 1\n'),
}

async function serve(options: Partial<OpsServerOptions> = {}) {
  const server = createOpsServer({ port: 0, sources: SOURCES, ...options })
  onTestFinished(() => server.stop())
  await server.start()
  return server
}

interface Answer {
  readonly status: number
  readonly headers: IncomingHttpHeaders
  readonly text: string
  readonly json: Readonly<Record<string, unknown>>
}

function ask(
  url: string,
  path: string,
  options: { method?: string; headers?: Record<string, string>; body?: string } = {},
) {
  const { method = 'GET', headers = {}, body } = options
  return new Promise<Answer>((resolve, reject) => {
    const request = httpRequest(`${url}${path}`, { method, headers, agent: false }, (response) => {
      const chunks: Buffer[] = []
      response.on('data', (chunk: Buffer) => chunks.push(chunk))
      response.on('end', () => {
        const text = Buffer.concat(chunks).toString()
        const { statusCode = 0 } = response
        resolve({
          status: statusCode,
          headers: response.headers,
          text,
          get json() {
            return JSON.parse(text) as Answer['json']
          },
        })
      })
    })
    request.on('error', reject)
    request.end(body)
  })
}

/** Bytes as they are; answers all that came until the other side closed. */
function raw(url: string, bytes: string): Promise<string> {
  return new Promise((resolve) => {
    const socket = connect(Number(new URL(url).port), '127.0.0.1', () => socket.write(bytes))
    let heard = ''
    socket.on('data', (chunk) => (heard += chunk.toString()))
    socket.on('error', () => undefined)
    socket.on('close', () => resolve(heard))
  })
}

describe('answers', () => {
  test('O3 live, ready, health, metrics and scale', async () => {
    const { url } = await serve()
    expect(url).toMatch(/^http:\/\/127\.0\.0\.1:\d+$/)
    expect((await ask(url, '/live')).json).toEqual({ status: 'live' })
    expect((await ask(url, '/ready')).json).toEqual({ status: 'ready' })
    const health = await ask(url, '/health')
    expect([health.status, health.json['state']]).toEqual([200, 'ok'])
    const metrics = await ask(url, '/metrics')
    expect(metrics.text).toBe('millrace_jobs 1\n')
    expect(metrics.headers['content-type']).toBe('text/plain; version=0.0.4; charset=utf-8')
    expect((await ask(url, '/scale?queue=mail')).json).toEqual(JSON.parse(JSON.stringify(signal('mail'))))
    expect((await ask(url, '/scale?queue=mail,push&queue=mail')).json).toMatchObject({ queue: 'mail,push', value: 10 })
  })

  test('O3 HEAD is GET without its body, and every answer has the headers that browsers need', async () => {
    const { url } = await serve()
    const head = await ask(url, '/health', { method: 'HEAD' })
    expect([head.status, head.text]).toEqual([200, ''])
    expect(Number(head.headers['content-length'])).toBeGreaterThan(10)
    expect(head.headers).toMatchObject({
      'cache-control': 'no-store',
      'x-content-type-options': 'nosniff',
      'content-security-policy': "default-src 'none'; frame-ancestors 'none'",
    })
  })

  test('O3 not ready, a store that is away and a source that throws are 503, and live is 200 all the same', async () => {
    const gone = new MillraceError('STORE_UNAVAILABLE', 'the store is away')
    const sources: OpsSources = {
      ...SOURCES,
      ready: () => Promise.resolve(false),
      health: () => Promise.resolve({ ...report, state: 'failed' }),
      scale: () => Promise.reject(gone),
      metricsText: () => Promise.reject(new MillraceError('STORE_REFUSED', 'not for strangers')),
    }
    const { url } = await serve({ sources, runtime: { logger: silentLogger } })
    const refused = await ask(url, '/metrics')
    expect([refused.status, refused.text.includes('strangers')]).toEqual([500, false])
    expect((await ask(url, '/ready')).status).toBe(503)
    expect((await ask(url, '/health')).status).toBe(503)
    const scale = await ask(url, '/scale?queue=mail')
    expect([scale.status, scale.json]).toEqual([
      503,
      { error: { code: 'STORE_UNAVAILABLE', message: 'the store is away' } },
    ])
    expect((await ask(url, '/live')).status).toBe(200)
    const throwing = await serve({ sources: { ...sources, ready: () => Promise.reject(gone) } })
    expect((await ask(throwing.url, '/ready')).status).toBe(503)
  })

  test('O3 degraded is still 200: whoever watches looks at the state', async () => {
    const { url } = await serve({
      sources: { ...SOURCES, health: () => Promise.resolve({ ...report, state: 'degraded' }) },
    })
    const health = await ask(url, '/health')
    expect([health.status, health.json['state']]).toEqual([200, 'degraded'])
  })

  test('O3 a hundred probes are one look at the store', async () => {
    let looks = 0
    const health = (): Promise<typeof report> => {
      looks += 1
      return Promise.resolve(report)
    }
    const { url } = await serve({ sources: { ...SOURCES, health } })
    await Promise.all(Array.from({ length: 50 }, () => ask(url, '/health')))
    await Promise.all(Array.from({ length: 50 }, () => ask(url, '/health')))
    // At most two: a slow machine may take longer than the second for which an answer is kept.
    expect(looks).toBeLessThanOrEqual(2)
  })

  test('O3 what is unknown is told in words', async () => {
    const { url } = await serve({ sources: { ...SOURCES, health: () => Promise.reject(new Error('secret detail')) } })
    expect((await ask(url, '/nothing')).json).toMatchObject({
      error: { code: 'NOT_FOUND', message: /\/live, \/ready/ },
    })
    expect((await ask(url, '/scale')).json).toMatchObject({ error: { code: 'INVALID_OPTION' } })
    expect((await ask(url, '/scale?queue=nowhere')).status).toBe(404)
    expect((await ask(url, '/scale?queue=%00')).json).toMatchObject({ error: { code: 'INVALID_NAME' } })
    const broken = await ask(url, '/health')
    expect(broken.status).toBe(500)
    expect(broken.text).not.toContain('secret detail')
    const { metricsText: _, ...others } = SOURCES
    const without = await serve({ sources: others })
    expect((await ask(without.url, '/metrics')).status).toBe(404)
  })
})

describe('bounds', () => {
  test('O3 other methods, bodies and long headers are refused', async () => {
    const { url } = await serve()
    const post = await ask(url, '/health', { method: 'POST', body: 'x' })
    expect([post.status, post.headers['allow'], post.headers['connection']]).toEqual([405, 'GET, HEAD', 'close'])
    expect((await ask(url, '/health', { headers: { 'content-length': '5' }, body: 'hello' })).status).toBe(413)
    expect((await ask(url, '/health', { headers: { 'x-long': 'x'.repeat(9_000) } })).status).toBe(431)
    expect((await ask(url, `/health?${'x'.repeat(9_000)}`)).status).toBe(431)
    expect(await raw(url, 'nonsense\r\n\r\n')).toMatch(/^HTTP\/1\.1 400 Bad Request/)
    expect((await ask(url, '/live')).status).toBe(200)
  })

  /** Its patience is short here; that it is 5 s otherwise is said by LIMITS. */
  async function serveImpatiently() {
    const runtime = createRuntime()
    const server = createHttpServer({ port: 0, routes: opsRoutes(SOURCES, runtime), runtime, headersMaxMs: 200 })
    onTestFinished(() => server.stop())
    await server.start()
    return server
  }

  test('O3 one that never finishes its request is sent away', async () => {
    const { url } = await serveImpatiently()
    expect(await raw(url, 'GET /live HTTP/1.1\r\nHost: localhost\r\n')).toMatch(/^HTTP\/1\.1 408 /)
    expect(LIMITS.httpHeadersMaxMs).toBe(5_000)
  })

  test('O3 one that was sent away and goes on sending does not keep its place', async () => {
    const { url } = await serveImpatiently()
    const socket = connect({ port: Number(new URL(url).port), host: '127.0.0.1', allowHalfOpen: true })
    onTestFinished(() => void socket.destroy())
    // Never ends its half, and never its header.
    const drip = setInterval(() => socket.write('x'), 20)
    onTestFinished(() => clearInterval(drip))
    socket.write('GET /live HTTP/1.1\r\nHost: localhost\r\nX-Slow: ')
    let heard = ''
    socket.on('data', (chunk) => (heard += chunk.toString()))
    const error = await new Promise<NodeJS.ErrnoException>((resolve) => void socket.on('error', resolve))
    expect(error.code).toMatch(/^(?:EPIPE|ECONNRESET)$/)
    expect(heard).toMatch(/^HTTP\/1\.1 408 /)
  })

  test('O3 more connections than there are places are refused, and a place that is free again is given', async () => {
    const { url } = await serve()
    const port = Number(new URL(url).port)
    const open = () =>
      new Promise<Socket>((resolve) => {
        const socket = connect(port, '127.0.0.1', () => resolve(socket))
        socket.on('error', () => undefined)
      })
    const held = await Promise.all(Array.from({ length: LIMITS.httpConnectionsMax }, open))
    expect(await raw(url, 'GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n')).toBe('')
    for (const socket of held) socket.destroy()
    await expect.poll(() => ask(url, '/live').catch(() => null), { timeout: 5_000 }).toMatchObject({ status: 200 })
  })

  test.each([
    ['GET /live%zz?%=%&&queue HTTP/1.1', 404],
    ['GET //live HTTP/1.1', 404],
    ['GET http://evil.example/live HTTP/1.1', 404],
    ['GET /../live HTTP/1.1', 404],
    ['OPTIONS * HTTP/1.1', 404],
    ['DELETE /live HTTP/1.1', 405],
    ['BREW /live HTTP/1.1', 400],
    ['GET /live HTTP/9.9', 400],
  ])('O3 %s is refused in words', async (line, status) => {
    const { url } = await serve()
    const heard = await raw(url, `${line}\r\nHost: localhost\r\nConnection: close\r\n\r\n`)
    expect(heard).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `))
    expect(JSON.parse(heard.split('\r\n\r\n')[1] ?? '')).toMatchObject({
      error: { message: expect.any(String) as string },
    })
  })

  test('O3 a reply that cannot be sent is an error of the request, not of the process', async () => {
    const said: string[] = []
    const logger: Logger = { ...silentLogger, error: (_, message) => void said.push(message) }
    const routes = [
      { method: 'GET', path: '/circle', handle: () => Promise.resolve({ status: 200, json: { n: 1n } }) },
      { method: 'GET', path: '/status', handle: () => Promise.resolve({ status: 9, json: {} }) },
    ] as const
    const { url } = await serve({ routes, runtime: { logger } })
    for (const path of ['/circle', '/status']) expect((await ask(url, path)).status, path).toBe(500)
    expect(said).toHaveLength(2)
    expect((await ask(url, '/live')).status).toBe(200)
  })

  test('O3 a web page that made its name point here reads nothing', async () => {
    const { url } = await serve()
    const { port } = new URL(url)
    for (const host of [`localhost:${port}`, `127.0.0.1:${port}`, '[::1]']) {
      expect((await ask(url, '/live', { headers: { host } })).status, host).toBe(200)
    }
    for (const host of ['evil.example', `evil.example:${port}`, '127.0.0.1.evil.example', 'localhost.evil']) {
      expect((await ask(url, '/health', { headers: { host } })).status, host).toBe(421)
    }
  })

  test('O3 with a token only probes go without it', async () => {
    const { url } = await serve({ token: TOKEN })
    expect((await ask(url, '/live')).status).toBe(200)
    expect((await ask(url, '/ready')).status).toBe(200)
    for (const path of ['/health', '/metrics', '/scale?queue=mail', '/nothing']) {
      const refused = await ask(url, path)
      expect([refused.status, refused.headers['www-authenticate']], path).toEqual([401, 'Bearer'])
      expect((await ask(url, path, { headers: { authorization: `Bearer ${TOKEN}x` } })).status).toBe(401)
    }
    for (const scheme of ['Bearer', 'bearer']) {
      expect((await ask(url, '/health', { headers: { authorization: `${scheme} ${TOKEN}` } })).status, scheme).toBe(200)
    }
    for (const authorization of [TOKEN, `Basic ${TOKEN}`, 'Bearer', `Bearer  ${TOKEN} ${TOKEN}`]) {
      expect((await ask(url, '/health', { headers: { authorization } })).status, authorization).toBe(401)
    }
  })

  test('O3 open to others only when asked, and then it says so', async () => {
    const said: [LogFields, string][] = []
    const logger: Logger = { ...silentLogger, warn: (fields, message) => void said.push([fields, message]) }
    const quiet = await serve({ runtime: { logger } })
    expect(quiet.url).toContain('127.0.0.1')
    expect(said).toEqual([])
    const open = await serve({ host: '0.0.0.0', runtime: { logger } })
    expect(said.map(([, message]) => message)).toEqual([expect.stringContaining('without a token') as string])
    // Whoever opens it knows the names it is asked by.
    const local = open.url.replace('0.0.0.0', '127.0.0.1')
    expect((await ask(local, '/live', { headers: { host: 'worker-1.internal' } })).status).toBe(200)
  })

  test.each([
    [{ port: -1 }, /http\.port/],
    [{ port: 70_000 }, /http\.port/],
    [{ port: 0, host: 'http://x' }, /http\.host/],
    [{ port: 0, token: 'short' }, /http\.token is "\*\*\*"/],
    [{ port: 0, tokn: 'x' }, /did you mean token/],
  ])('O3 %j is refused', (options, message) => {
    expect(() => createOpsServer({ ...options, sources: SOURCES })).toThrow(message)
  })
})

describe('life', () => {
  test('O3 a port that is taken is a typed error, and nothing is left to stop', async () => {
    const other = createServer()
    await new Promise<void>((resolve) => void other.listen(0, '127.0.0.1', resolve))
    onTestFinished(() => void other.close())
    const { port } = other.address() as AddressInfo
    const server = createOpsServer({ port, sources: SOURCES })
    await expect(server.start()).rejects.toMatchObject({ code: 'PORT_UNAVAILABLE', message: /another process has it/ })
    await server.stop()
  })

  test('O3 a stop lets what is under way end, closes idle connections, and may be called twice', async () => {
    let answer: (() => void) | undefined
    const asked = new Promise<void>((resolve) => {
      answer = resolve
    })
    let release: (() => void) | undefined
    const health = async () => {
      answer?.()
      await new Promise<void>((resolve) => (release = resolve))
      return report
    }
    const server = await serve({ sources: { ...SOURCES, health } })
    const idle = raw(server.url, 'GET /live HTTP/1.1\r\nHost: localhost\r\n\r\n')
    const busy = ask(server.url, '/health')
    await asked
    const stopped = Promise.all([server.stop(), server.stop()])
    expect(await idle, 'closed with the stop').toContain('HTTP/1.1 200 OK')
    release?.()
    const { status, headers } = await busy
    expect([status, headers['connection']]).toEqual([200, 'close'])
    await stopped
    await expect(ask(server.url, '/live')).rejects.toThrow(/ECONNREFUSED/)
  })

  test('O3 one that was never started can be stopped', async () => {
    await expect(createOpsServer({ port: 0, sources: SOURCES }).stop()).resolves.toBeUndefined()
  })
})
