import { expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Topic } from '../../src/store/wakeups.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { Poller } from '../../src/worker/poller.ts'

/** A worker that asks whenever it has reason to, and a store that has so many jobs each time. */
function polling(found: () => number) {
  const clock = new ManualClock()
  const asked: number[] = []
  let hint: (() => void) | undefined
  const poller: Poller = new Poller({
    runtime: createRuntime({ clock, random: () => 0.5 }),
    wakeups: {
      listen(_: readonly Topic[], onHint: (topic: Topic) => void) {
        hint = () => onHint('ready:q')
        return () => (hint = undefined)
      },
    },
    queues: ['q'],
    onWake() {
      if (!poller.expects) return
      asked.push(clock.monoMs())
      poller.claimed(found(), 10)
    },
  })
  poller.start()
  return { clock, asked, poller, hint: () => hint?.() }
}

test('a store that has nothing is asked ever more rarely, once a second in the end', async () => {
  const { clock, asked, poller } = polling(() => 0)
  await clock.advance(5_000)
  expect(asked.slice(0, 5)).toEqual([0, 10, 30, 70, 150])
  expect(asked.at(-1)! - asked.at(-2)!).toBe(1_000)
  poller.stop()
})

test('a poll that finds jobs without a hint makes the next one soon', async () => {
  let jobs = 0
  const { clock, asked, poller } = polling(() => jobs)
  await clock.advance(5_000)
  jobs = 1
  await clock.advance(1_000)
  expect(asked.at(-1)! - asked.at(-2)!).toBe(10)
  poller.stop()
})

test('jobs that came with a hint leave the poll as rare as it was', async () => {
  let jobs = 0
  const { clock, asked, poller, hint } = polling(() => jobs)
  await clock.advance(5_000)
  const before = asked.length
  jobs = 1
  hint()
  jobs = 0
  expect(asked).toHaveLength(before + 1)
  await clock.advance(900)
  expect(asked.length - before).toBeLessThanOrEqual(2)
  poller.stop()
})
