// What kind of failure an error is and whether trying again can help: one pure function, read from
// the outermost error inwards along `cause`. Custom classifiers are asked first; the built-in rules
// look only at the shape of the error, so it does not matter which library or realm made it.

import { DEFAULTS, LIMITS } from './limits.ts'

export const ERROR_CLASSES = [
  'network',
  'timeout',
  'server',
  'rate-limited',
  'resource',
  'validation',
  'client',
  'permanent',
  'crash',
  'unknown',
] as const
export type ErrorClass = (typeof ERROR_CLASSES)[number]

export interface Verdict {
  readonly class: ErrorClass
  /** `policy`: by the retry policy of the job; `afterMs`: this long, whatever the policy says. */
  readonly retry: 'policy' | 'never' | { readonly afterMs: number }
}

/** The first one that answers decides; what it leaves out is filled in by the built-in rules. */
export type Classifier = (error: unknown) => Partial<Verdict> | ErrorClass | undefined

export interface ClassifyOptions {
  readonly custom?: readonly Classifier[]
  /** What becomes of errors that no rule knows. Default `retry`. */
  readonly unknown?: 'retry' | 'fail'
  /** Needed only for a `Retry-After` that is a date; without it such a header is ignored. */
  readonly nowMs?: number
}

/** How deep a chain of causes is followed. */
export const CAUSES_MAX = 5

export function classify(error: unknown, options: ClassifyOptions = {}): Verdict {
  const builtIn = classifyChain(error, options.nowMs) ?? verdictOf('unknown')
  const verdict = askCustom(error, options.custom ?? [], builtIn) ?? builtIn
  const failsUnknown = verdict.class === 'unknown' && verdict.retry === 'policy' && options.unknown === 'fail'
  return failsUnknown ? { class: 'unknown', retry: 'never' } : verdict
}

function askCustom(error: unknown, custom: readonly Classifier[], builtIn: Verdict): Verdict | undefined {
  for (const classifier of custom) {
    try {
      const answer: unknown = classifier(error)
      if (isErrorClass(answer)) return verdictOf(answer)
      const named = readField(answer, 'class')
      const base = isErrorClass(named) ? verdictOf(named) : builtIn
      const retry = acceptableRetry(readField(answer, 'retry'))
      if (isErrorClass(named) || retry !== undefined) return { class: base.class, retry: retry ?? base.retry }
    } catch {
      // A classifier is advice. One that breaks must not turn a failed job into a broken worker.
    }
  }
  return undefined
}

function acceptableRetry(retry: unknown): Verdict['retry'] | undefined {
  if (retry === 'policy' || retry === 'never') return retry
  const afterMs = readField(retry, 'afterMs')
  return typeof afterMs === 'number' && afterMs >= 0
    ? { afterMs: Math.min(Math.round(afterMs), LIMITS.delayMaxMs) }
    : undefined
}

/** The same input fails again: nobody tries it again by himself. */
export function isPermanent(errorClass: ErrorClass): boolean {
  return verdictOf(errorClass).retry === 'never'
}

function verdictOf(errorClass: ErrorClass): Verdict {
  switch (errorClass) {
    case 'validation':
    case 'client':
    case 'permanent':
      return { class: errorClass, retry: 'never' }
    case 'resource':
      return { class: errorClass, retry: { afterMs: DEFAULTS.resourceDelayMs } }
    case 'network':
    case 'timeout':
    case 'server':
    case 'rate-limited':
    case 'crash':
    case 'unknown':
      return { class: errorClass, retry: 'policy' }
  }
}

function isErrorClass(value: unknown): value is ErrorClass {
  return (ERROR_CLASSES as readonly unknown[]).includes(value)
}

function classifyChain(error: unknown, nowMs: number | undefined): Verdict | undefined {
  let current = error
  for (let depth = 0; depth <= CAUSES_MAX && current !== undefined; depth++) {
    const verdict = classifyOne(current, nowMs)
    if (verdict !== undefined) return verdict
    current = nextCause(current)
  }
  return undefined
}

/** Retryable HTTP answers come before validation: a 503 whose body lists `issues` is still a 503. */
function classifyOne(error: unknown, nowMs: number | undefined): Verdict | undefined {
  const status = httpStatus(error)
  if (status === 429 || status >= 500) {
    const verdict = verdictOf(status === 429 ? 'rate-limited' : 'server')
    const afterMs = retryAfterMs(error, nowMs)
    return afterMs === undefined ? verdict : { class: verdict.class, retry: { afterMs } }
  }
  if (status === 408) return verdictOf('timeout')
  const errorClass = classOfShape(error)
  if (errorClass !== undefined) return verdictOf(errorClass)
  return status >= 400 ? verdictOf('client') : undefined
}

function classOfShape(error: unknown): ErrorClass | undefined {
  const name = readText(error, 'name')
  const code = readText(error, 'code')
  if (name === 'MillraceError') return MILLRACE_CLASSES.get(code)
  if (VALIDATION_NAMES.has(name) || Array.isArray(readField(error, 'issues'))) return 'validation'
  if (RESOURCE_CODES.has(code) || RESOURCE_MESSAGE.test(readText(error, 'message'))) return 'resource'
  if (TIMEOUT_NAMES.has(name) || TIMEOUT_CODES.has(code)) return 'timeout'
  if (NETWORK_CODES.has(code)) return 'network'
  if (code.startsWith('UND_ERR_') && !UNDICI_MISUSE.has(code)) return 'network'
  return undefined
}

const MILLRACE_CLASSES: ReadonlyMap<string, ErrorClass> = new Map([
  ['INVALID_PAYLOAD', 'validation'],
  ['PAYLOAD_NOT_JSON', 'validation'],
  ['PAYLOAD_TOO_LARGE', 'validation'],
  ['PAYLOAD_SECRET', 'validation'],
  ['RESULT_TOO_LARGE', 'validation'],
  ['PROGRESS_TOO_LARGE', 'validation'],
  ['JOB_TIMEOUT', 'timeout'],
  ['WAIT_TIMEOUT', 'timeout'],
  ['STORE_TIMEOUT', 'timeout'],
  ['IDEMPOTENCY_BUSY', 'timeout'],
  ['STORE_UNAVAILABLE', 'network'],
  ['NOT_COMMITTED', 'server'],
  // The kept failure comes back on every further attempt.
  ['IDEMPOTENCY_FAILED', 'permanent'],
  // Nothing but an installation helps.
  ['BACKUP_TOOL_MISSING', 'permanent'],
  ['BACKUP_TOOL_OLD', 'permanent'],
  ['BACKUP_NO_SPACE', 'resource'],
  ['WORKER_DIED', 'crash'],
  ['POISON', 'crash'],
] as const)

const VALIDATION_NAMES = new Set(['ZodError', '$ZodError', 'ValidationError', 'SchemaError', 'ValiError'])
const RESOURCE_CODES = new Set(['ENOMEM', 'ENOSPC', 'EMFILE', 'ENFILE', 'EDQUOT', 'ERR_WORKER_OUT_OF_MEMORY'])
const RESOURCE_MESSAGE = /heap out of memory|array buffer allocation failed/i
const TIMEOUT_NAMES = new Set(['TimeoutError', 'ConnectTimeoutError', 'HeadersTimeoutError', 'BodyTimeoutError'])
// ECONNABORTED is what axios says when its own timeout fires.
const TIMEOUT_CODES = new Set(['JOB_TIMEOUT', 'ESOCKETTIMEDOUT', 'ECONNABORTED'])
const NETWORK_CODES = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'ETIMEDOUT',
  'EPIPE',
  'EAI_AGAIN',
  'ENOTFOUND',
  'EHOSTUNREACH',
  'EHOSTDOWN',
  'ENETUNREACH',
  'ENETDOWN',
  'ENETRESET',
  'EADDRNOTAVAIL',
  'ERR_NETWORK',
  'ERR_STREAM_PREMATURE_CLOSE',
  'ERR_HTTP2_STREAM_ERROR',
  'ERR_HTTP2_SESSION_ERROR',
])
// Wrong use of the client, not trouble on the line: trying again changes nothing that we know of.
const UNDICI_MISUSE = new Set(['UND_ERR_INVALID_ARG', 'UND_ERR_INVALID_RETURN_VALUE', 'UND_ERR_NOT_SUPPORTED'])

/** 0 when the error carries no HTTP error status. Other things are called `status` too (gRPC 14, 'rejected'). */
function httpStatus(error: unknown): number {
  const candidates = [
    readField(error, 'status'),
    readField(error, 'statusCode'),
    readField(readField(error, 'response'), 'status'),
    readField(readField(error, 'response'), 'statusCode'),
    readField(readField(error, '$metadata'), 'httpStatusCode'),
  ]
  const isErrorStatus = (status: unknown): status is number =>
    typeof status === 'number' && Number.isInteger(status) && status >= 400 && status <= 599
  return candidates.find(isErrorStatus) ?? 0
}

// A server that answers with an epoch instead of seconds would park the job for half a century.
const RETRY_AFTER_MAX_MS = 24 * 60 * 60_000
const HEADERS_SCANNED_MAX = 200

function retryAfterMs(error: unknown, nowMs: number | undefined): number | undefined {
  const holders = [
    readField(error, 'headers'),
    ...['response', '$response'].map((holder) => readField(readField(error, holder), 'headers')),
  ]
  for (const headers of holders) {
    const value = readHeader(headers)
    const text = typeof value === 'number' ? String(value) : typeof value === 'string' ? value.trim() : ''
    if (/^\d{1,15}(\.\d{1,9})?$/.test(text)) return Math.min(Math.ceil(Number(text) * 1_000), RETRY_AFTER_MAX_MS)
    // `Date.parse` accepts far too much ('1' is a date); an HTTP date starts with a weekday.
    const dateMs = /^[A-Za-z]{3,9}, /.test(text) ? Date.parse(text.slice(0, 64)) : Number.NaN
    if (nowMs !== undefined && !Number.isNaN(dateMs)) return Math.min(Math.max(0, dateMs - nowMs), RETRY_AFTER_MAX_MS)
  }
  return undefined
}

/** `Headers`, a `Map` with any spelling, or a plain object with any spelling; arrays give their first value. */
function readHeader(headers: unknown): unknown {
  if (headers === null || typeof headers !== 'object') return undefined
  try {
    const get = readField(headers, 'get')
    const found: unknown = typeof get === 'function' ? Reflect.apply(get, headers, ['retry-after']) : undefined
    if (found !== undefined && found !== null) return Array.isArray(found) ? (found[0] as unknown) : found
    const entries: Iterable<readonly [unknown, unknown]> = headers instanceof Map ? headers : Object.entries(headers)
    let scanned = 0
    for (const [key, value] of entries) {
      if (typeof key === 'string' && key.toLowerCase() === 'retry-after') {
        return Array.isArray(value) ? (value[0] as unknown) : value
      }
      if (++scanned >= HEADERS_SCANNED_MAX) break
    }
  } catch {
    // Hostile or broken headers are no headers.
  }
  return undefined
}

/** The next error inwards: `cause`, or the first of an AggregateError. */
export function nextCause(error: unknown): unknown {
  return readField(error, 'cause') ?? readField(readField(error, 'errors'), '0')
}

/** A field of anything at all. Getters and proxies that throw count as absent. */
export function readField(value: unknown, field: string): unknown {
  if (value === null || (typeof value !== 'object' && typeof value !== 'function')) return undefined
  try {
    return (value as Readonly<Record<string, unknown>>)[field]
  } catch {
    return undefined
  }
}

function readText(value: unknown, field: string): string {
  const text = readField(value, field)
  return typeof text === 'string' ? text : ''
}
