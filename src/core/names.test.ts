import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { isMillraceError } from './errors.ts'
import { checkInteger, checkKey, checkKnownOptions, checkName, checkTags, shown } from './names.ts'

function codeOf(run: () => unknown): string {
  try {
    run()
  } catch (error) {
    if (isMillraceError(error)) return error.code
    throw error
  }
  return 'accepted'
}

describe('checkName', () => {
  test.each(['a', 'send-email', 'Mail:v2.1', '0', 'constructor', 'x'.repeat(100)])('accepts %s', (name) => {
    expect(checkName(name, 'job')).toBe(name)
  })

  test.each([
    '',
    '__proto__',
    '-a',
    '.a',
    'a b',
    'a/b',
    'a\n',
    'a\0',
    'ä',
    'x'.repeat(101),
    undefined,
    null,
    7,
    {},
    ['a'],
  ])('refuses %j', (name) => {
    expect(codeOf(() => checkName(name, 'queue'))).toBe('INVALID_NAME')
  })

  test('the message says what the name was for and never repeats a huge value', () => {
    expect(() => checkName('x'.repeat(10_000), 'schedule')).toThrow(/schedule/)
    expect(() => checkName('x'.repeat(10_000), 'schedule')).toThrow(/^.{0,300}$/)
  })
})

describe('checkKey', () => {
  test('accepts printable text of any script up to 200 characters', () => {
    for (const key of ['k', 'user 42', 'Zürich/東京', '😀', 'x'.repeat(200)]) expect(checkKey(key, 'key')).toBe(key)
  })

  test('refuses empty, long, control characters, lone surrogates and what is not a string', () => {
    for (const key of ['', 'x'.repeat(201), 'a\0', 'a\nb', '\u0085', '\ud800', 5, null, undefined, {}]) {
      expect(codeOf(() => checkKey(key, 'unique key'))).toBe('INVALID_KEY')
    }
  })
})

describe('checkTags', () => {
  test('drops duplicates and keeps the order', () => {
    expect(checkTags(['b', 'a', 'b'])).toEqual(['b', 'a'])
  })

  test('takes 20 different tags and refuses the 21st', () => {
    const tags = Array.from({ length: 21 }, (_, index) => `t${index}`)
    expect(checkTags([...tags.slice(0, 20), 't0'])).toHaveLength(20)
    expect(codeOf(() => checkTags(tags))).toBe('INVALID_OPTION')
  })

  test('refuses what is not an array of keys', () => {
    expect(codeOf(() => checkTags('a'))).toBe('INVALID_OPTION')
    expect(codeOf(() => checkTags(['a', 1]))).toBe('INVALID_KEY')
  })
})

describe('checkKnownOptions', () => {
  const allowed = ['attempts', 'priority', 'uniqueKey', 'delay']

  test('accepts known options, also when undefined', () => {
    expect(codeOf(() => checkKnownOptions({ attempts: 1, delay: undefined }, allowed, 'enqueue'))).toBe('accepted')
  })

  test('names the unknown option and suggests a close one', () => {
    expect(() => checkKnownOptions({ atempts: 1 }, allowed, 'enqueue')).toThrow('did you mean attempts?')
    expect(() => checkKnownOptions({ uniquekey: 1 }, allowed, 'enqueue')).toThrow('did you mean uniqueKey?')
  })

  test('lists the known options when nothing is close', () => {
    expect(() => checkKnownOptions({ colour: 1 }, allowed, 'enqueue')).toThrow(/"colour": known: attempts, priority/)
  })

  test('prototype keys are no options', () => {
    expect(codeOf(() => checkKnownOptions(JSON.parse('{"__proto__":1}') as object, allowed, 'enqueue'))).toBe(
      'INVALID_OPTION',
    )
    expect(codeOf(() => checkKnownOptions({ constructor: 1 }, allowed, 'enqueue'))).toBe('INVALID_OPTION')
  })

  test('every unknown key is refused, whatever it is', () => {
    fc.assert(
      fc.property(fc.string({ maxLength: 5_000 }), (key) => {
        fc.pre(!allowed.includes(key))
        expect(codeOf(() => checkKnownOptions({ [`${key}`]: 1 }, allowed, 'x'))).toBe('INVALID_OPTION')
      }),
    )
  })
})

describe('checkInteger', () => {
  test('accepts both bounds and refuses everything outside, fractions, NaN and strings', () => {
    expect(checkInteger(1, 'n', 1, 5)).toBe(1)
    expect(checkInteger(5, 'n', 1, 5)).toBe(5)
    for (const value of [0, 6, 1.5, Number.NaN, Infinity, '3', null, undefined, 3n]) {
      expect(codeOf(() => checkInteger(value, 'n', 1, 5))).toBe('INVALID_OPTION')
    }
  })
})

test('shown never throws and stays short', () => {
  fc.assert(fc.property(fc.anything(), (value) => shown(value).length < 500))
})
