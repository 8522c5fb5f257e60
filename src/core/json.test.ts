import fc from 'fast-check'
import { describe, expect, test } from 'vitest'
import { canonicalJson, type Json } from './json.ts'

const json = fc.jsonValue({ maxDepth: 5 }) as fc.Arbitrary<Json>

function reversedKeys(value: Json): Json {
  if (value === null || typeof value !== 'object') return value
  if (Array.isArray(value)) return value.map((item: Json) => reversedKeys(item))
  return Object.fromEntries(
    Object.entries(value)
      .reverse()
      .map(([key, item]) => [key, reversedKeys(item)]),
  )
}

describe('canonicalJson', () => {
  test('sorts keys at every depth and keeps the order of arrays', () => {
    expect(canonicalJson({ b: [3, { d: null, c: 'x' }], a: true })).toBe('{"a":true,"b":[3,{"c":"x","d":null}]}')
  })

  test('the order in which keys were written does not matter', () => {
    fc.assert(fc.property(json, (value) => canonicalJson(reversedKeys(value)) === canonicalJson(value)))
  })

  test('the text decodes to the same value', () => {
    fc.assert(
      fc.property(json, (value) => {
        expect(JSON.parse(canonicalJson(value))).toEqual(JSON.parse(JSON.stringify(value)))
      }),
    )
  })

  test('keys are escaped, so two different values never share a text', () => {
    expect(canonicalJson({ 'a":1,"b': 2 })).not.toBe(canonicalJson({ a: 1, b: 2 }))
  })
})
