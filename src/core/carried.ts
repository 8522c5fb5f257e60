// What travels with a job in its metadata and is not its user's: the trace context of whoever enqueued it. One reserved key,
// which users can neither set nor see; retries and replays keep it.
import { invalidOption } from './names.ts'
import type { Json, JsonText } from './json.ts'
import { decodePayload } from './payload.ts'

/** Names and values as a propagator of OpenTelemetry writes them: traceparent, tracestate. */
export type Carried = Readonly<Record<string, string>>

const KEY = '$millrace'
const MARK = `"${KEY}"`
/** The least that a tracestate must be allowed to have. */
const VALUE_CHARS_MAX = 512
const VALUES_MAX = 8

/** `meta` is the text of an object. */
export function withCarried(meta: JsonText | undefined, carried: Carried): JsonText {
  const kept = Object.entries(carried).filter(([, value]) => value.length <= VALUE_CHARS_MAX)
  const own = `{${MARK}:${JSON.stringify(Object.fromEntries(kept.slice(0, VALUES_MAX)))}`
  return meta === undefined || meta === '{}' ? `${own}}` : `${own},${meta.slice(1)}`
}

/** Null: nothing came along. */
export function carriedIn(meta: JsonText | null): Carried | null {
  if (meta === null || !meta.includes(MARK)) return null
  const own = fieldsOf(meta)?.[KEY]
  if (typeof own !== 'object' || own === null) return null
  // Plain SQL may have written anything.
  return Object.fromEntries(
    Object.entries(own).filter((entry): entry is [string, string] => typeof entry[1] === 'string'),
  )
}

/** The metadata as its user gave it. */
export function userMeta(meta: JsonText | null): Json | null {
  if (meta === null) return null
  const value = decodePayload(meta)
  if (!meta.includes(MARK) || typeof value !== 'object' || value === null || Array.isArray(value)) return value
  // Not an array, so an object.
  const { [KEY]: _, ...own } = value as { readonly [key: string]: Json }
  return Object.keys(own).length === 0 ? null : own
}

/** Users must not write what they cannot see. */
export function checkMetaKeys(meta: object): void {
  if (Object.hasOwn(meta, KEY)) throw invalidOption(`meta.${KEY}`, KEY, 'another key: this one is reserved')
}

function fieldsOf(meta: JsonText): { readonly [key: string]: Json } | undefined {
  const value = decodePayload(meta)
  // As in userMeta.
  return typeof value === 'object' && value !== null && !Array.isArray(value)
    ? (value as { readonly [key: string]: Json })
    : undefined
}
