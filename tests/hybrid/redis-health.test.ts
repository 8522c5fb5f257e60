// Whether a process knows in time that it cannot use its Redis: also when it has no reason to call it, and when Redis answers
// but is of no use.
import { expect, test } from 'vitest'
import { RaceCalls } from '../../src/backends/hybrid/calls.ts'
import { DispatchView } from '../../src/backends/hybrid/dispatch-view.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { DispatchRow, Race } from '../../src/backends/hybrid/ports.ts'
import { RedisWatch } from '../../src/backends/hybrid/redis-watch.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { DEFAULT_LANES } from '../../src/core/priority.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { openRace, push, token } from './race-setup.ts'

const QUEUES = ['mail', 'letters', 'parcels'] as const
const ROW: DispatchRow = {
  queue: 'mail',
  mode: 'token',
  epoch: 7,
  birth: 'b',
  redisId: 'one',
  firstLease: 1,
  paused: false,
  configVersion: 1,
  lanes: DEFAULT_LANES,
  lowerLaneShare: 0,
  defaultPriority: 100,
}

/** A process that calls nobody of its own accord. */
async function setup({ isServed = true } = {}) {
  const clock = new ManualClock()
  const view = new DispatchView()
  for (const queue of QUEUES) view.learnRow({ ...ROW, queue, redisId: queue === 'parcels' ? 'two' : 'one' })
  const probes: string[] = []
  const refreshed: string[] = []
  const answers: Record<string, string | null> = { mail: 'one', letters: 'one', parcels: 'two' }
  const watch = new RedisWatch({
    onPass: () => undefined,
    runtime: createRuntime({ clock, random: () => 0.5 }),
    view,
    times: HYBRID_TIMES,
    served: () => new Set(isServed ? QUEUES : []),
    probe(queue) {
      probes.push(queue)
      const answer = answers[queue] ?? null
      if (answer === null) watch.failed(queue, clock.monoMs())
      else watch.answered(queue)
      return answer === null ? Promise.reject(new Error('away')) : Promise.resolve(answer)
    },
    onOpen: () => undefined,
    onClose: () => undefined,
    closeTokens: () => undefined,
    moveTokens: () => undefined,
    openTokens: () => undefined,
    refresh: (queues) => Promise.resolve(void refreshed.push(...queues)),
  })
  await watch.start()
  return { clock, view, watch, probes, refreshed, answers }
}

test('H3 a worker that is busy asks each Redis once a second, one queue after the other', async () => {
  const { clock, watch, probes } = await setup()
  await clock.advance(10_500)
  expect(probes.filter((queue) => queue === 'parcels')).toHaveLength(11)
  expect(probes.filter((queue) => queue !== 'parcels')).toHaveLength(11)
  expect(new Set(probes)).toEqual(new Set(QUEUES))
  await watch.stop()
})

test('H3 a worker that is busy says of every queue of a Redis that it is gone, and of no other', async () => {
  const { clock, watch, answers } = await setup()
  await clock.advance(2_000)
  answers['mail'] = answers['letters'] = null
  await clock.advance(2_000)
  expect(QUEUES.filter((queue) => watch.isOpen(queue))).toEqual(['mail', 'letters'])
  await watch.stop()
})

test('H3 a producer does not trust a Redis that is not the one of the epoch until somebody has moved the epoch', async () => {
  const { clock, view, watch, answers, refreshed } = await setup({ isServed: false })
  answers['mail'] = 'other'
  watch.unusable('mail')
  await clock.advance(2_000)
  expect([watch.isOpen('mail'), watch.isSound('mail')]).toEqual([true, false])
  expect(refreshed.length).toBeGreaterThanOrEqual(6)
  expect(refreshed.length).toBeLessThanOrEqual(9)
  view.learnRow({ ...ROW, epoch: 8, redisId: 'other' })
  await clock.advance(100)
  expect([watch.isOpen('mail'), watch.isSound('mail')]).toEqual([false, true])
  await watch.stop()
})

function callsOver(race: Race, clock = new ManualClock()) {
  const told: string[] = []
  const calls = new RaceCalls({
    runtime: createRuntime({ clock }),
    race,
    timeoutMs: 1_000,
    probeMs: 250,
    onAnswer: () => void told.push('answered'),
    onError: () => void told.push('failed'),
    onRefused: () => void told.push('refused'),
  })
  return { calls, told, clock }
}

const READY = (): Promise<void> => Promise.resolve()

test('H3 only a probe that has written says that Redis can be used again', async () => {
  const race = new MemoryRace()
  const { calls, told } = callsOver(race)
  const tag = await openRace(race)
  race.refuseWrites(true)
  const question = { pusher: 'p', tokens: [], backlog: null, window: 10 }
  await calls.gated('mail', tag, (one) => one.push('mail', tag, question))
  await calls.gated('mail', tag, (one) => one.audit('mail', tag, 0, []))
  await calls.plain('mail', (one) => one.identity('mail'))
  expect(told).toEqual([])
  await expect(push(race, tag, [token(1)])).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  await expect(calls.probe('mail', tag, READY)).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  race.refuseWrites(false)
  await calls.probe('mail', tag, READY)
  expect(told).toEqual(['failed', 'answered'])
})

test('H3 a Redis that takes longer than the breaker allows has failed, although it answers', async () => {
  const race = new MemoryRace()
  const { calls, told, clock } = callsOver(race)
  const slow = (delayMs: number) => () => new Promise<void>((resolve) => void clock.timer(delayMs, () => resolve()))
  const late = calls.probe('mail', null, slow(400)).catch((error: unknown) => error)
  await clock.advance(300)
  expect(told).toEqual(['failed'])
  expect(await late).toMatchObject({ code: 'STORE_TIMEOUT' })
  const quick = calls.probe('mail', null, slow(200))
  await clock.advance(300)
  await quick
  expect(told).toEqual(['failed', 'answered'])
})

test('H3 an answer that came while a handler blocked the loop is in time', async () => {
  const clock = new ManualClock()
  const { calls, told } = callsOver(new MemoryRace(), clock)
  let answer = (): void => undefined
  // The timer is late itself: what has arrived meanwhile is read after it.
  clock.breathe = async () => {
    answer()
    await new Promise((resolve) => setImmediate(resolve))
  }
  const asked = calls.probe('mail', null, () => new Promise((resolve) => void (answer = resolve)))
  await clock.advance(250)
  await asked
  expect(told).toEqual(['answered'])
})
