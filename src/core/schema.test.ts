// What a store gives back for a producer who passed nothing.
import { describe, expect, test } from 'vitest'
import { z } from 'zod'
import { validate, validateStored } from './schema.ts'

const object = z.object({ to: z.string() })

describe('a stored null', () => {
  test.each([
    ['optional', object.optional(), undefined],
    ['with a default', object.default({ to: 'a' }), { to: 'a' }],
    ['void', z.void(), undefined],
    ['nullable', object.nullable(), null],
    ['null or nothing', object.nullish(), null],
    ['anything', z.unknown(), null],
  ])('is what was passed to a schema that is %s', (_, schema, expected) => {
    expect(validateStored(schema, null, 'the input')).toEqual(expected)
  })

  test('is tried both ways by an asynchronous schema too', async () => {
    const slow = object.optional().refine(async () => true)
    expect(await validateStored(slow, null, 'the input')).toBe(undefined)
  })

  test('is refused as null by a schema that takes neither', () => {
    expect(() => validateStored(object, null, 'the input')).toThrow(/the input does not fit its schema: .*null/)
  })

  test('is the input when there is no schema', () => {
    expect(validateStored(undefined, null, 'the input')).toBe(null)
  })
})

test('what a producer passes is taken as it is', () => {
  expect(validate(object.optional(), undefined, 'the input')).toBe(undefined)
  expect(() => validate(object.optional(), null, 'the input')).toThrow('does not fit its schema')
})
