import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { classify, ERROR_CLASSES } from './classify.ts'
import { MillraceError } from './errors.ts'

const withFields = (fields: object, message = 'boom') => Object.assign(new Error(message), fields)
const NOW_MS = Date.parse('2026-03-01T12:00:00Z')

describe('D6 built-in rules', () => {
  test.each(['ECONNREFUSED', 'ECONNRESET', 'ETIMEDOUT', 'EPIPE', 'EAI_AGAIN', 'ENOTFOUND', 'UND_ERR_SOCKET'])(
    'D6 %s is network and follows the policy',
    (code) => {
      expect(classify(withFields({ code }))).toEqual({ class: 'network', retry: 'policy' })
    },
  )

  test('D6 timeouts follow the policy', () => {
    const errors = [
      new DOMException('too slow', 'TimeoutError'),
      new MillraceError('JOB_TIMEOUT', 'x'),
      withFields({ status: 408 }),
      withFields({ code: 'ECONNABORTED' }),
    ]
    for (const error of errors) expect(classify(error)).toEqual({ class: 'timeout', retry: 'policy' })
  })

  test.each([
    [{ status: 500 }, 'server', 'policy'],
    [{ statusCode: 503 }, 'server', 'policy'],
    [{ response: { status: 502 } }, 'server', 'policy'],
    [{ $metadata: { httpStatusCode: 500 } }, 'server', 'policy'],
    [{ status: 429 }, 'rate-limited', 'policy'],
    [{ status: 404 }, 'client', 'never'],
    [{ response: { status: 400 } }, 'client', 'never'],
    [{ status: 200 }, 'unknown', 'policy'],
    [{ status: 14 }, 'unknown', 'policy'],
    [{ status: 'rejected' }, 'unknown', 'policy'],
  ])('D6 %j is %s, retry %s', (fields, errorClass, retry) => {
    expect(classify(withFields(fields))).toEqual({ class: errorClass, retry })
  })

  test.each([
    [{ code: 'ENOMEM' }, 'x'],
    [{ code: 'ENOSPC' }, 'x'],
    [{ code: 'EMFILE' }, 'x'],
    [{ code: 'ERR_WORKER_OUT_OF_MEMORY' }, 'x'],
    [{}, 'FATAL ERROR: JavaScript heap out of memory'],
  ])('D6 resource exhaustion %j waits 30 minutes', (fields, message) => {
    expect(classify(withFields(fields, message))).toEqual({ class: 'resource', retry: { afterMs: 1_800_000 } })
  })

  test('D6 validation errors are never retried', () => {
    const errors = [
      z.object({ id: z.number() }).safeParse({ id: 'x' }).error,
      withFields({ issues: [{ message: 'id is required' }] }),
      withFields({ name: 'ValidationError' }),
      new MillraceError('INVALID_PAYLOAD', 'x'),
      new MillraceError('PAYLOAD_NOT_JSON', 'x'),
      new MillraceError('RESULT_TOO_LARGE', 'x'),
      withFields({ name: 'ValidationError', status: 400 }),
    ]
    for (const error of errors) expect(classify(error)).toEqual({ class: 'validation', retry: 'never' })
  })

  test('D6 a 503 that lists issues is still a server error', () => {
    expect(classify(withFields({ status: 503, issues: [] })).class).toBe('server')
  })

  test('D6 bugs and odd throws are unknown: retried, or failed by option', () => {
    for (const error of [new TypeError('x'), new SyntaxError('x'), undefined, null, 'text', 7, {}, () => 1]) {
      expect(classify(error)).toEqual({ class: 'unknown', retry: 'policy' })
      expect(classify(error, { unknown: 'fail' })).toEqual({ class: 'unknown', retry: 'never' })
    }
  })

  test('D6 the cause decides when the outer error says nothing', () => {
    const fetchFailed = new TypeError('fetch failed', { cause: withFields({ code: 'UND_ERR_CONNECT_TIMEOUT' }) })
    expect(classify(new Error('sync failed', { cause: fetchFailed })).class).toBe('network')
    expect(classify(withFields({ status: 404, cause: withFields({ code: 'EPIPE' }) })).class).toBe('client')
    expect(classify(new AggregateError([withFields({ code: 'ECONNREFUSED' })])).class).toBe('network')
  })

  test('a chain of causes that never ends is cut off', () => {
    const loop = withFields({})
    loop.cause = loop
    expect(classify(loop).class).toBe('unknown')
  })
})

describe('D6 Retry-After', () => {
  const after = (headers: unknown, nowMs?: number) =>
    classify({ status: 429, headers }, nowMs === undefined ? {} : { nowMs }).retry

  test('D6 seconds are read from plain objects, Headers and Maps, in any spelling', () => {
    for (const headers of [
      { 'retry-after': '7' },
      { 'Retry-After': 7 },
      { 'RETRY-AFTER': ['7'] },
      new Headers({ 'Retry-After': '7' }),
      new Map([['Retry-After', '7']]),
      new Map([['retry-after', '7']]),
    ]) {
      expect(after(headers)).toEqual({ afterMs: 7_000 })
    }
    expect(classify({ response: { status: 429, headers: { 'retry-after': '2' } } }).retry).toEqual({ afterMs: 2_000 })
  })

  test('D6 an HTTP date counts from now, and one in the past means at once', () => {
    expect(after({ 'retry-after': 'Sun, 01 Mar 2026 12:01:30 GMT' }, NOW_MS)).toEqual({ afterMs: 90_000 })
    expect(after({ 'retry-after': 'Sun, 01 Mar 2026 11:00:00 GMT' }, NOW_MS)).toEqual({ afterMs: 0 })
    expect(after({ 'retry-after': 'Sun, 01 Mar 2026 12:01:30 GMT' })).toBe('policy')
  })

  test('an epoch or a joke of a header parks the job for a day at most; junk is ignored', () => {
    expect(after({ 'retry-after': '1767225600' })).toEqual({ afterMs: 86_400_000 })
    for (const junk of ['-5', 'soon', '', 'Infinity', '1e9', {}, null, Number.NaN]) {
      expect(after({ 'retry-after': junk }, NOW_MS)).toBe('policy')
    }
    const hostile = { get: () => { throw new Error('no') } } // prettier-ignore
    expect(after(hostile)).toBe('policy')
  })

  test('a 503 may say when to come back as well', () => {
    expect(classify({ status: 503, headers: { 'retry-after': '5' } })).toEqual({
      class: 'server',
      retry: { afterMs: 5_000 },
    })
  })
})

describe('D6 custom classifiers', () => {
  const error = withFields({ code: 'ECONNRESET' })

  test('D6 the first answer wins and gaps are filled by the built-in rules', () => {
    expect(classify(error, { custom: [() => undefined, () => 'permanent', () => 'server'] })).toEqual({
      class: 'permanent',
      retry: 'never',
    })
    expect(classify(error, { custom: [() => ({ retry: 'never' })] })).toEqual({ class: 'network', retry: 'never' })
    expect(classify(error, { custom: [() => ({ class: 'resource' })] }).retry).toEqual({ afterMs: 1_800_000 })
    expect(classify(error, { custom: [() => ({ class: 'server', retry: { afterMs: 10 } })] })).toEqual({
      class: 'server',
      retry: { afterMs: 10 },
    })
  })

  test('D6 one that throws or answers nonsense is ignored', () => {
    const broken = () => { throw new Error('classifier bug') } // prettier-ignore
    const nonsense = (() => 'toString') as never
    const nan = () => ({ retry: { afterMs: Number.NaN } })
    expect(classify(error, { custom: [broken, nonsense, nan] })).toEqual({ class: 'network', retry: 'policy' })
  })

  test('an explicit decision about an unknown error beats the option', () => {
    expect(classify({}, { unknown: 'fail', custom: [() => ({ retry: { afterMs: 5 } })] }).retry).toEqual({ afterMs: 5 })
    expect(classify({}, { unknown: 'fail', custom: [() => 'server'] }).retry).toBe('policy')
  })
})

test('whatever is thrown, the verdict is well formed', () => {
  const hostile = new Proxy({}, { get: () => { throw new Error('trap') } }) // prettier-ignore
  fc.assert(
    fc.property(fc.oneof(fc.anything({ withNullPrototype: true }), fc.constant(hostile)), (thrown) => {
      const verdict = classify(thrown, { nowMs: NOW_MS })
      expect(ERROR_CLASSES).toContain(verdict.class)
    }),
  )
})
