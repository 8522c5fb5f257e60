import fc from 'fast-check'
import { runInNewContext } from 'node:vm'
import { describe, expect, test } from 'vitest'
import { isMillraceError } from './errors.ts'
import { LIMITS } from './limits.ts'
import { decodePayload, encodePayload, type SecretGuard } from './payload.ts'

const options = { maxBytes: LIMITS.payloadBytesMax, code: 'PAYLOAD_TOO_LARGE' } as const
const encode = (value: unknown, secrets?: SecretGuard) =>
  encodePayload(value, 'payload', secrets === undefined ? options : { ...options, secrets })

function refusal(run: () => unknown): { code: string; message: string } {
  try {
    run()
  } catch (error) {
    if (isMillraceError(error)) return { code: error.code, message: error.message }
    throw error
  }
  return { code: 'accepted', message: '' }
}

function nested(levels: number): unknown {
  let value: unknown = 1
  for (let level = 0; level < levels; level++) value = { a: value }
  return value
}

const cyclic: Record<string, unknown> = { list: [{}] }
;(cyclic.list as Record<string, unknown>[])[0]!.owner = cyclic

class Money {
  readonly cents = 5
}

describe('J7 what JSON cannot carry is refused by field', () => {
  test.each<[unknown, string]>([
    [{ items: [1, 2, 3, { price: 5n }] }, 'payload.items[3].price is a BigInt'],
    [{ a: undefined }, 'payload.a is undefined'],
    [[1, undefined], 'payload[1] is undefined'],
    // oxlint-disable-next-line no-sparse-arrays
    [[1, , 2], 'payload[1] is undefined'],
    [undefined, 'payload is undefined'],
    [{ f: () => 1 }, 'payload.f is a function'],
    [{ s: Symbol('x') }, 'payload.s is a symbol'],
    [{ n: Number.NaN }, 'payload.n is NaN'],
    [{ n: -Infinity }, 'payload.n is -Infinity'],
    [{ at: new Date(0) }, 'payload.at is a Date; use toISOString()'],
    [{ m: new Map() }, 'payload.m is a Map, which JSON cannot carry; use Object.fromEntries(map)'],
    [{ m: new Set() }, 'payload.m is a Set, which JSON cannot carry; use [...set]'],
    [{ price: new Money() }, 'payload.price is a Money'],
    [{ bytes: new Uint8Array(2) }, 'payload.bytes is a Uint8Array'],
    [JSON.parse('{"a":{"__proto__":{"admin":true}}}'), 'payload.a.__proto__ is a key that could poison'],
    [cyclic, 'payload.list[0].owner points back to an object that contains it'],
    [nested(65), 'is nested deeper than 64 levels'],
    [{ text: 'a\0b' }, 'payload.text has a NUL character'],
    [{ 'k\0': 1 }, 'payload["k\\u0000"] is a key that has a NUL character'],
    [{ list: ['ok', '\ud83d'] }, 'payload.list[1] has a NUL character or half of a surrogate pair'],
    [{ 'strange key': { x: 1n } }, 'payload["strange key"].x is a BigInt'],
  ])('J7 case %#: %s', (value, message) => {
    const { code, message: said } = refusal(() => encode(value))
    expect(code).toBe('PAYLOAD_NOT_JSON')
    expect(said).toContain(message)
  })

  test('J7 getters and toJSON that throw are refused, with their error as cause', () => {
    const trap = (): never => {
      throw new Error('lazy field')
    }
    for (const value of [Object.defineProperty({}, 'a', { enumerable: true, get: trap }), { toJSON: trap }]) {
      expect(refusal(() => encode(value))).toEqual({
        code: 'PAYLOAD_NOT_JSON',
        message: 'payload cannot be read: lazy field',
      })
    }
  })

  test('J7 objects with toJSON are taken as what they say, and that is checked too', () => {
    expect(encode({ url: new URL('http://x/') }).text).toBe('{"url":"http://x/"}')
    expect(refusal(() => encode({ a: { toJSON: () => ({ b: 1n }) } })).message).toContain('payload.a.b is a BigInt')
  })

  test('objects without a prototype, of another realm, and backslashes before a u are fine', () => {
    const value = { plain: Object.assign(Object.create(null), { a: 1 }) as unknown, path: 'C:\\users', tab: '\t\u0001' }
    expect(JSON.parse(encode(value).text)).toEqual({ plain: { a: 1 }, path: 'C:\\users', tab: '\t\u0001' })
    expect(encode(runInNewContext('({ a: [1] })')).text).toBe('{"a":[1]}')
    expect(encode(nested(64)).text).toHaveLength(64 * 6 + 1)
  })
})

describe('J7 size', () => {
  test('J7 the error names size, limit and the claim-check pattern', () => {
    const { code, message } = refusal(() => encode({ text: 'x'.repeat(300_000) }))
    expect(code).toBe('PAYLOAD_TOO_LARGE')
    expect(message).toMatch(/^payload has 300011 bytes, but at most 262144 .* claim-check pattern/)
  })

  test('J7 the limit is in UTF-8 bytes and inclusive', () => {
    const limits = { maxBytes: 11, code: 'RESULT_TOO_LARGE' } as const
    expect(encodePayload('äää€', 'result', limits).text).toBe('"äää€"')
    expect(refusal(() => encodePayload('äää€x', 'result', limits)).code).toBe('RESULT_TOO_LARGE')
  })

  test('J7 shared references that would unfold for ever are refused at once', () => {
    let value: unknown = 'x'
    for (let level = 0; level < 50; level++) value = [value, value]
    expect(refusal(() => encode(value)).message).toMatch(/at least/)
    const text = 'x'.repeat(1_000_000)
    expect(refusal(() => encode(Array.from({ length: 100_000 }, () => text))).code).toBe('PAYLOAD_TOO_LARGE')
  })
})

describe('J7 secrets', () => {
  const value = {
    user: { Password: 'x', api_key: 'y', 'private-key': 'z' },
    cards: [{ cvv: 123 }],
    token: null,
    tokens: 5,
    passwordHint: 'cat',
  }
  const paths = ['payload.user.Password', 'payload.user.api_key', 'payload.user["private-key"]', 'payload.cards[0].cvv']

  test('J7 off by default', () => {
    expect(encode(value).warnings).toEqual([])
    expect(encode(value, { mode: 'off' }).warnings).toEqual([])
  })

  test('J7 warn names each field and never its value', () => {
    const { warnings } = encode(value, { mode: 'warn' })
    expect(warnings.map((warning) => warning.split(' ')[0])).toEqual(paths)
    expect(encode({ a: 1, list: [1] }, { mode: 'warn' }).warnings).toEqual([])
  })

  test.each([
    'userPassword',
    'dbPassword',
    'DB_PASSWORD',
    'stripe_api_key',
    'githubToken',
    'x-api-key',
    'clientSecret',
  ])('J7 a key that ends as a secret is one: %s', (key) => {
    expect(encode({ [key]: 'x' }, { mode: 'warn' }).warnings).toHaveLength(1)
    expect(encode({ [key]: 'x' }, { mode: 'warn', allow: [key] }).warnings).toEqual([])
  })

  test.each(['tokenCount', 'passwordChangedAt', 'tokens', 'secretary', 'nextPageToken', 'checkoutSessionId', 'key'])(
    'J7 a key that only speaks of one is none: %s',
    (key) => {
      expect(encode({ [key]: 'x' }, { mode: 'warn' }).warnings).toEqual([])
    },
  )

  test('J7 refuse refuses, except for what is allowed by key or by path', () => {
    expect(refusal(() => encode(value, { mode: 'refuse' }))).toMatchObject({ code: 'PAYLOAD_SECRET' })
    const allow = ['Password', 'api_key', 'payload.user["private-key"]', 'payload.cards[0].cvv']
    expect(encode(value, { mode: 'refuse', allow }).warnings).toEqual([])
  })
})

describe('decodePayload', () => {
  test('drops own __proto__ keys, also escaped ones', () => {
    for (const text of ['{"a":{"__proto__":{"x":1},"b":2}}', '{"a":{"\\u005f_proto__":{"x":1},"b":2}}']) {
      const decoded = decodePayload(text) as { a: object }
      expect(Object.keys(decoded.a)).toEqual(['b'])
      expect(Object.getPrototypeOf(decoded.a)).toBe(Object.prototype)
    }
  })

  test('whatever is accepted comes back equal', () => {
    fc.assert(
      fc.property(fc.jsonValue({ maxDepth: 6 }), (value) => {
        const { code } = refusal(() => {
          expect(decodePayload(encode(value).text)).toEqual(JSON.parse(JSON.stringify(value)))
        })
        // The only JSON values refused are those with broken text or a __proto__ key.
        if (code !== 'accepted') expect(JSON.stringify(value)).toMatch(/\\u0000|\\ud[89a-f]|__proto__/)
      }),
    )
  })
})

test('whatever is passed, the answer is text that JSON.parse takes or a MillraceError', () => {
  fc.assert(
    fc.property(fc.anything({ withBigInt: true, withDate: true, withMap: true, withNullPrototype: true }), (value) => {
      const { code } = refusal(() => JSON.parse(encode(value, { mode: 'warn' }).text) as unknown)
      expect(['accepted', 'PAYLOAD_NOT_JSON', 'PAYLOAD_TOO_LARGE']).toContain(code)
    }),
  )
})
