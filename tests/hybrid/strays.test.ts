// Tokens that are a session's in Redis and were never handed out: what a lost answer or a hand-over that fails leaves behind
// comes back, whatever the worker does next.
import { afterEach, expect, test } from 'vitest'
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { Handed } from '../../src/backends/hybrid/ports.ts'
import { relayOnce } from '../../src/backends/hybrid/relay.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { JobId, WorkerId } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { newJob } from './ledger-world.ts'

const QUEUE = 'mail'
const OTHER = 'letters'
const WORKER = 'worker' as WorkerId // as given
const BEAT_MS = 500
let backend: Backend | undefined

afterEach(async () => {
  await backend?.stop()
  backend = undefined
})

/** A process with a worker that calls the backend by hand. */
async function setup() {
  const clock = new ManualClock()
  const world = new World(clock)
  const trouble: Trouble = { isAway: false, losesTakes: false, isMute: false, late: null, starts: 0 }
  const race = troubled(new MemoryRace(), trouble)
  const composed = composeHybrid({
    runtime: createRuntime({ clock, random: () => 0.5 }),
    store: backendOver(world),
    ledger: memoryLedger(world, new LedgerState()),
    race,
    times: HYBRID_TIMES,
    isConfirmed: () => false,
    threadMonoMs: () => clock.monoMs(),
  })
  const { hybrid } = composed
  const own = (backend = composed.backend)
  await own.start()
  const queues = [QUEUE, OTHER]
  for (const queue of queues) {
    await own.queues.configure(queue, {})
    hybrid.epochs.openTokens(queue)
  }
  await own.workers.register({ id: WORKER, host: 'h', pid: 1, queues, concurrency: 10 })
  /** With beats of the worker. */
  const pass = async (ms: number): Promise<void> => {
    for (let passedMs = 0; passedMs < ms; passedMs += BEAT_MS) {
      const beat = own.workers.beat({ id: WORKER, running: 0, commandsSeen: 0 })
      await clock.advance(BEAT_MS)
      await beat
    }
  }
  await pass(2_000)
  const statusOf = (id: JobId) => world.jobs.get(id)!.status
  const claim = (claimNo: number) =>
    own.jobs.claim({ worker: WORKER, claimNo, queues: [QUEUE], limit: 5, stands: claimNo === 1 })
  /** Minted by its insert, which knows how full the lanes are. */
  const insert = async (queue = QUEUE): Promise<JobId> => {
    const tag = hybrid.view.tag(queue)!
    const ask = { pusher: 'p', tokens: [], backlog: null, window: 10 } as const
    hybrid.lanes.learn(queue, tag, (await race.push(queue, tag, ask)).value!)
    const job = newJob(queue)
    await own.jobs.insert([job])
    await clock.advance(1)
    return job.id
  }
  return { clock, hybrid, own, trouble, pass, statusOf, claim, insert }
}

interface Trouble {
  /** No call arrives. */
  isAway: boolean
  losesTakes: boolean
  isMute: boolean
  /** Takes are refused; a copy of each is kept here, and comes when it is called. */
  late: (() => unknown)[] | null
  /** So often it was connected. */
  starts: number
}

function troubled(race: MemoryRace, trouble: Trouble): MemoryRace {
  const lost = new MillraceError('STORE_UNAVAILABLE', 'Redis is away', { retryable: true })
  return new Proxy(race, {
    get(target, name) {
      const method: unknown = Reflect.get(target, name)
      if (typeof method !== 'function') return method
      if (name === 'listen') return method.bind(target)
      if (name === 'hear')
        return (worker: WorkerId, onHanded: (handed: Handed) => void) =>
          target.hear(worker, (handed) => trouble.isMute || onHanded(handed))
      return async (...args: readonly unknown[]) => {
        if (trouble.isAway) throw lost
        if (name === 'start') trouble.starts += 1
        if (name === 'take' && trouble.late !== null) {
          trouble.late.push(() => method.apply(target, args))
          return { refused: { why: 'EPOCH', redisId: 'redis', epoch: null }, value: null }
        }
        const reply: unknown = await method.apply(target, args)
        if (name === 'take' && trouble.losesTakes) throw lost
        return reply
      }
    },
  })
}

test('H2 what a lost answer left with a worker that takes nothing more goes back when Redis answers again', async () => {
  const { hybrid, trouble, pass, statusOf, claim, insert } = await setup()
  const id = await insert()
  expect(statusOf(id)).toBe('dispatched')
  trouble.losesTakes = true
  expect((await claim(2)).jobs).toEqual([])
  // Others can use this Redis, so its epoch stays.
  hybrid.epochs.closeTokens = () => undefined
  trouble.isAway = true
  await pass(2_000)
  expect([hybrid.watch.isOpen(QUEUE), statusOf(id)]).toEqual([true, 'dispatched'])
  trouble.isAway = trouble.losesTakes = false
  await pass(2_000)
  expect([hybrid.watch.isOpen(QUEUE), hybrid.sessions.get(WORKER)!.queues.get(QUEUE)!.isSuspect]).toEqual([
    false,
    false,
  ])
  expect(statusOf(id)).toBe('queued')
  await relayOnce(hybrid, QUEUE, new Map(), true)
  const { jobs } = await claim(3)
  expect(jobs.map((job) => [job.id, job.attemptCount, job.crashCount])).toEqual([[id, 0, 0]])
})

test('H2 what a lost answer left with a worker that takes nothing more goes back although Redis was well all the time', async () => {
  const { hybrid, trouble, pass, statusOf, claim, insert } = await setup()
  const id = await insert()
  trouble.losesTakes = true
  expect((await claim(2)).jobs).toEqual([])
  trouble.losesTakes = false
  expect([hybrid.watch.isOpen(QUEUE), statusOf(id)]).toEqual([false, 'dispatched'])
  await pass(2_000)
  expect([hybrid.watch.isOpen(QUEUE), statusOf(id)]).toEqual([false, 'queued'])
})

test('H2 what a copy of a refused take brings, when the epoch has been opened meanwhile, goes back', async () => {
  const { hybrid, trouble, pass, statusOf, claim, insert } = await setup()
  hybrid.epochs.refused = () => undefined
  const id = await insert()
  const late = (trouble.late = [])
  expect((await claim(2)).jobs).toEqual([])
  trouble.late = null
  for (const arrive of late as (() => unknown)[]) await arrive()
  await pass(2_000)
  expect([late.length, statusOf(id)]).toEqual([1, 'queued'])
})

test('H2 a look that PostgreSQL holds up keeps no other queue waiting', async () => {
  const { own, hybrid, clock, trouble, insert } = await setup()
  await insert(QUEUE)
  const other = await insert(OTHER)
  trouble.losesTakes = true
  await own.jobs.claim({ worker: WORKER, claimNo: 1, queues: [QUEUE], limit: 1 })
  trouble.losesTakes = false
  hybrid.ledger.giveBack = () => new Promise(() => undefined)
  const claiming = own.jobs.claim({ worker: WORKER, claimNo: 2, queues: [QUEUE, OTHER], limit: 5 })
  await clock.advance(HYBRID_TIMES.raceMs)
  expect((await claiming).jobs.map((job) => job.id)).toEqual([other])
})

test('H2 a backend that was stopped and is started again connects to Redis anew', async () => {
  const { own, trouble } = await setup()
  expect(trouble.starts).toBe(1)
  await own.stop()
  await own.start()
  expect(trouble.starts).toBe(2)
})

test('D3 a hand-over that was not heard goes back also where the next claim has no room to ask its queue', async () => {
  const { own, trouble, pass, statusOf, insert } = await setup()
  await own.handOvers!.listen(
    WORKER,
    () => true,
    () => undefined,
  )
  const ask = { worker: WORKER, queues: [QUEUE, OTHER], limit: 1 }
  expect((await own.jobs.claim({ ...ask, claimNo: 1, stands: true })).jobs).toEqual([])
  trouble.isMute = true
  const unheard = await insert(OTHER)
  const heard = await insert(QUEUE)
  expect((await own.jobs.claim({ ...ask, claimNo: 2 })).jobs.map((job) => job.id)).toEqual([heard])
  expect(statusOf(unheard)).toBe('dispatched')
  // The worker is busy from here on: nobody claims.
  await pass(2_000)
  expect(statusOf(unheard)).toBe('queued')
})

test('D3 a hand-over that cannot be taken is told, makes the worker look, and the job is handed out after all', async () => {
  const { hybrid, own, clock, claim, insert, statusOf } = await setup()
  const told: string[] = []
  await own.handOvers!.listen(
    WORKER,
    () => {
      throw new Error('no room')
    },
    (why) => told.push(why),
  )
  await claim(1)
  const id = await insert()
  await clock.advance(10)
  expect(told).toEqual(['in-doubt'])
  const held = await own.jobs.holdings(WORKER, 1)
  expect(held.map(({ jobId }) => jobId)).toEqual([id])
  // The worker does not run it; its queue is suspect, so the next claim looks there as well.
  for (const { lease } of held) hybrid.sessions.get(WORKER)!.inFlight.remove(lease)
  expect((await claim(2)).jobs).toEqual([])
  expect(statusOf(id)).toBe('queued')
  await relayOnce(hybrid, QUEUE, new Map(), true)
  const { jobs } = await claim(3)
  expect(jobs.map((job) => job.id)).toEqual([id])
})
