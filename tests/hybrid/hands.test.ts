// What a session makes of hand-overs: told, heard, found by a look, lost.
import { expect, test } from 'vitest'
import { Hands } from '../../src/backends/hybrid/hands.ts'

function standing(...numbers: readonly number[]) {
  const hands = new Hands()
  const stood = numbers.map((c) => ({ c, claimNo: c * 10 }))
  for (const one of stood) hands.stand(one)
  return { hands, stood }
}

test('a take that stands may have been answered unheard, until the next one says that it was not', () => {
  const { hands, stood } = standing(3)
  expect(hands.isKnown).toBe(false)
  expect(hands.told(stood[0]!, false, 0)).toBe('settled')
  expect(hands.isKnown).toBe(true)
})

test('only the take right after it is told of it', () => {
  const { hands, stood } = standing(3)
  expect([hands.stoodAt(3), hands.stoodAt(4), hands.stoodAt(2)]).toEqual([stood[0], undefined, undefined])
})

test('what is heard is known, whether it was told of before or after, and does not count twice', () => {
  const { hands, stood } = standing(3)
  expect(hands.hear(3)).toEqual({ isMissing: false })
  expect(hands.told(stood[0]!, true, 0)).toBe('settled')
  expect([hands.hear(3), hands.isKnown]).toEqual([null, true])
  const other = standing(3)
  expect(other.hands.told(other.stood[0]!, true, 0)).toBe('unheard')
  expect([other.hands.isKnown, other.hands.hear(3), other.hands.isKnown]).toEqual([false, { isMissing: false }, true])
})

test('one that was answered and is overtaken by a later one is lost', () => {
  const { hands, stood } = standing(3, 5)
  hands.told(stood[0]!, true, 0)
  expect(hands.hear(5)).toEqual({ isMissing: true })
})

test('it is lost as well if it is told of only after the later one was heard', () => {
  const { hands, stood } = standing(3, 5)
  expect(hands.hear(5)).toEqual({ isMissing: false })
  expect(hands.told(stood[0]!, true, 50)).toBe('lost')
})

test('it is lost as well if that later one was of another queue', () => {
  const { hands, stood } = standing(3)
  expect(hands.told(stood[0]!, true, 31)).toBe('lost')
  const other = standing(3)
  expect(other.hands.told(other.stood[0]!, true, 30)).toBe('unheard')
})

test('a look finds all up to its number, and what comes of them later is not taken', () => {
  const { hands, stood } = standing(3, 5, 7)
  hands.told(stood[0]!, true, 0)
  hands.looked(5)
  expect([hands.hear(3), hands.hear(5), hands.isKnown]).toEqual([null, null, false])
  expect([hands.hear(7), hands.isKnown]).toEqual([{ isMissing: false }, true])
})

test('one that brought something does not stand, and an epoch that is over leaves nothing open', () => {
  const { hands } = standing(3, 5)
  hands.fell(3)
  expect(hands.isKnown).toBe(false)
  hands.forget()
  expect([hands.isKnown, hands.knownC]).toEqual([true, 0])
})
