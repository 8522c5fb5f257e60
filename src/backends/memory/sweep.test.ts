// A bounded walk that goes on where it stopped.
import { expect, test } from 'vitest'
import { Sweep } from './sweep.ts'

test('entries that stay do not keep the ones behind them from being reached', () => {
  const entries = new Map<number, boolean>()
  for (let no = 0; no < 1_000; no++) entries.set(no, false)
  for (let no = 1_000; no < 3_000; no++) entries.set(no, true)
  const sweep = new Sweep(entries)
  let deleted = 0
  for (let pass = 0; pass < 31; pass++) deleted += sweep.run(100, (isOver) => isOver)
  expect(deleted).toBe(2_000)
  expect(entries.size).toBe(1_000)
})

test('a walk that has come to its end begins again', () => {
  const entries = new Map([['a', 1]])
  const sweep = new Sweep(entries)
  expect(sweep.run(10, (value) => value > 1)).toBe(0)
  entries.set('a', 2)
  expect(sweep.run(10, (value) => value > 1)).toBe(1)
})
