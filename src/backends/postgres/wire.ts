// Array parameters in PostgreSQL's binary form. Written as text, every quote of a payload would be escaped
// here and unescaped there; the driver sends a Buffer as it is.

const UUID_OID = 2950
const TEXT_OID = 25
const INT4_OID = 23
const INT8_OID = 20
const HEADER_BYTES = 20

export function uuidArray(ids: readonly string[]): Buffer {
  const { buffer, offset } = header(UUID_OID, ids.length, ids.length * 20, false)
  // As one text and then by byte: a character of each id by itself costs twice as much, and four times where the ids are parts
  // of other strings, as those of tokens are. The hyphens taken out and the rest decoded by Buffer cost as much as that.
  const text = Buffer.from(ids.join(''), 'latin1')
  for (const id of ids) if (id.length !== UUID_CHARS) throw new Error(`an id of ${id.length} characters: ${id}`)
  let at = offset
  for (let index = 0; index < ids.length; index++) {
    let from = index * UUID_CHARS
    at = buffer.writeInt32BE(16, at)
    for (const end = at + 16; at < end; at++) {
      if (text[from] === HYPHEN) from += 1
      buffer[at] = (HEX_VALUES[text[from]!]! << 4) | HEX_VALUES[text[from + 1]!]!
      from += 2
    }
  }
  return buffer
}

const UUID_CHARS = 36
const HYPHEN = 45
const HEX_VALUES = Uint8Array.from({ length: 256 }, (_, code) => {
  const value = Number.parseInt(String.fromCharCode(code), 16)
  return Number.isNaN(value) ? 0 : value
})

export function textArray(texts: readonly (string | null)[]): Buffer {
  let bytes = texts.length * 4
  let hasNull = false
  for (const text of texts) {
    if (text === null) hasNull = true
    else bytes += Buffer.byteLength(text)
  }
  const { buffer, offset } = header(TEXT_OID, texts.length, bytes, hasNull)
  let at = offset
  for (const text of texts) {
    if (text === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    const length = buffer.write(text, at + 4)
    buffer.writeInt32BE(length, at)
    at += 4 + length
  }
  return buffer
}

export function intArray(numbers: readonly (number | null)[]): Buffer {
  const { buffer, offset } = header(INT4_OID, numbers.length, numbers.length * 8, numbers.includes(null))
  let at = offset
  for (const number of numbers) {
    if (number === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    buffer.writeInt32BE(4, at)
    at = buffer.writeInt32BE(number, at + 4)
  }
  return buffer.subarray(0, at)
}

export function bigintArray(numbers: readonly (number | null)[]): Buffer {
  const { buffer, offset } = header(INT8_OID, numbers.length, numbers.length * 12, numbers.includes(null))
  let at = offset
  for (const number of numbers) {
    if (number === null) {
      at = buffer.writeInt32BE(-1, at)
      continue
    }
    buffer.writeInt32BE(8, at)
    // Whole numbers below 2^53, negative ones too: two halves are quicker than a BigInt.
    buffer.writeInt32BE(Math.floor(number / 0x1_0000_0000), at + 4)
    at = buffer.writeUInt32BE(number - Math.floor(number / 0x1_0000_0000) * 0x1_0000_0000, at + 8)
  }
  return buffer.subarray(0, at)
}

/** One dimension from 1; an empty array has none. */
function header(elementOid: number, count: number, bytes: number, hasNull: boolean) {
  const buffer = Buffer.allocUnsafe(HEADER_BYTES + bytes)
  if (count === 0) {
    buffer.writeInt32BE(0, 0)
    buffer.writeInt32BE(0, 4)
    buffer.writeInt32BE(elementOid, 8)
    return { buffer: buffer.subarray(0, 12), offset: 12 }
  }
  buffer.writeInt32BE(1, 0)
  buffer.writeInt32BE(hasNull ? 1 : 0, 4)
  buffer.writeInt32BE(elementOid, 8)
  buffer.writeInt32BE(count, 12)
  buffer.writeInt32BE(1, 16)
  return { buffer, offset: HEADER_BYTES }
}
