// The guard between a caller's value and the store: one walk that says which field JSON cannot carry,
// then JSON.stringify and a check of the size. Fast on the good path (no paths are built, no text is
// scanned twice); the exact place of a problem is worked out only once there is one.

import { MillraceError } from './errors.ts'
import type { Json, JsonText } from './json.ts'
import { LIMITS } from './limits.ts'

export interface SecretGuard {
  readonly mode: 'off' | 'warn' | 'refuse'
  /** Fields that are fine: a key (`token`) or a whole path (`payload.page.token`, `meta.token`). */
  readonly allow?: readonly string[]
}

export interface EncodeOptions {
  readonly maxBytes: number
  readonly code: 'PAYLOAD_TOO_LARGE' | 'RESULT_TOO_LARGE' | 'PROGRESS_TOO_LARGE'
  readonly secrets?: SecretGuard
}

interface Walk {
  /** A lower bound of the encoded size. Shared references could otherwise unfold into terabytes. */
  bytesAtLeast: number
  readonly bytesMax: number
  readonly findSecrets: boolean
  hasSecret: boolean
}

type Steps = (string | number)[]

/** Why a value was refused; each level adds its step to the path as the walk unwinds. */
interface Problem {
  readonly reason: string
  readonly steps: Steps
}

// Up to here the error can name the exact size; beyond, encoding the value just to measure it is waste.
const MEASURED_FACTOR = 16
const WARNINGS_MAX = 10

/** `what` is the root of the paths in messages: `payload`, `result`, `progress`. */
export function encodePayload(
  value: unknown,
  what: string,
  options: EncodeOptions,
): { readonly text: JsonText; readonly warnings: readonly string[] } {
  const walk: Walk = {
    bytesAtLeast: 0,
    bytesMax: options.maxBytes * MEASURED_FACTOR,
    findSecrets: options.secrets !== undefined && options.secrets.mode !== 'off',
    hasSecret: false,
  }
  const text = encode(value, what, walk, options)
  // An UTF-16 unit is at most 3 bytes, so most texts need not be measured.
  const bytes = text.length * 3 <= options.maxBytes ? 0 : Buffer.byteLength(text)
  if (bytes > options.maxBytes) throw tooLarge(`${bytes}`, what, options)
  // JSON.stringify escapes NUL and lone surrogates; only then is it worth looking for them.
  if (text.includes('\\u')) refuseBrokenText(JSON.parse(text), what)
  return { text, warnings: walk.hasSecret ? guardSecrets(JSON.parse(text), what, options.secrets) : [] }
}

/** A payload as it was encoded; own `__proto__` keys, which encoding refuses, are dropped. */
export function decodePayload(text: JsonText): Json {
  // Decoded boundary: JSON.parse gives Json. A reviver is slow, so only texts that may need it pay for it.
  if (!text.includes('"__proto__"') && !text.includes('\\u')) return JSON.parse(text) as Json
  return JSON.parse(text, (key, item: Json) => (key === '__proto__' ? undefined : item)) as Json
}

function encode(value: unknown, what: string, walk: Walk, options: EncodeOptions): string {
  let problem: Problem | undefined
  try {
    problem = check(value, 0, walk)
    if (problem === undefined && walk.bytesAtLeast <= walk.bytesMax) return JSON.stringify(value)
  } catch (cause) {
    // A getter or a toJSON of the caller threw.
    const because = cause instanceof Error ? `: ${cause.message.slice(0, 200)}` : ''
    throw new MillraceError('PAYLOAD_NOT_JSON', `${what} cannot be read${because}`, { cause, details: { path: what } })
  }
  if (problem === undefined) throw tooLarge(`at least ${walk.bytesAtLeast}`, what, options)
  const { reason, steps } = problem.reason === TOO_DEEP ? cycleOr(value, problem) : problem
  throw notJson(pathText(what, steps), reason)
}

const TOO_DEEP = `is nested deeper than ${LIMITS.payloadDepthMax} levels; flatten it or store it elsewhere`
const CIRCLE = 'points back to an object that contains it; break the circle'

function check(value: unknown, depth: number, walk: Walk): Problem | undefined {
  walk.bytesAtLeast += 2
  switch (typeof value) {
    case 'string':
      walk.bytesAtLeast += value.length
      return undefined
    case 'boolean':
      return undefined
    case 'number':
      return Number.isFinite(value) ? undefined : refused(`is ${value}; use null or text instead`)
    case 'object':
      if (value === null || walk.bytesAtLeast > walk.bytesMax) return undefined
      if (depth >= LIMITS.payloadDepthMax) return refused(TOO_DEEP)
      return Array.isArray(value) ? checkArray(value, depth, walk) : checkObject(value, depth, walk)
    case 'bigint':
      return refused('is a BigInt; use String(value)')
    case 'undefined':
      return refused('is undefined; leave the field out or use null')
    case 'function':
    case 'symbol':
      return refused(`is a ${typeof value}, which JSON cannot carry`)
  }
}

function checkArray(items: readonly unknown[], depth: number, walk: Walk): Problem | undefined {
  for (let index = 0; index < items.length && walk.bytesAtLeast <= walk.bytesMax; index++) {
    const problem = check(items[index], depth + 1, walk)
    if (problem !== undefined) return within(index, problem)
  }
  return undefined
}

function checkObject(value: object, depth: number, walk: Walk): Problem | undefined {
  const prototype: unknown = Object.getPrototypeOf(value)
  if (prototype !== Object.prototype && prototype !== null && !isPlainElsewhere(prototype)) {
    return checkInstance(value, depth, walk)
  }
  if (typeof (value as { toJSON?: unknown }).toJSON === 'function') return checkInstance(value, depth, walk)
  for (const key of Object.keys(value)) {
    if (key === '__proto__') return within(key, refused('is a key that could poison prototypes; rename it'))
    walk.bytesAtLeast += key.length
    if (walk.findSecrets && !walk.hasSecret && looksSecret(key)) walk.hasSecret = true
    const problem = check((value as Readonly<Record<string, unknown>>)[key], depth + 1, walk)
    if (problem !== undefined) return within(key, problem)
    if (walk.bytesAtLeast > walk.bytesMax) return undefined
  }
  return undefined
}

/** Objects of another realm (jest, vm) have another Object.prototype. */
function isPlainElsewhere(prototype: unknown): boolean {
  return Object.getPrototypeOf(prototype) === null && Object.hasOwn(prototype as object, 'isPrototypeOf')
}

/** Something with a class: it must say itself how it becomes JSON. */
function checkInstance(value: object, depth: number, walk: Walk): Problem | undefined {
  if (Object.prototype.toString.call(value) === '[object Date]') return refused('is a Date; use toISOString()')
  const { toJSON } = value as { toJSON?: unknown }
  if (typeof toJSON === 'function') return check(Reflect.apply(toJSON, value, ['']), depth + 1, walk)
  const name: unknown = (value as { constructor?: { name?: unknown } }).constructor?.name
  const kind = typeof name === 'string' && name !== '' ? name.slice(0, 60) : 'class instance'
  const hint = kind === 'Map' ? 'Object.fromEntries(map)' : kind === 'Set' ? '[...set]' : 'a plain object'
  return refused(`is a ${kind}, which JSON cannot carry; use ${hint}`)
}

function refused(reason: string): Problem {
  return { reason, steps: [] }
}

function within(step: string | number, problem: Problem): Problem {
  problem.steps.unshift(step)
  return problem
}

/** Too deep is usually a circle: follow the path again and name the first field that closes it. */
function cycleOr(root: unknown, problem: Problem): Problem {
  const seen = new Set<unknown>([root])
  let current = root
  for (const [index, step] of problem.steps.entries()) {
    current = (current as Readonly<Record<string | number, unknown>> | undefined)?.[step]
    if (typeof current === 'object' && current !== null && seen.has(current)) {
      return { reason: CIRCLE, steps: problem.steps.slice(0, index + 1) }
    }
    seen.add(current)
  }
  return problem
}

/** Every field of decoded JSON, outermost first; depth and size are bounded by then. */
function eachField(value: Json, steps: Steps, visit: (key: string, item: Json, path: Steps) => void) {
  if (typeof value !== 'object' || value === null) return
  for (const [key, item] of Object.entries(value) as [string, Json][]) {
    const path = [...steps, Array.isArray(value) ? Number(key) : key]
    visit(key, item, path)
    eachField(item, path, visit)
  }
}

function refuseBrokenText(root: Json, what: string): void {
  if (typeof root === 'string' && isBroken(root)) throw notJson(what, BROKEN)
  eachField(root, [], (key, item, path) => {
    if (isBroken(key)) throw notJson(pathText(what, path), `is a key that ${BROKEN}`)
    if (typeof item === 'string' && isBroken(item)) throw notJson(pathText(what, path), BROKEN)
  })
}

// Not every store can keep them, and none keeps them the same way.
const BROKEN = 'has a NUL character or half of a surrogate pair; encode binary as base64, mend text with toWellFormed()'

function isBroken(text: string): boolean {
  return text.includes('\0') || /\p{Cs}/u.test(text)
}

// Without `_` and `-`, in lower case: `api_key`, `apiKey` and `API-KEY` are one. A key that ends so says what it
// holds (`dbPassword`, `stripe_api_key`); one that goes on says something about it (`passwordChangedAt`, `tokenCount`).
const SECRET_ENDS = (
  'password passwd passphrase pwd secret secretkey token apikey accesskey privatekey sshkey encryptionkey signingkey ' +
  'credentials connectionstring creditcard creditcardnumber cardnumber cvv cvc cvv2 ssn socialsecuritynumber'
).split(' ')
/** Too common as the end of harmless keys: `checkoutSessionId`. */
const SECRET_KEYS = new Set(['authorization', 'cookie', 'setcookie', 'sessionid'])
const HARMLESS_ENDS = ['pagetoken', 'cursortoken', 'continuationtoken', 'synctoken']
/** Most keys are told harmless by their last two letters, without making another string of them. */
const SECRET_TAILS = new Set([...SECRET_ENDS, ...SECRET_KEYS].map((end) => end.slice(-2)))
const SECRET_CHARS_MAX = 64

function looksSecret(key: string): boolean {
  if (key.length > SECRET_CHARS_MAX || !SECRET_TAILS.has(key.slice(-2).toLowerCase())) return false
  const plain = key.replaceAll(/[_-]/g, '').toLowerCase()
  if (SECRET_KEYS.has(plain)) return true
  const endsIn = (end: string): boolean => plain.endsWith(end)
  return SECRET_ENDS.some(endsIn) && !HARMLESS_ENDS.some(endsIn)
}

function guardSecrets(root: Json, what: string, guard: SecretGuard | undefined): readonly string[] {
  const allow = new Set(guard?.allow)
  const paths: string[] = []
  eachField(root, [], (key, item, path) => {
    // `token: null` and `password: true` tell nothing.
    if (item === null || item === '' || typeof item === 'boolean' || !looksSecret(key) || allow.has(key)) return
    const text = pathText(what, path)
    if (!allow.has(text) && paths.length < WARNINGS_MAX) paths.push(text)
  })
  if (paths.length > 0 && guard?.mode === 'refuse') {
    const advice = 'pass a reference to the secret, or list the field in secrets.allow'
    const message = `${paths.join(', ')} looks like a secret: ${advice}`
    throw new MillraceError('PAYLOAD_SECRET', message, { details: { paths } })
  }
  return paths.map((path) => `${path} looks like a secret and will be stored as plain text; pass a reference instead`)
}

/** `payload.items[3].price`; keys that are no plain words are quoted, and none is longer than it is useful. */
function pathText(what: string, steps: Steps): string {
  const parts = steps.map((step) => {
    if (typeof step === 'number') return `[${step}]`
    return /^[A-Za-z_$][\w$]{0,60}$/.test(step) ? `.${step}` : `[${JSON.stringify(step.slice(0, 60))}]`
  })
  return `${what}${parts.join('')}`
}

function notJson(path: string, reason: string): MillraceError {
  return new MillraceError('PAYLOAD_NOT_JSON', `${path} ${reason}`, { details: { path } })
}

function tooLarge(size: string, what: string, { maxBytes, code }: EncodeOptions): MillraceError {
  const advice = 'store the content elsewhere and pass its address (the claim-check pattern)'
  const message = `${what} has ${size} bytes, but at most ${maxBytes} are allowed: ${advice}`
  return new MillraceError(code, message, { details: { size, maxBytes } })
}
