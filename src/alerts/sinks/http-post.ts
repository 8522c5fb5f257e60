// One POST to one address: bounded in time and in what is read, without redirects, and with an error that says whether to
// try again. Nothing of the URL but its host is ever in a message: the rest of it is often the secret.
import { request as httpRequest } from 'node:http'
import type { IncomingMessage, RequestOptions } from 'node:http'
import { request as httpsRequest } from 'node:https'
import { classify } from '../../core/classify.ts'
import { LIMITS } from '../../core/limits.ts'
import { invalidOption } from '../../core/names.ts'
import type { Clock } from '../../runtime/clock.ts'
import { resolveTarget } from './address.ts'
import type { Address, Resolve } from './address.ts'
import { notDelivered, refused, shownReply } from './sink.ts'

export interface PostParts {
  readonly clock: Clock
  readonly timeoutMs: number
  readonly allowPrivate: boolean
  /** Never shown, wherever they come back from. */
  readonly secrets: readonly string[]
  readonly resolve?: Resolve
}

export interface HttpReply {
  readonly status: number
  /** As it may be shown. */
  readonly text: string
}

/** For the option `url` of a sink. */
export function checkPostUrl(value: unknown, what: string, allowPrivate: boolean): URL {
  // The value is not shown: it may hold a token.
  const wrong = (accepted: string) => invalidOption(what, undefined, accepted)
  if (typeof value !== 'string' || value === '') throw wrong("a URL such as 'https://…'; is its variable set?")
  let url: URL
  try {
    url = new URL(value)
  } catch {
    throw wrong("a URL such as 'https://…'")
  }
  if (url.protocol !== 'https:' && url.protocol !== 'http:') throw wrong("a URL such as 'https://…'")
  if (url.protocol === 'http:' && !allowPrivate) throw wrong('an https:// URL; http:// only together with allowPrivate')
  if (url.username !== '' || url.password !== '') throw wrong('a URL without a password; put it into `headers`')
  return url
}

export async function post(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  parts: PostParts,
): Promise<HttpReply> {
  const { clock, timeoutMs } = parts
  const controller = new AbortController()
  const late = notDelivered(`${url.hostname} did not answer within ${timeoutMs} ms`)
  let timer: { cancel(): void } | undefined
  // The resolver cannot be aborted, so the time-out is raced as well as signalled.
  const expired = new Promise<never>((_, reject) => {
    timer = clock.timer(
      timeoutMs,
      () => {
        controller.abort()
        reject(late)
      },
      { keepAlive: true },
    )
  })
  try {
    const reply = await Promise.race([exchange(url, body, headers, parts, controller.signal), expired])
    return judge(url, reply, parts, clock.nowMs())
  } finally {
    timer?.cancel()
    controller.abort()
  }
}

interface RawReply {
  readonly status: number
  readonly headers: IncomingMessage['headers']
  readonly text: string
}

async function exchange(
  url: URL,
  body: string,
  headers: Readonly<Record<string, string>>,
  { allowPrivate, resolve, secrets }: PostParts,
  signal: AbortSignal,
): Promise<RawReply> {
  const targets = await resolveTarget(url.hostname, allowPrivate, resolve)
  return new Promise((done, fail) => {
    const options: RequestOptions = {
      method: 'POST',
      // No pool: a connection that is reused might be one that the other side has closed.
      agent: false,
      signal,
      headers: { ...headers, 'content-length': Buffer.byteLength(body), 'user-agent': 'millrace' },
      lookup: pinned(targets),
    }
    const send = url.protocol === 'https:' ? httpsRequest : httpRequest
    const request = send(url, options, (response) => void readReply(response).then(done, fail))
    request.on('error', (error) => {
      const why = shownReply(error.message, secrets)
      fail(notDelivered(`${url.hostname} could not be reached: ${why}`))
    })
    request.end(body)
  })
}

/** Whatever the name means by now, the connection goes where it was checked. */
function pinned(targets: readonly Address[]): NonNullable<RequestOptions['lookup']> {
  return (_, options, callback) => {
    const [first] = targets
    if (options.all === true) callback(null, [...targets])
    else callback(null, first?.address ?? '', first?.family)
  }
}

/** No more than the bound is read; the rest is not waited for. */
async function readReply(response: IncomingMessage): Promise<RawReply> {
  const chunks: Buffer[] = []
  let bytes = 0
  try {
    for await (const chunk of response as AsyncIterable<Buffer>) {
      chunks.push(chunk.subarray(0, LIMITS.sinkReplyBytesMax - bytes))
      bytes += chunk.length
      if (bytes >= LIMITS.sinkReplyBytesMax) break
    }
  } catch {
    // The status has been said; a body that breaks off changes nothing.
  }
  response.destroy()
  const text = Buffer.concat(chunks).toString('utf8')
  return { status: response.statusCode ?? 0, headers: response.headers, text }
}

function judge(url: URL, { status, headers, text }: RawReply, { secrets }: PostParts, nowMs: number): HttpReply {
  const shown = shownReply(text, secrets)
  if (status >= 200 && status < 300) return { status, text: shown }
  const said = `${url.hostname} answered ${status}${shown === '' ? '' : `: ${shown}`}`
  if (status === 408 || status === 429 || status >= 500) {
    const { retry } = classify({ status, headers }, { nowMs })
    throw notDelivered(said, { status, ...(typeof retry === 'object' && { retryAfterMs: retry.afterMs }) })
  }
  const hint = status >= 300 && status < 400 ? '; redirects are not followed: give the address it points to' : ''
  throw refused(`${said}${hint}`, { status })
}
