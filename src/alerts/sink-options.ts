// The sinks of the configuration, checked, and made into sinks. Values that are secrets are never in an error.
import { LIMITS, DEFAULTS } from '../core/limits.ts'
import { checkKnownOptions, invalidOption } from '../core/names.ts'
import { parseDuration } from '../core/duration.ts'
import type { Duration } from '../core/duration.ts'
import { bounded } from '../runtime/bounded.ts'
import type { Runtime } from '../runtime/runtime.ts'
import type { Resolve } from './sinks/address.ts'
import { emailSink } from './sinks/email.ts'
import type { EmailParts } from './sinks/email.ts'
import { checkPostUrl } from './sinks/http-post.ts'
import type { PostParts } from './sinks/http-post.ts'
import { logSink } from './sinks/log-sink.ts'
import { PAGERDUTY_URL, pagerDutySink } from './sinks/pagerduty.ts'
import type { SentNotice, Sink } from './sinks/sink.ts'
import { slackSink } from './sinks/slack.ts'
import { webhookSink } from './sinks/webhook.ts'

interface HttpSinkOptions {
  /** Loopback and private addresses, and http://. Default false. */
  readonly allowPrivate?: boolean
  /** Of one try. Default 10 s. */
  readonly timeout?: Duration
}

export interface LogSinkOptions {
  readonly type: 'log'
}

export interface WebhookSinkOptions extends HttpSinkOptions {
  readonly type: 'webhook'
  readonly url: string
  /** Signs each notice; `verifyWebhook` is its other side. */
  readonly secret?: string
  readonly headers?: Readonly<Record<string, string>>
}

export interface SlackSinkOptions extends HttpSinkOptions {
  readonly type: 'slack'
  /** Of an incoming webhook. */
  readonly url: string
}

export interface PagerDutySinkOptions extends HttpSinkOptions {
  readonly type: 'pagerduty'
  /** Integration key of a service, for the Events API v2. */
  readonly routingKey: string
  /** For another region. */
  readonly url?: string
}

export interface EmailSinkOptions {
  readonly type: 'email'
  /** `smtp://user:password@host:587`, or the options of nodemailer. */
  readonly smtp: string | Readonly<Record<string, unknown>>
  readonly from: string
  readonly to: string | readonly string[]
  readonly timeout?: Duration
}

export interface CustomSinkOptions {
  readonly type: 'custom'
  /** An error means: try again later. */
  readonly send: (notice: SentNotice) => unknown
  readonly timeout?: Duration
}

export type AnySinkOptions =
  | LogSinkOptions
  | WebhookSinkOptions
  | SlackSinkOptions
  | PagerDutySinkOptions
  | EmailSinkOptions
  | CustomSinkOptions

export interface SinkParts {
  readonly runtime: Runtime
  /** For tests. */
  readonly resolve?: Resolve
  readonly loadMailer?: EmailParts['load']
}

export type MakeSink = (parts: SinkParts) => Sink

export const SINK_TYPES = ['log', 'webhook', 'slack', 'pagerduty', 'email', 'custom'] as const
export type SinkType = (typeof SINK_TYPES)[number]

const SECRET_CHARS_MIN = 16
const HEADERS_MAX = 20
const RECIPIENTS_MAX = 50
const TIMEOUT = { minMs: 100, maxMs: 60_000 }

/** Checks now, makes later: a mistake is told when the configuration is read. */
export function checkSink(options: AnySinkOptions, what: string): MakeSink {
  const type: unknown = (options as { readonly type?: unknown } | null)?.type
  if (!SINK_TYPES.some((one) => one === type)) {
    throw invalidOption(`${what}.type`, type, `one of ${SINK_TYPES.join(', ')}`)
  }
  switch (options.type) {
    case 'log':
      checkKnownOptions(options, ['type'], what)
      return ({ runtime }) => logSink(runtime.logger)
    case 'webhook': {
      checkKnownOptions(options, ['type', 'url', 'secret', 'headers', 'allowPrivate', 'timeout'], what)
      const { secret, headers = {} } = options
      const url = checkPostUrl(options.url, `${what}.url`, options.allowPrivate === true)
      if (secret !== undefined) checkSecret(secret, `${what}.secret`, SECRET_CHARS_MIN)
      checkHeaders(headers, `${what}.headers`)
      const secrets = [...secretsOf(url), ...(secret === undefined ? [] : [secret]), ...Object.values(headers)]
      const post = postParts(options, secrets, what)
      return (parts) => webhookSink({ url, headers, ...(secret !== undefined && { secret }) }, post(parts))
    }
    case 'slack': {
      checkKnownOptions(options, ['type', 'url', 'allowPrivate', 'timeout'], what)
      const url = checkPostUrl(options.url, `${what}.url`, options.allowPrivate === true)
      const post = postParts(options, secretsOf(url), what)
      return (parts) => slackSink(url, post(parts))
    }
    case 'pagerduty': {
      checkKnownOptions(options, ['type', 'routingKey', 'url', 'allowPrivate', 'timeout'], what)
      const { routingKey } = options
      checkSecret(routingKey, `${what}.routingKey`, SECRET_CHARS_MIN)
      const url = checkPostUrl(options.url ?? PAGERDUTY_URL, `${what}.url`, options.allowPrivate === true)
      const post = postParts(options, [routingKey], what)
      return (parts) => pagerDutySink({ routingKey, url }, post(parts))
    }
    case 'email': {
      checkKnownOptions(options, ['type', 'smtp', 'from', 'to', 'timeout'], what)
      const { smtp, from } = options
      const to = typeof options.to === 'string' ? [options.to] : options.to
      checkSmtp(smtp, `${what}.smtp`)
      checkMailbox(from, `${what}.from`)
      if (!Array.isArray(to) || to.length === 0 || to.length > RECIPIENTS_MAX) {
        throw invalidOption(`${what}.to`, to, `1-${RECIPIENTS_MAX} addresses`)
      }
      for (const one of to) checkMailbox(one, `${what}.to`)
      const timeoutMs = timeoutOf(options, what)
      const secrets = passwordsIn(smtp)
      return ({ runtime, loadMailer }) =>
        emailSink(
          { smtp, from, to },
          { clock: runtime.clock, timeoutMs, secrets, ...(loadMailer !== undefined && { load: loadMailer }) },
        )
    }
    case 'custom': {
      checkKnownOptions(options, ['type', 'send', 'timeout'], what)
      const { send } = options
      if (typeof send !== 'function') throw invalidOption(`${what}.send`, send, 'a function')
      const timeoutMs = timeoutOf(options, what)
      return ({ runtime }) => ({
        async send(notice) {
          // Inside a promise, so that one that throws at once is no different.
          await bounded(runtime.clock, timeoutMs, 'the sink', Promise.resolve(notice).then(send))
          return 'the function returned'
        },
      })
    }
  }
}

function postParts(
  options: { readonly allowPrivate?: boolean; readonly timeout?: Duration },
  secrets: readonly string[],
  what: string,
): (parts: SinkParts) => PostParts {
  const { allowPrivate = false } = options
  if (typeof allowPrivate !== 'boolean') throw invalidOption(`${what}.allowPrivate`, allowPrivate, 'true or false')
  const timeoutMs = timeoutOf(options, what)
  return ({ runtime, resolve }) => ({
    clock: runtime.clock,
    timeoutMs,
    allowPrivate,
    secrets,
    ...(resolve !== undefined && { resolve }),
  })
}

function timeoutOf({ timeout }: { readonly timeout?: Duration }, what: string): number {
  return parseDuration(timeout ?? DEFAULTS.noticeTimeoutMs, `${what}.timeout`, TIMEOUT)
}

/** The path and the query of a webhook are what makes it one's own. */
function secretsOf({ pathname, search }: URL): readonly string[] {
  return [`${pathname}${search}`, ...pathname.split('/').filter((part) => part.length >= 8)].filter(
    (one) => one !== '/',
  )
}

/** The value is not shown. */
function checkSecret(value: unknown, what: string, charsMin: number): void {
  if (typeof value === 'string' && value.length >= charsMin && value.length <= LIMITS.keyCharsMax) return
  const accepted = `a text of ${charsMin}-${LIMITS.keyCharsMax} characters; is its variable set?`
  throw invalidOption(what, typeof value === 'string' ? `${value.length} characters` : undefined, accepted)
}

function checkHeaders(headers: Readonly<Record<string, string>>, what: string): void {
  const entries = Object.entries(headers ?? {})
  const isFine = entries.every(([name, value]) => /^[\w-]{1,100}$/.test(name) && /^[\x20-\x7e]{0,2000}$/.test(value))
  if (entries.length > HEADERS_MAX || !isFine) {
    throw invalidOption(what, undefined, `at most ${HEADERS_MAX} headers of plain text`)
  }
}

function checkSmtp(smtp: unknown, what: string): void {
  const isUrl = typeof smtp === 'string' && /^smtps?:\/\/./i.test(smtp)
  const isOptions = typeof smtp === 'object' && smtp !== null && !Array.isArray(smtp)
  if (!isUrl && !isOptions) {
    throw invalidOption(what, undefined, "'smtp://user:password@host:587', smtps://, or the options of nodemailer")
  }
}

function checkMailbox(value: unknown, what: string): void {
  if (typeof value === 'string' && /^[^\r\n]{1,300}$/.test(value) && value.includes('@')) return
  throw invalidOption(what, value, "an address such as 'alerts@example.com'")
}

function passwordsIn(smtp: string | Readonly<Record<string, unknown>>): readonly string[] {
  if (typeof smtp !== 'string') {
    const auth = smtp['auth'] as { readonly pass?: unknown } | undefined
    return typeof auth?.pass === 'string' ? [auth.pass] : []
  }
  try {
    const { password } = new URL(smtp)
    return password === '' ? [] : [password, decodeURIComponent(password)]
  } catch {
    return []
  }
}
