import { describe, expect, test } from 'vitest'
import { WordReader } from './word-reader.ts'

describe('a line of words', () => {
  test('is read word by word, each with its kind', () => {
    const words = new WordReader('abc:12 -7 9007199254740991 name  0')
    expect(words.fixed(3, ':')).toBe('abc')
    expect(words.number()).toBe(12)
    expect(words.at).toBe(7)
    expect(words.number()).toBe(-7)
    expect(words.number()).toBe(Number.MAX_SAFE_INTEGER)
    expect(words.word()).toBe('name')
    expect(words.word()).toBe('')
    expect(words.number()).toBe(0)
  })

  test('may end with a word or a number', () => {
    const words = new WordReader('1 last')
    expect(words.number()).toBe(1)
    expect(words.isOver).toBe(false)
    expect(words.word()).toBe('last')
    expect(words.isOver).toBe(true)
    expect(() => words.word()).toThrow('fewer words')
    expect(() => words.number()).toThrow('is none')
  })

  test.each(['', ' ', '-', 'x', '1x', '1.5', '- 1', '１', '9007199254740993', '9'.repeat(400)])(
    'has no number in %j',
    (text) => {
      expect(() => new WordReader(text).number()).toThrow('is none')
    },
  )

  test('has no word of a fixed length where it ends elsewhere', () => {
    expect(() => new WordReader('abcd:1').fixed(3, ':')).toThrow('not 3 characters')
    expect(() => new WordReader('ab').fixed(3, ':')).toThrow('not 3 characters')
  })
})
