// A doubtful session looks at what PostgreSQL calls its own: beside no claim, and again when late statements have ended.
import { expect, test } from 'vitest'
import type { JobId, LeaseNumber, LeaseRef, WorkerId } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { Doubt } from '../../src/backends/hybrid/doubt.ts'
import type { Hybrid } from '../../src/backends/hybrid/hybrid.ts'
import type { Keeper } from '../../src/backends/hybrid/keeper.ts'
import { checkMarked } from '../../src/backends/hybrid/self-check.ts'
import { Session } from '../../src/backends/hybrid/session.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { gate } from '../features/support.ts'

test('a doubt ends with a look that began after late statements have ended', () => {
  const doubt = new Doubt(5_000)
  expect(doubt.isDue(0)).toBe(false)
  doubt.raise(1_000)
  expect(doubt.isDue(1_000)).toBe(true)
  doubt.looked(1_001)
  expect([doubt.isDue(5_999), doubt.isDue(6_000)]).toEqual([false, true])
  doubt.looked(6_000)
  expect(doubt.isDue(100_000)).toBe(false)
})

test('a doubt that is raised during a look outlives it', () => {
  const doubt = new Doubt(5_000)
  doubt.raise(0)
  doubt.raise(7_000)
  doubt.looked(6_000)
  expect(doubt.isDue(7_000)).toBe(true)
})

interface Place {
  readonly session: Session
  readonly hybrid: Hybrid
  readonly clock: ManualClock
  readonly given: LeaseRef[]
  /** Fences that were asked for. */
  readonly fences: number[]
}

const ROW: LeaseRef = { jobId: '0190a000-0000-7000-8000-000000000001' as JobId, lease: 7 as LeaseNumber }

/** A session that PostgreSQL says runs ROW; nothing else of a hybrid is asked. */
function place(): Place {
  const clock = new ManualClock()
  const given: LeaseRef[] = []
  const fences: number[] = []
  const holdings = async (_: WorkerId, claimNo: number): Promise<readonly LeaseRef[]> => {
    fences.push(claimNo)
    return [ROW]
  }
  const giveBack = async (_: WorkerId, refs: readonly LeaseRef[]): Promise<number> => given.push(...refs)
  const parts = {
    runtime: createRuntime({ clock }),
    times: HYBRID_TIMES,
    store: { jobs: { holdings } },
    ledger: { giveBack },
  }
  const session = new Session({
    worker: { id: 'w' as WorkerId, host: 'h', pid: 1, queues: ['q'], concurrency: 1 },
    times: { monoMs: () => clock.monoMs(), lateMs: 5_000 },
    keeperOf: () => ({}) as Keeper, // not asked here
  })
  return { session, hybrid: parts as unknown as Hybrid, clock, given, fences } // the parts a look needs
}

test('a look waits for the claim under way: what that brings is not given back', async () => {
  const { session, hybrid, given } = place()
  const brought = gate()
  session.claiming.add(brought.opened)
  session.doubt()
  const looking = checkMarked(hybrid, session, 1)
  const flight = { ...ROW, queueIndex: 0, field: '', queue: 'q', attemptCount: 0, crashCount: 0 }
  session.inFlight.add(flight, 0)
  brought.open()
  await looking
  expect(given).toEqual([])
})

test('a claim that comes during a look waits for it', async () => {
  const { session, hybrid, fences } = place()
  session.doubt()
  const order: string[] = []
  const first = checkMarked(hybrid, session, 1).then(() => order.push('first'))
  const second = checkMarked(hybrid, session, 2).then(() => order.push('second'))
  expect(session.checking).toBeDefined()
  await Promise.all([first, second])
  expect(fences).toEqual([1])
  expect(order).toEqual(['first', 'second'])
  expect(session.checking).toBeUndefined()
})

test('a claim that does not end is fenced, and the look goes on without it', async () => {
  const { session, hybrid, clock, given } = place()
  session.claiming.add(gate().opened)
  session.doubt()
  const looking = checkMarked(hybrid, session, 3)
  await clock.advance(HYBRID_TIMES.raceMs + 1)
  await looking
  expect(session.fencedClaimNo).toBe(3)
  expect(given).toEqual([ROW])
})
