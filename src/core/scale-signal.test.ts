// What a queue asks for, as outside scalers see it.
import { expect, test } from 'vitest'
import { LIMITS } from './limits.ts'
import { scaleSignal, sumOfSignals } from './scale-signal.ts'
import type { ScaleFacts } from './scale-signal.ts'

const FACTS: ScaleFacts = { queue: 'mail', paused: false, ready: 95, running: 5, oldestReadyMs: 2_500, slots: [20, 30] }

test.each([
  ['waiting and running jobs want a slot', {}, { value: 100, workers: 2, slots: 50, wantedWorkers: 4 }],
  ['without workers it counts in workers of the default size', { slots: [] }, { value: 100, wantedWorkers: 10 }],
  ['an empty queue wants nobody', { ready: 0, running: 0, oldestReadyMs: null }, { value: 0, wantedWorkers: 0 }],
  ['busy workers are wanted until they are done', { ready: 0 }, { value: 5, wantedWorkers: 1 }],
  ['of a paused queue only what runs counts', { paused: true }, { value: 5, ready: 95, wantedWorkers: 1 }],
  ['times are whole seconds', {}, { oldestReadySeconds: 2 }],
  ['a clock that jumped makes no negative age', { oldestReadyMs: -9_000 }, { oldestReadySeconds: 0 }],
  ['counting ends somewhere', { ready: 5_000_000 }, { ready: LIMITS.scaleReadyMax, value: LIMITS.scaleReadyMax + 5 }],
])('P3 %s', (_, change, expected) => {
  expect(scaleSignal({ ...FACTS, ...change })).toMatchObject(expected)
})

test('P3 several queues of the same workers add up, and the workers do not', () => {
  const other = scaleSignal({ ...FACTS, queue: 'push', ready: 5, running: 0, oldestReadyMs: 9_000 })
  expect(sumOfSignals([scaleSignal(FACTS), other])).toEqual({
    queue: 'mail,push',
    paused: false,
    ready: 100,
    running: 5,
    oldestReadySeconds: 9,
    workers: 2,
    slots: 50,
    value: 105,
    wantedWorkers: 5,
  })
})
