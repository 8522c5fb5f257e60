// What may be a name, a key, a tag, an option or a count. Everything that enters Millrace from a
// caller passes here first, so that stores and logs only ever see harmless strings.

import { MillraceError } from './errors.ts'
import { LIMITS } from './limits.ts'

export type NamedThing = 'queue' | 'job' | 'schedule' | 'batch' | 'connection' | 'pool' | 'rule' | 'sink'

const NAME = new RegExp(`^[A-Za-z0-9][A-Za-z0-9_.:-]{0,${LIMITS.nameCharsMax - 1}}$`)

// Lone surrogates too: UTF-8 drivers replace them, and two different keys would become one.
const UNPRINTABLE = /[\p{Cc}\p{Cs}]/u

const SHOWN_CHARS_MAX = 60
const SUGGESTED_CHARS_MAX = 40

export function checkName(value: unknown, what: NamedThing): string {
  if (typeof value === 'string' && NAME.test(value)) return value
  throw new MillraceError(
    'INVALID_NAME',
    `${shown(value)} cannot be the name of a ${what}: use 1-${LIMITS.nameCharsMax} letters, digits and _ . : - ` +
      `that start with a letter or digit`,
    { details: { what } },
  )
}

/** A unique, group or limit key, or a tag. */
export function checkKey(value: unknown, what: string): string {
  if (typeof value === 'string' && value.length > 0 && value.length <= LIMITS.keyCharsMax && !UNPRINTABLE.test(value)) {
    return value
  }
  throw new MillraceError(
    'INVALID_KEY',
    `${shown(value)} cannot be a ${what}: use 1-${LIMITS.keyCharsMax} characters without control characters; ` +
      `hash longer values first`,
    { details: { what } },
  )
}

/** Tags without duplicates, in the order in which they first appear. */
export function checkTags(value: unknown): readonly string[] {
  if (!Array.isArray(value)) throw invalidOption('tags', value, 'an array of strings')
  const tags = new Set<string>()
  for (const tag of value as readonly unknown[]) {
    tags.add(checkKey(tag, 'tag'))
    if (tags.size > LIMITS.tagsMax) throw invalidOption('tags', value.length, `at most ${LIMITS.tagsMax} tags`)
  }
  return [...tags]
}

/** A misspelt option must not be silently ignored: it is refused, with the likely spelling. */
export function checkKnownOptions(options: object, allowed: readonly string[], what: string): void {
  if (options === null || typeof options !== 'object' || Array.isArray(options)) {
    throw new MillraceError('INVALID_OPTION', `${what} must be an object of options, not ${shown(options)}`)
  }
  for (const option of Object.keys(options)) {
    if (allowed.includes(option)) continue
    const near = nearest(option, allowed)
    const hint = near === undefined ? `known: ${allowed.join(', ')}` : `did you mean ${near}?`
    throw new MillraceError('INVALID_OPTION', `${what} has no option ${shown(option)}: ${hint}`, {
      details: { option: option.slice(0, SHOWN_CHARS_MAX) },
    })
  }
}

export function checkInteger(value: unknown, what: string, min: number, max: number): number {
  if (typeof value === 'number' && Number.isSafeInteger(value) && value >= min && value <= max) return value
  throw invalidOption(what, value, `a whole number from ${min} to ${max}`)
}

export function invalidOption(option: string, value: unknown, accepted: string): MillraceError {
  return new MillraceError('INVALID_OPTION', `${option} is ${shown(value)}, but must be ${accepted}`, {
    details: { option },
  })
}

/** A value as it may stand in a message: quoted, short, and safe whatever the caller passed. */
export function shown(value: unknown): string {
  if (typeof value === 'string') {
    return value.length <= SHOWN_CHARS_MAX
      ? JSON.stringify(value)
      : `${JSON.stringify(value.slice(0, SHOWN_CHARS_MAX))}... (${value.length} characters)`
  }
  if (value === null) return 'null'
  if (Array.isArray(value)) return 'an array'
  if (typeof value === 'object') return 'an object'
  if (typeof value === 'function') return 'a function'
  return String(value as number | bigint | boolean | symbol | undefined)
}

function nearest(option: string, allowed: readonly string[]): string | undefined {
  if (option.length > SUGGESTED_CHARS_MAX) return undefined
  const plain = option.toLowerCase()
  const ranked = allowed
    .map((name) => ({ name, distance: editDistance(plain, name.toLowerCase()) }))
    // Two slips in a long word are a slip; two slips in a three-letter word are another word.
    .filter(({ name, distance }) => distance <= Math.min(2, Math.floor(name.length / 3)))
    .sort((a, b) => a.distance - b.distance)
  return ranked[0]?.name
}

/** Levenshtein, two rows. */
function editDistance(a: string, b: string): number {
  let previous = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const replaced = previous[column - 1]! + (a[row - 1] === b[column - 1] ? 0 : 1)
      current.push(Math.min(replaced, previous[column]! + 1, current[column - 1]! + 1))
    }
    previous = current
  }
  return previous[b.length]!
}
