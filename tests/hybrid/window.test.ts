// The window in all: tokens of many queues together stay within it, and no queue waits for another.
import { afterEach, describe, expect, test } from 'vitest'
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { PushReply } from '../../src/backends/hybrid/ports.ts'
import { relayOnce } from '../../src/backends/hybrid/relay.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { guaranteeOf, roomsOf } from '../../src/backends/hybrid/window.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { newJob } from './ledger-world.ts'
import { session } from './race-setup.ts'

function lanes(depth: number, hasBacklog: boolean): PushReply {
  return { isFull: false, depths: [0, depth, 0], backlog: [false, hasBacklog, false] }
}

describe('the rooms of a queue', () => {
  const defaults = { window: 10_000, total: 100_000 }

  test('H1 a queue that is alone has its whole window, and no more', () => {
    const own = lanes(9_900, true)
    expect(guaranteeOf({ ...defaults, queues: 1 })).toBe(10_000)
    expect(roomsOf({ ...defaults, queues: 1 }, own, () => [own])).toEqual([1_000, 100, 1_000])
    expect(roomsOf({ ...defaults, queues: 1 }, lanes(10_000, true), () => [own])[1]).toBe(0)
  })

  test('H1 with a window of its own it may use what nobody else needs', () => {
    const own = lanes(20_000, true)
    expect(roomsOf({ window: 60_000, total: 100_000, queues: 1 }, own, () => [own])[1]).toBe(1_000)
  })

  test('H1 what is lent to others is not lent again, the guarantee is always there', () => {
    const terms = { ...defaults, queues: 50 }
    const guarantee = guaranteeOf(terms)
    expect(guarantee).toBe(333)
    const greedy = Array.from({ length: 5 }, () => lanes(10_333, true))
    const own = lanes(0, true)
    expect(roomsOf(terms, own, () => [...greedy, own])).toEqual([333, 333 + 50, 333])
    const full = [...greedy, lanes(10_333, true)]
    expect(roomsOf(terms, own, () => [...full, own])).toEqual([333, 333, 333])
  })

  test('H1 nothing goes to a Redis that is full', () => {
    const own = lanes(0, true)
    expect(roomsOf({ window: 0, total: 0, queues: 3 }, own, () => [own])).toEqual([0, 0, 0])
    expect(roomsOf({ ...defaults, queues: 3 }, { ...own, isFull: true }, () => [own])).toEqual([0, 0, 0])
  })
})

describe('many queues', () => {
  const QUEUES = Array.from({ length: 20 }, (_, index) => `queue-${index}`)
  const TOTAL = 240
  let backend: Backend | undefined

  afterEach(async () => {
    await backend?.stop()
    backend = undefined
  })

  async function setup() {
    const world = new World(new ManualClock())
    const ledger = memoryLedger(world, new LedgerState())
    const race = new MemoryRace()
    const composed = composeHybrid({
      runtime: createRuntime(),
      store: backendOver(world),
      ledger,
      race,
      times: { ...HYBRID_TIMES, window: 50, windowTotal: TOTAL },
      isConfirmed: () => false,
      threadMonoMs: () => 0,
    })
    const { hybrid } = composed
    backend = composed.backend
    await backend.start()
    const redisId = await race.identity('')
    for (const queue of QUEUES) {
      const [row] = await ledger.flip({
        queues: [{ queue, expected: 0 }],
        mode: 'token',
        redisId,
        unlessHealthy: false,
      })
      const { epoch, firstLease } = row!
      const request = { epoch, redisId, firstLease, version: 1, paused: false, lowerLaneShare: 16 }
      const reply = await race.open(queue, request)
      if (reply.kind === 'open') await ledger.born(queue, epoch, reply.birth)
    }
    await hybrid.epochs.refresh()
    const waiting = (queue: string): number => race.inspect(queue).lanes.flat().length
    const sum = (): number => QUEUES.reduce((all, queue) => all + waiting(queue), 0)
    const pipes = new Map<string, string>()
    const relay = async (): Promise<void> => {
      for (const queue of QUEUES) {
        while (await relayOnce(hybrid, queue, pipes, true)) expect(sum()).toBeLessThanOrEqual(TOTAL)
      }
      expect(sum()).toBeLessThanOrEqual(TOTAL)
    }
    return { backend, hybrid, race, waiting, sum, relay }
  }

  test('H1 producers without a relay stay within the total', async () => {
    const { backend: store, hybrid, sum } = await setup()
    for (let round = 0; round < 30; round++) {
      for (const queue of QUEUES) await store.jobs.insert([newJob(queue)])
      await hybrid.runtime.clock.breathe()
    }
    expect(sum()).toBeGreaterThan(0)
    expect(sum()).toBeLessThanOrEqual(TOTAL)
  })

  test('H1 every queue has tokens, the sum stays within the total, and what is freed is lent to others', async () => {
    const { backend: store, hybrid, race, waiting, sum, relay } = await setup()
    for (const queue of QUEUES) await store.jobs.insert(Array.from({ length: 100 }, () => newJob(queue)))
    for (let pass = 0; pass < 5; pass++) await relay()
    expect(QUEUES.filter((queue) => waiting(queue) === 0)).toEqual([])
    expect(sum()).toBeGreaterThan(TOTAL / 2)
    // One queue is worked off; nobody works on the others.
    const [busy = ''] = QUEUES
    let taken = 0
    for (let c = 1; taken < 100; c++) {
      const tag = hybrid.view.tag(busy)!
      const reply = await race.take(busy, tag, { session: session('worker'), c, most: 50, done: [] })
      const texts = reply.value?.kind === 'taken' ? reply.value.texts : []
      expect(texts.length, `take ${c}`).toBeGreaterThan(0)
      taken += texts.length
      await relay()
    }
    expect(taken).toBe(100)
  })
})
