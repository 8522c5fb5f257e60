// What is kept of an error once its run is over: plain text of bounded size, whatever was thrown.
// It is stored as JSON in every backend, so the bound is on the encoded bytes, and characters that a
// store would refuse (NUL, lone surrogates) are replaced.

import { CAUSES_MAX, type ErrorClass, nextCause, readField } from './classify.ts'
import { LIMITS } from './limits.ts'

export interface AttemptError {
  readonly name: string
  readonly message: string
  readonly class: ErrorClass
  readonly code?: string
  readonly stack?: string
}

const MARK = '... [truncated]'
const NAME_BYTES_MAX = 200
const MESSAGE_BYTES_MAX = 4 * 1024
const STACK_HEAD_BYTES_MAX = 1024
const STACK_PART_BYTES_MAX = 6 * 1024
/** Keys, quotes, commas and the class of the encoded object. */
const FRAME_BYTES = 200
const STACK_BYTES_MAX = LIMITS.errorBytesMax - MESSAGE_BYTES_MAX - 2 * NAME_BYTES_MAX - FRAME_BYTES

/** Never throws: getters that throw, proxies and frozen objects are read as far as they allow. */
export function toAttemptError(thrown: unknown, errorClass: ErrorClass): AttemptError {
  const code = readField(thrown, 'code')
  const stack = stackWithCauses(thrown)
  return {
    name: clipped(nameOf(thrown), NAME_BYTES_MAX),
    message: clipped(messageOf(thrown), MESSAGE_BYTES_MAX),
    class: errorClass,
    ...(typeof code === 'string' && code !== '' && { code: clipped(code, NAME_BYTES_MAX) }),
    ...(stack !== '' && { stack: clipped(stack, STACK_BYTES_MAX) }),
  }
}

function nameOf(thrown: unknown): string {
  const name = readField(thrown, 'name')
  if (typeof name === 'string' && name !== '' && typeof thrown === 'object') return name
  return typeof readField(thrown, 'message') === 'string' ? 'Error' : 'NonError'
}

function messageOf(thrown: unknown): string {
  const message = readField(thrown, 'message')
  if (typeof message === 'string' && message !== '') return message
  if (typeof thrown === 'string') return thrown
  const code = readField(thrown, 'code')
  // Node reports a refused connection to several addresses as an AggregateError without a message.
  if (typeof code === 'string' && code !== '') return code
  if (message === '') return ''
  return `${described(thrown)} was thrown`
}

function described(thrown: unknown): string {
  if (typeof thrown === 'function') return 'a function'
  if (thrown === null || typeof thrown !== 'object') return String(thrown)
  try {
    return JSON.stringify(thrown) ?? 'an object'
  } catch {
    return 'an object that cannot be shown'
  }
}

/** The stack, then the stacks of up to five causes, each under its own line. */
function stackWithCauses(thrown: unknown): string {
  let text = stackOf(thrown)
  let cause = nextCause(thrown)
  for (let depth = 1; depth <= CAUSES_MAX && cause !== undefined && cause !== null; depth++) {
    const part = stackOf(cause) || `${nameOf(cause)}: ${clipped(messageOf(cause), STACK_HEAD_BYTES_MAX)}`
    text += `${text === '' ? '' : '\n'}[cause] ${part}`
    cause = nextCause(cause)
  }
  return text
}

/** A stack repeats the message first. A huge message is cut there, so that the frames survive. */
function stackOf(thrown: unknown): string {
  const stack = readField(thrown, 'stack')
  if (typeof stack !== 'string') return ''
  const frames = stack.indexOf('\n    at ')
  if (frames <= STACK_HEAD_BYTES_MAX / 2) return clipped(stack, STACK_PART_BYTES_MAX)
  return clipped(clipped(stack.slice(0, frames), STACK_HEAD_BYTES_MAX) + stack.slice(frames), STACK_PART_BYTES_MAX)
}

/** The longest start of the text whose JSON encoding fits, with a mark when something is missing. */
function clipped(text: string, bytesMax: number): string {
  let bytes = 0
  let markAt = 0
  let index = 0
  for (; index < text.length;) {
    const point = text.codePointAt(index) ?? 0
    bytes += jsonBytes(point)
    if (bytes > bytesMax) return clean(text.slice(0, markAt)) + MARK
    index += point > 0xffff ? 2 : 1
    if (bytes <= bytesMax - MARK.length) markAt = index
  }
  return clean(text)
}

function jsonBytes(point: number): number {
  if (point < 0x20) return 6
  if (point === 0x22 || point === 0x5c) return 2
  if (point < 0x80) return 1
  if (point < 0x800) return 2
  return point > 0xffff ? 4 : 3
}

/** Without what no store takes: NUL, and halves of a surrogate pair. */
export function clean(text: string): string {
  return text.replaceAll('\0', '\uFFFD').replace(/\p{Cs}/gu, '\uFFFD')
}
