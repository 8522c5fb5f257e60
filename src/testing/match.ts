// Does a value have what a test asks for? Objects may have more fields than asked for, arrays may not have
// more items; matchers of the runner (`expect.any(String)`) are asked. Differences are told by path.
import { inspect } from 'node:util'

/** Any part of it, at any depth. */
export type DeepPartial<Value> = Value extends readonly (infer Item)[]
  ? readonly DeepPartial<Item>[]
  : Value extends object
    ? { readonly [Field in keyof Value]?: DeepPartial<Value[Field]> }
    : Value

/** Where the value differs from what was asked for; none: it matches. */
export function mismatches(actual: unknown, asked: unknown, path = ''): readonly string[] {
  const differs = (): readonly string[] => [
    `${path || 'input'}: expected ${shownValue(asked)}, got ${actual === undefined ? 'nothing' : shownValue(actual)}`,
  ]
  if (isMatcher(asked)) return asked.asymmetricMatch(actual) ? [] : differs()
  if (typeof asked !== 'object' || asked === null) return Object.is(actual, asked) ? [] : differs()
  if (typeof actual !== 'object' || actual === null || Array.isArray(actual) !== Array.isArray(asked)) return differs()
  if (Array.isArray(actual) && Array.isArray(asked) && actual.length !== asked.length) return differs()
  return Object.entries(asked).flatMap(([key, value]) => {
    const below = Array.isArray(asked) ? `${path}[${key}]` : path === '' ? key : `${path}.${key}`
    return mismatches((actual as Readonly<Record<string, unknown>>)[key], value, below)
  })
}

interface Matcher {
  asymmetricMatch(value: unknown): boolean
  /** `Any<String>` */
  toAsymmetricMatcher?(): string
}

function isMatcher(value: unknown): value is Matcher {
  return (
    typeof value === 'object' &&
    value !== null &&
    'asymmetricMatch' in value &&
    typeof value.asymmetricMatch === 'function'
  )
}

const SHOWN_CHARS_MAX = 300

/** A value in a message: as JSON, of bounded length. */
export function shownValue(value: unknown): string {
  const text = textOf(value)
  return text.length <= SHOWN_CHARS_MAX ? text : `${text.slice(0, SHOWN_CHARS_MAX)}… (${text.length} characters)`
}

function textOf(value: unknown): string {
  if (isMatcher(value)) return value.toAsymmetricMatcher?.() ?? 'a matcher'
  try {
    const replace = (_: string, item: unknown): unknown => (isMatcher(item) ? textOf(item) : item)
    return JSON.stringify(value, replace) ?? inspect(value)
  } catch {
    // A circle or a BigInt in what the test asks for.
    return inspect(value)
  }
}
