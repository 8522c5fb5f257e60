// The rules of skipping, themselves tested.
import { describe, expect, test } from 'vitest'
import { skipReasons } from './skips.ts'

describe('skips of the conformance suite', () => {
  test('a skip is found by the title of its test', () => {
    expect(skipReasons(['a', 'b'], [{ title: 'b', reason: 'no clock' }])).toEqual(new Map([['b', 'no clock']]))
  })

  test('a skip without a reason is refused', () => {
    expect(() => skipReasons(['a'], [{ title: 'a', reason: ' ' }])).toThrow('has no reason')
  })

  test('a skip that names no test is refused', () => {
    expect(() => skipReasons(['a'], [{ title: 'A', reason: 'misspelt' }])).toThrow('no such test')
  })

  test('two tests of one title are refused', () => {
    expect(() => skipReasons(['a', 'a'], [])).toThrow('two tests')
  })
})
