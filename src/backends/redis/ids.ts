// Ids as Redis keeps them inside a queue: 16 bytes each (lua/_ids.lua). Made and read many at once.
import type { JobId } from '../../core/job.ts'

const ID_BYTES = 16
const ID_CHARS = 36
const HYPHEN = 45
const HEX_DIGITS = Buffer.from('0123456789abcdef', 'latin1')

/** Of all of them, one after the other. */
export function bytesOf(ids: readonly string[]): Buffer {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex')
}

/** A text that is no id becomes fewer bytes, which no job has. */
export function idBytes(id: string): Buffer {
  return bytesOf([id])
}

/** Each a text of its own, not a part of a longer one or of several: they are kept, and looked up many times. */
export function textsOf(bytes: Buffer): readonly JobId[] {
  const count = Math.floor(bytes.length / ID_BYTES)
  const text = Buffer.allocUnsafe(count * ID_CHARS)
  const ids: JobId[] = []
  let at = 0
  for (let index = 0; index < count; index++) {
    const from = at
    for (let part = 0; part < ID_BYTES; part++) {
      const byte = bytes[index * ID_BYTES + part]!
      if (part === 4 || part === 6 || part === 8 || part === 10) text[at++] = HYPHEN
      text[at++] = HEX_DIGITS[byte >>> 4]!
      text[at++] = HEX_DIGITS[byte & 15]!
    }
    ids.push(text.toString('latin1', from, at) as JobId) // as inserted
  }
  return ids
}
