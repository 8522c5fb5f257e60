import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { toAttemptError } from './attempt-error.ts'
import { MillraceError } from './errors.ts'
import { LIMITS } from './limits.ts'

const encodedBytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

describe('toAttemptError', () => {
  test('D7 keeps name, message, code, class and stack', () => {
    const kept = toAttemptError(new MillraceError('JOB_TIMEOUT', 'too slow'), 'timeout')
    expect(kept).toMatchObject({ name: 'MillraceError', message: 'too slow', code: 'JOB_TIMEOUT', class: 'timeout' })
    expect(kept.stack).toContain('attempt-error.test.ts')
  })

  test('D7 the chain of causes is folded into the stack, five deep', () => {
    let error = new Error('level 9')
    for (let level = 8; level >= 0; level--) error = new Error(`level ${level}`, { cause: error })
    const { stack } = toAttemptError(error, 'unknown')
    expect(stack).toContain('[cause] Error: level 1')
    expect(stack?.match(/\[cause\]/g)?.length).toBeLessThanOrEqual(5)
    expect(stack).not.toContain('level 6')
  })

  test('a cause that is no error and a cause that points back are harmless', () => {
    expect(toAttemptError(new Error('x', { cause: 'disk full' }), 'unknown').stack).toContain(
      '[cause] NonError: disk full',
    )
    const loop = new Error('loop')
    loop.cause = loop
    expect(encodedBytes(toAttemptError(loop, 'unknown'))).toBeLessThanOrEqual(LIMITS.errorBytesMax)
  })

  test.each([
    [undefined, 'NonError', 'undefined was thrown'],
    [null, 'NonError', 'null was thrown'],
    ['plain text', 'NonError', 'plain text'],
    [42, 'NonError', '42 was thrown'],
    [Symbol('s'), 'NonError', 'Symbol(s) was thrown'],
    [10n, 'NonError', '10 was thrown'],
    [{ reason: 'no' }, 'NonError', '{"reason":"no"} was thrown'],
    [Object.freeze({ message: 'frozen', code: 'E1' }), 'Error', 'frozen'],
    [() => 1, 'NonError', 'a function was thrown'],
  ])('%s is kept as %s: %s', (thrown, name, message) => {
    expect(toAttemptError(thrown, 'unknown')).toMatchObject({ name, message })
  })

  test('objects that fight back are still kept', () => {
    const trap = (): never => {
      throw new Error('trap')
    }
    const { proxy: revoked, revoke } = Proxy.revocable({}, {})
    revoke()
    const handler = { get: trap, getPrototypeOf: trap, ownKeys: trap, has: trap, getOwnPropertyDescriptor: trap }
    const getters = Object.defineProperties({}, { message: { get: trap }, stack: { get: trap }, cause: { get: trap } })
    for (const thrown of [new Proxy({}, handler), revoked, getters, { toJSON: trap }, Object.create(null)]) {
      expect(toAttemptError(thrown, 'unknown').name).toBe('NonError')
    }
  })

  test('a huge message is cut with a mark and the frames survive', () => {
    const error = new Error('x'.repeat(1_000_000))
    const kept = toAttemptError(error, 'unknown')
    expect(kept.message).toMatch(/\.\.\. \[truncated\]$/)
    expect(kept.stack).toContain('attempt-error.test.ts')
  })

  test('characters that a store refuses are replaced', () => {
    const kept = toAttemptError(new Error('a\0b\ud800c'), 'unknown')
    expect(kept.message).toBe('a\uFFFDb\uFFFDc')
  })

  test('whatever is thrown, the encoded error fits and holds no NUL and no lone surrogate', () => {
    const text = fc.string({ unit: 'binary', maxLength: 30_000, size: 'max' })
    const thrown = fc.oneof(
      fc.anything(),
      fc.record({ name: text, message: text, code: text, stack: text, cause: fc.record({ stack: text }) }),
    )
    fc.assert(
      fc.property(thrown, (value) => {
        const kept = toAttemptError(value, 'rate-limited')
        expect(encodedBytes(kept)).toBeLessThanOrEqual(LIMITS.errorBytesMax)
        expect(JSON.stringify(kept)).not.toMatch(/\\u0000|\\ud[89a-f]/)
      }),
      { numRuns: 50 },
    )
  })
})
