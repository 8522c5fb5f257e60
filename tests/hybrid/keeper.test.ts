// The keeper of a session: adoption and the gate, also while two keepers follow each other, and what it tells of lost leases.
import { expect, test } from 'vitest'
import type { JobId, LeaseNumber, LeaseRef, WorkerId } from '../../src/core/job.ts'
import { InFlight, InFlightView, createInFlight } from '../../src/backends/hybrid/in-flight.ts'
import { Keeper } from '../../src/backends/hybrid/keeper.ts'
import type { DispatchNews, DispatchRow, SessionLedger } from '../../src/backends/hybrid/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

const QUEUE = 'q'
const REQUEST = { id: 'w' as WorkerId, running: 0, commandsSeen: 0 }
const LOST: LeaseRef = { jobId: '0190a000-0000-7000-8000-000000000001' as JobId, lease: 7 as LeaseNumber }

function newsOf(epoch: number): DispatchNews {
  const row = { queue: QUEUE, mode: 'token', epoch, birth: '1', redisId: 'r', paused: false } as unknown as DispatchRow // what a keeper reads
  return { rows: [row], epoch, serverChanged: false }
}

function place() {
  const clock = new ManualClock()
  const inFlight = new InFlight(createInFlight([QUEUE], 1))
  /** What PostgreSQL says now. */
  const state = { epoch: 1, epochSeen: 0, isReachable: true, lost: [] as LeaseRef[], adoptions: 0 }
  const keeper = (): Keeper => {
    const ledger = {
      beat: async () => ({
        alive: true,
        cancels: [],
        commands: [],
        epochSeen: state.epochSeen,
        news: newsOf(state.epoch),
      }),
      async adopt(_: WorkerId, epoch: number) {
        state.adoptions += 1
        if (!state.isReachable) throw new Error('not reachable')
        state.epochSeen = epoch
        return state.lost.splice(0)
      },
    } as unknown as SessionLedger // nothing is marked here
    return new Keeper({
      ledger,
      worker: REQUEST.id,
      inFlight: inFlight.shared,
      monoMs: () => clock.monoMs(),
      timer: (delayMs, fire) => clock.timer(delayMs, fire),
      markAfterMs: 250,
      markEveryMs: 100,
      onLost: () => undefined,
    })
  }
  return { clock, inFlight, state, keeper }
}

async function beat(keeper: Keeper): Promise<readonly LeaseRef[]> {
  const { lost = [] } = await keeper.beat(REQUEST)
  await keeper.adopted()
  return lost
}

test('the gate is shut until the epoch is adopted, and open for that epoch alone', async () => {
  const { inFlight, keeper } = place()
  expect(inFlight.mayStart(0, 1)).toBe(false)
  await beat(keeper())
  expect([inFlight.mayStart(0, 1), inFlight.mayStart(0, 2)]).toEqual([true, false])
})

test('a keeper that follows another does not shut a gate that is open for the same epochs', async () => {
  const { inFlight, state, keeper } = place()
  const first = keeper()
  await beat(first)
  first.rest()
  const second = keeper()
  await beat(second)
  expect([state.adoptions, inFlight.mayStart(0, 1)]).toEqual([1, true])
  state.epoch = 2
  await beat(second)
  expect([state.adoptions, inFlight.mayStart(0, 1), inFlight.mayStart(0, 2)]).toEqual([2, false, true])
})

test('a keeper that follows one whose adoption is not known to have come about adopts by itself', async () => {
  const { inFlight, state, keeper } = place()
  state.isReachable = false
  const first = keeper()
  await beat(first)
  first.rest()
  expect([state.adoptions, inFlight.mayStart(0, 1)]).toEqual([1, false])
  state.isReachable = true
  await beat(keeper())
  expect([state.adoptions, inFlight.mayStart(0, 1)]).toEqual([2, true])
})

test('an adoption that PostgreSQL has lost is made again, with the gate shut meanwhile', async () => {
  const { inFlight, state, keeper } = place()
  const one = keeper()
  await beat(one)
  await beat(one)
  expect(state.adoptions).toBe(1)
  state.epochSeen = 0
  state.isReachable = false
  await beat(one)
  expect([state.adoptions, inFlight.mayStart(0, 1)]).toEqual([2, false])
  state.isReachable = true
  await beat(keeper())
  expect([state.epochSeen, inFlight.mayStart(0, 1)]).toEqual([1, true])
})

test('whoever opens a gate that was shut again meanwhile changes nothing for those who look', () => {
  const shared = createInFlight([QUEUE], 1)
  const [first, second] = [new InFlightView(shared), new InFlightView(shared)]
  const worker = new InFlight(shared)
  // The other comes between its look at the gate and its writing.
  const epochs = Object.assign([1], {
    entries() {
      expect(second.open(second.close(), 2, [2])).toBe(true)
      return [1].entries()
    },
  })
  expect(first.open(first.close(), 1, epochs)).toBe(false)
  expect([worker.mayStart(0, 2), worker.mayStart(0, 1), second.isOpenFor(2, [2])]).toEqual([true, false, true])
})

test('a keeper that has seen less does not open the gate for an older epoch again', async () => {
  const { clock, inFlight, state, keeper } = place()
  const [older, newer] = [keeper(), keeper()]
  state.isReachable = false
  await beat(older)
  expect(inFlight.isOpen).toBe(false)
  state.isReachable = true
  state.epoch = 2
  await beat(newer)
  expect(inFlight.mayStart(0, 2)).toBe(true)
  await clock.advance(1_000)
  expect([inFlight.mayStart(0, 1), inFlight.mayStart(0, 2)]).toEqual([false, true])
})

test('a keeper that rests leaves the gate to the one that keeps the session now', async () => {
  const { clock, inFlight, state, keeper } = place()
  const [main, thread] = [keeper(), keeper()]
  state.isReachable = false
  await beat(main)
  main.rest()
  const { adoptions } = state
  state.isReachable = true
  await clock.advance(1_000)
  expect(state.adoptions).toBe(adoptions)
  await beat(thread)
  thread.rest()
  expect(inFlight.mayStart(0, 1)).toBe(true)
})

test('whoever keeps the session again adopts again: a thread may have died with the gate shut', async () => {
  const { inFlight, state, keeper } = place()
  const [main, thread] = [keeper(), keeper()]
  await beat(main)
  main.rest()
  state.isReachable = false
  state.epoch = 2
  await beat(thread)
  thread.rest()
  expect(inFlight.isOpen).toBe(false)
  state.isReachable = true
  main.again()
  await beat(main)
  expect(inFlight.mayStart(0, 2)).toBe(true)
})

test('a lost lease is told with three beats, since an answer may come too late to be read', async () => {
  const { state, keeper } = place()
  const kept = keeper()
  state.lost = [LOST]
  await beat(kept)
  expect([await beat(kept), await beat(kept), await beat(kept), await beat(kept)]).toEqual([[LOST], [LOST], [LOST], []])
})
