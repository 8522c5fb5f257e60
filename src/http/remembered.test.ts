// One answer for many askers.
import { expect, test } from 'vitest'
import { VirtualClock } from '../testing/virtual-clock.ts'
import { remembered } from './remembered.ts'

function setup(read: (call: number) => Promise<number>) {
  const clock = new VirtualClock()
  let calls = 0
  const ask = remembered({ clock, keepMs: 1_000, waitMs: 5_000 }, () => read(++calls))
  return { clock, ask, calls: () => calls }
}

test('O3 those who ask at once share one answer, and it is given again while it is young', async () => {
  const { clock, ask, calls } = setup((call) => Promise.resolve(call))
  expect(await Promise.all([ask(), ask(), ask()])).toEqual([1, 1, 1])
  await clock.advance('999ms')
  expect(await ask()).toBe(1)
  await clock.advance('1ms')
  expect(await ask()).toBe(2)
  expect(calls()).toBe(2)
})

test('O3 a failure is remembered too, and not for longer', async () => {
  const { clock, ask, calls } = setup((call) =>
    call === 1 ? Promise.reject(new Error('away')) : Promise.resolve(call),
  )
  await expect(ask()).rejects.toThrow('away')
  await expect(ask()).rejects.toThrow('away')
  expect(calls()).toBe(1)
  await clock.advance('1s')
  expect(await ask()).toBe(2)
})

test('O3 an answer that never comes does not block those who ask later', async () => {
  const { clock, ask } = setup((call) => (call === 1 ? new Promise<number>(() => undefined) : Promise.resolve(call)))
  void ask()
  await clock.advance('5s')
  expect(await ask()).toBe(2)
})
