// Who leads: one process at a time, and not the one that cannot do the work while others can.
import { expect, test } from 'vitest'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { createLeader } from '../../src/maintenance/leader.ts'
import { timesFor } from '../../src/maintenance/maintenance.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

const TTL_MS = 3_000

async function setup() {
  const clock = new ManualClock()
  const { workers } = backendOver(new World(clock))
  const runtime = createRuntime({ clock, random: () => 0.5 })
  const able = [true, true]
  const leaders = able.map((_, index) =>
    createLeader({
      runtime,
      workers,
      role: 'dispatch',
      ttlMs: TTL_MS,
      mayLead: () => able[index]!,
    }),
  )
  for (const leader of leaders) await leader.start()
  const who = (): number[] => leaders.flatMap((leader, index) => (leader.isLeading() ? [index] : []))
  const stop = async (): Promise<void> => {
    for (const leader of leaders) await leader.stop()
  }
  return { clock, able, who, stop }
}

test('H3 a leader that cannot do the work lets another one lead, well before its lease has lapsed, and for as long as it can', async () => {
  const { clock, able, who, stop } = await setup()
  await clock.advance(1_000)
  expect(who()).toEqual([0])
  able[0] = false
  await clock.advance(TTL_MS * 0.7)
  expect(who()).toEqual([1])
  await clock.advance(20 * TTL_MS)
  expect(who()).toEqual([1])
  able.fill(true)
  able[1] = false
  await clock.advance(TTL_MS * 0.7)
  expect(who()).toEqual([0])
  await stop()
})

test('H3 where nobody can do all of the work somebody leads nearly all of the time, for the sake of the rest', async () => {
  const { clock, able, who, stop } = await setup()
  able.fill(false)
  await clock.advance(TTL_MS)
  let ledMs = 0
  for (let passedMs = 0; passedMs < 40 * TTL_MS; passedMs += 100) {
    await clock.advance(100)
    if (who().length > 0) ledMs += 100
  }
  expect(ledMs).toBeGreaterThan(36 * TTL_MS)
  await stop()
})

test('H3 a leader that gave way leads at once when it can do the work again', async () => {
  const { clock, able, who, stop } = await setup()
  able.fill(false)
  await clock.advance(900)
  expect(who()).toEqual([])
  able[0] = true
  await clock.advance(TTL_MS / 8)
  expect(who()).toEqual([0])
  await stop()
})

test('a leader that dies with its worker is replaced before that worker is found dead, where the ttl is short', () => {
  const worstMs = (ttlMs: number): number => {
    const { leaderTtlMs } = timesFor(ttlMs)
    // The lease lapses, and who does not lead asks every quarter of it, a quarter more or less.
    return leaderTtlMs + (leaderTtlMs / 4) * 1.25
  }
  expect(worstMs(5_000)).toBeLessThan(5_000)
  expect(worstMs(10_000)).toBeLessThan(15_000)
  expect(timesFor(60_000).leaderTtlMs).toBe(10_000)
  expect(timesFor(100).leaderTtlMs).toBe(2_000)
})
