import { expect, test } from 'vitest'
import { shortKey, shortText } from './short-text.ts'

test('O2 a text that is cut has no half of a character at its end', () => {
  expect(shortText('abc', 3)).toBe('abc')
  expect(shortText('ab😀', 3)).toBe('ab\uFFFD')
  expect(shortText('a\0b', 9)).toBe('a\uFFFDb')
})

test('O2 long keys stay apart', () => {
  expect(shortKey('a'.repeat(200), 200)).toBe('a'.repeat(200))
  const [one, two] = ['x', 'y'].map((end) => shortKey(`${'a'.repeat(300)}${end}`, 200))
  expect(one).toHaveLength(200)
  expect(one).not.toBe(two)
})
