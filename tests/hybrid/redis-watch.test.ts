// A worker that alone has lost Redis: it works from PostgreSQL, and does not ask there over and over to give up the tokens
// that others work with.
import { expect, test } from 'vitest'
import { DispatchView } from '../../src/backends/hybrid/dispatch-view.ts'
import type { DispatchRow } from '../../src/backends/hybrid/ports.ts'
import { RedisWatch } from '../../src/backends/hybrid/redis-watch.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { DEFAULT_LANES } from '../../src/core/priority.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

const QUEUE = 'mail'
const ROW: DispatchRow = {
  queue: QUEUE,
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

/** Redis is away for this process; the ledger never gives the tokens up. */
async function setup() {
  const clock = new ManualClock()
  const view = new DispatchView()
  view.learnRow(ROW)
  const asked = { closes: [] as number[], moves: [] as number[], opens: [] as number[], probes: 0 }
  let answer: string | null = null
  const watch = new RedisWatch({
    onPass: () => undefined,
    runtime: createRuntime({ clock, random: () => 0.5 }),
    view,
    times: HYBRID_TIMES,
    served: () => new Set([QUEUE]),
    probe(queue) {
      asked.probes += 1
      if (answer === null) watch.failed(queue, clock.monoMs())
      else watch.answered(queue)
      return answer === null ? Promise.reject(new Error('away')) : Promise.resolve(answer)
    },
    onOpen: () => undefined,
    onClose: () => undefined,
    closeTokens: () => void asked.closes.push(clock.monoMs()),
    moveTokens: () => void asked.moves.push(clock.monoMs()),
    openTokens: () => void asked.opens.push(clock.monoMs()),
    refresh: () => Promise.resolve(),
  })
  watch.failed(QUEUE, clock.monoMs())
  await watch.start()
  const answers = (redisId: string | null): void => void (answer = redisId)
  return { clock, view, watch, asked, answers }
}

test('H3 a flip that the ledger refuses is tried again less and less often, at last once a second', async () => {
  const { clock, watch, asked } = await setup()
  await clock.advance(HYBRID_TIMES.breakerMs + 2 * HYBRID_TIMES.watchMs)
  expect(asked.closes.length).toBeGreaterThanOrEqual(1)
  await clock.advance(3_000)
  const before = asked.closes.length
  expect(before).toBeLessThan(10)
  await clock.advance(10_000)
  expect(asked.closes.length - before).toBeGreaterThanOrEqual(8)
  expect(asked.closes.length - before).toBeLessThanOrEqual(11)
  await watch.stop()
})

test('H3 another epoch is a new reason, and so is another outage', async () => {
  const { clock, view, watch, asked, answers } = await setup()
  await clock.advance(10_000)
  for (const change of [
    async () => {
      view.learnRow({ ...ROW, epoch: 8 })
      await Promise.resolve()
    },
    async () => {
      answers('one')
      await clock.advance(200)
      expect(watch.isOpen(QUEUE)).toBe(false)
      answers(null)
      watch.failed(QUEUE, clock.monoMs())
      await clock.advance(HYBRID_TIMES.breakerMs)
    },
  ]) {
    await change()
    const before = asked.closes.length
    await clock.advance(4 * HYBRID_TIMES.watchMs)
    expect(asked.closes.length).toBeGreaterThan(before)
  }
  await watch.stop()
})

test('H3 Redis is asked as often as ever, so the way back is as short', async () => {
  const { clock, view, watch, asked, answers } = await setup()
  await clock.advance(10_000)
  const probes = asked.probes
  await clock.advance(1_000)
  expect(asked.probes - probes).toBeGreaterThanOrEqual(18)
  view.learnRow({ ...ROW, mode: 'ledger', epoch: 8 })
  answers('one')
  const backMs = clock.monoMs()
  await clock.advance(2_000)
  expect(asked.opens[0]! - backMs).toBeLessThanOrEqual(HYBRID_TIMES.returnMs + 2 * HYBRID_TIMES.watchMs)
  await watch.stop()
})

test('H3 moving to the Redis that answers, while others still work with the other one, backs off too', async () => {
  const { clock, watch, asked, answers } = await setup()
  await clock.advance(1_000)
  answers('two')
  await clock.advance(10_000)
  expect(asked.moves.length).toBeGreaterThanOrEqual(8)
  expect(asked.moves.length).toBeLessThan(16)
  await watch.stop()
})
