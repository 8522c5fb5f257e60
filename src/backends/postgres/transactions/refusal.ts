// The error for whatever is no open transaction: it says what was passed and shows the line that was meant.
import { MillraceError } from '../../../core/errors.ts'
import type { Candidate } from './candidate.ts'
import { hasMethods, property } from './shape.ts'

const KEYS_SHOWN_MAX = 5

export function notATransaction(
  { library, example }: Pick<Candidate, 'library' | 'example'>,
  problem: string,
  cause?: unknown,
): MillraceError {
  return new MillraceError('NOT_A_TRANSACTION', `${problem}; pass an open transaction: \`${example}\``, {
    cause,
    details: { library },
  })
}

/** For a value of no library that is known here. */
export function unknownTransaction(value: unknown, libraries: readonly string[]): MillraceError {
  const message = `${described(value)} is not a transaction; pass an open one of ${libraries.join(', ')}`
  return new MillraceError('NOT_A_TRANSACTION', message, { details: { library: null } })
}

/** The kind of thing it is, and never what it holds. */
function described(value: unknown): string {
  if (value === undefined || value === null) return String(value)
  if (hasMethods(value, 'then')) return 'a promise (await it first)'
  if (typeof value === 'function') return value.name === '' ? 'a function' : `the function ${value.name}`
  if (typeof value !== 'object') return `a ${typeof value}`
  const name = property(property(value, 'constructor'), 'name')
  if (typeof name === 'string' && name !== '' && name !== 'Object') return `an object of class ${name}`
  const keys = Object.keys(value)
  const more = keys.length > KEYS_SHOWN_MAX ? ', …' : ''
  return keys.length === 0 ? 'an empty object' : `an object with ${keys.slice(0, KEYS_SHOWN_MAX).join(', ')}${more}`
}
