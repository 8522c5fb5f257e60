// Ids as Redis keeps them inside a queue: 16 bytes each (lua/_ids.lua). Made and read many at once.
import type { JobId } from '../../core/job.ts'

const ID_BYTES = 16
const HEX_CHARS = 2 * ID_BYTES

/** Of all of them, one after the other. */
export function bytesOf(ids: readonly string[]): Buffer {
  return Buffer.from(ids.join('').replaceAll('-', ''), 'hex')
}

/** A text that is no id becomes fewer bytes, which no job has. */
export function idBytes(id: string): Buffer {
  return bytesOf([id])
}

export function textsOf(bytes: Buffer): readonly JobId[] {
  const hex = bytes.toString('hex')
  const ids: JobId[] = []
  for (let at = 0; at < hex.length; at += HEX_CHARS) ids.push(textAt(hex, at) as JobId) // as inserted
  return ids
}

function textAt(hex: string, at: number): string {
  const [time, low] = [hex.slice(at, at + 8), hex.slice(at + 8, at + 12)]
  const [version, variant] = [hex.slice(at + 12, at + 16), hex.slice(at + 16, at + 20)]
  return `${time}-${low}-${version}-${variant}-${hex.slice(at + 20, at + HEX_CHARS)}`
}
