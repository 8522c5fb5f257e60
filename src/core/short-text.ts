// Texts and keys that come from anywhere, cut to a length in a way that every store and receiver takes: no half of a surrogate
// pair is left at the cut, and two long keys do not become one.
import { clean } from './attempt-error.ts'

export function shortText(text: string, charsMax: number): string {
  return clean(text.slice(0, charsMax))
}

/** As it is while it fits; otherwise its beginning and a hash of all of it. */
export function shortKey(text: string, charsMax: number): string {
  return text.length <= charsMax ? text : `${shortText(text, charsMax - HASH_CHARS - 1)}~${hashOf(text)}`
}

const HASH_CHARS = 8

/** FNV-1a: only to tell two long names apart. */
function hashOf(text: string): string {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index++) hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193)
  return (hash >>> 0).toString(16).padStart(HASH_CHARS, '0')
}
