// Runs that last get their hash, in bounded calls, without a timer while nothing runs.
import { afterEach, expect, test } from 'vitest'
import { LiveRuns, SHOWN_AFTER_MS } from '../../src/backends/redis/live-runs.ts'
import type { LiveRun } from '../../src/backends/redis/live-runs.ts'
import type { ClaimedJob, JobId, LeaseNumber } from '../../src/core/job.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

let live: LiveRuns | undefined
afterEach(() => live?.stop())

function setup(mark: (queue: string) => Promise<void> = () => Promise.resolve()) {
  const clock = new ManualClock()
  const marked: (readonly [atMs: number, queue: string, ids: readonly string[]])[] = []
  const timers = { waiting: 0 }
  const counting = Object.create(clock, {
    timer: {
      value(delayMs: number, fire: () => void) {
        timers.waiting += 1
        return clock.timer(delayMs, () => {
          timers.waiting -= 1
          fire()
        })
      },
    },
    monoMs: { value: () => clock.monoMs() },
  }) as ManualClock // the same clock, with its timers counted
  const runs = new LiveRuns({
    clock: counting,
    async mark(queue: string, own: readonly LiveRun[]) {
      marked.push([clock.monoMs(), queue, own.map(({ id }) => id)])
      await mark(queue)
    },
  })
  live = runs
  runs.start()
  return { clock, runs, marked, timers }
}

// Only these fields are looked at.
const run = (id: string, queue = 'mail', lease = 1) =>
  ({ id: id as JobId, lease: lease as LeaseNumber, queue }) as ClaimedJob

test('J5 a run that lasts is marked once, one that ends before is not', async () => {
  const { clock, runs, marked, timers } = setup()
  runs.claimed([run('a'), run('b'), run('c', 'post')])
  await clock.advance(SHOWN_AFTER_MS - 1)
  runs.settled('b' as JobId)
  await clock.advance(2_000)
  expect(marked.map(([, queue, ids]) => [queue, ids])).toEqual([
    ['mail', ['a']],
    ['post', ['c']],
  ])
  expect(marked[0]![0]).toBeLessThanOrEqual(SHOWN_AFTER_MS + 100)
  expect(timers.waiting).toBe(0)
})

test('a mark that fails is tried again, and those of other queues are not', async () => {
  let fails = 2
  const { clock, runs, marked } = setup((queue) =>
    queue === 'mail' && fails-- > 0 ? Promise.reject(new Error('no connection')) : Promise.resolve(),
  )
  runs.claimed([run('a'), run('c', 'post')])
  await clock.advance(2_000)
  expect(marked.map(([, queue]) => queue)).toEqual(['mail', 'post', 'mail', 'mail'])
})

test('one call marks a bounded number of runs, the next one the others', async () => {
  const { clock, runs, marked } = setup()
  runs.claimed(Array.from({ length: 2_500 }, (_, at) => run(`job-${at}`)))
  await clock.advance(2_000)
  expect(marked.map(([, , ids]) => ids.length)).toEqual([1_000, 1_000, 500])
})

test('who has stopped marks nothing, whatever is claimed afterwards', async () => {
  const { clock, runs, marked } = setup()
  runs.claimed([run('a')])
  runs.stop()
  runs.claimed([run('b')])
  await clock.advance(2_000)
  expect(marked).toEqual([])
})
