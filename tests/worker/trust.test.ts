// Trust in one's own jobs ends in time, also on a machine that was suspended and whose monotonic clock stood still.
import { expect, test } from 'vitest'
import { Trust } from '../../src/worker/trust.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

function setup() {
  const clock = new ManualClock()
  const told: string[] = []
  let jumpedMs = 0
  const trust = new Trust({
    clock: {
      nowMs: () => clock.nowMs() + jumpedMs,
      monoMs: () => clock.monoMs(),
      timer: (delayMs, fire) => clock.timer(delayMs, fire),
      breathe: () => clock.breathe(),
    },
    ttlMs: 10_000,
    marginMs: 2_000,
    onDoubt: () => void told.push('doubt'),
    onLost: () => void told.push('lost'),
  })
  const jump = (ms: number): void => void (jumpedMs += ms)
  return { clock, trust, told, jump }
}

test('D1 trust lasts for a ttl without its margin from the start of the last good beat', async () => {
  const { clock, trust, told } = setup()
  expect(trust.isHeld()).toBe(false)
  trust.renew(clock.monoMs())
  await clock.advance(7_999)
  expect(trust.isHeld()).toBe(true)
  await clock.advance(1)
  expect([trust.isHeld(), told]).toEqual([false, ['doubt']])
  await clock.advance(1_000)
  expect(told).toEqual(['doubt', 'lost'])
})

test('D1 a machine that was suspended starts nothing until a beat begun after that is answered', async () => {
  const { clock, trust, told, jump } = setup()
  trust.renew(clock.monoMs())
  await clock.advance(1_000)
  const startedMs = clock.monoMs()
  jump(60_000)
  await clock.advance(1)
  expect(trust.isHeld()).toBe(false)
  await clock.advance(1)
  expect(told).toEqual(['doubt'])
  trust.renew(startedMs)
  expect(trust.isHeld()).toBe(false)
  trust.renew(clock.monoMs())
  expect(trust.isHeld()).toBe(true)
  await clock.advance(7_000)
  expect([trust.isHeld(), told]).toEqual([true, ['doubt']])
})

test('D1 a beat that was under way while the machine was suspended renews nothing', async () => {
  const { clock, trust, jump } = setup()
  trust.renew(clock.monoMs())
  await clock.advance(1_000)
  const startedMs = clock.monoMs()
  await clock.advance(10)
  jump(60_000)
  trust.renew(startedMs)
  expect(trust.isHeld()).toBe(false)
  await clock.advance(1)
  trust.renew(clock.monoMs())
  expect(trust.isHeld()).toBe(true)
})

test('D1 clocks that drift apart slowly, or are set back, cost nothing', async () => {
  const { clock, trust, told, jump } = setup()
  for (let beat = 0; beat < 20; beat++) {
    trust.renew(clock.monoMs())
    jump(beat < 10 ? 100 : -3_600_000)
    await clock.advance(2_500)
    expect(trust.isHeld()).toBe(true)
  }
  expect(told).toEqual([])
  // Also after that a jump is one.
  jump(2_000)
  expect(trust.isHeld()).toBe(false)
})
