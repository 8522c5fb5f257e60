// When an insert may mint: only where there is room, in every lane that it has jobs for, and as far as Redis has memory.
import { afterEach, expect, test } from 'vitest'
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import { DispatchView } from '../../src/backends/hybrid/dispatch-view.ts'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import { TOKEN_BODY_MAX } from '../../src/backends/hybrid/ports.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { readToken, tokenOfNew } from '../../src/backends/hybrid/token-text.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { DEFAULT_LANES } from '../../src/core/priority.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import type { Backend } from '../../src/store/ports.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { newJob } from './ledger-world.ts'

const QUEUE = 'mail'
const LOW = 300
let backend: Backend | undefined

afterEach(async () => {
  await backend?.stop()
  backend = undefined
})

/** A process that only enqueues. */
async function setup() {
  const clock = new ManualClock()
  const world = new World(clock)
  const race = new MemoryRace()
  const composed = composeHybrid({
    runtime: createRuntime({ clock, random: () => 0.5 }),
    store: backendOver(world),
    ledger: memoryLedger(world, new LedgerState()),
    race,
    times: { ...HYBRID_TIMES, window: 10, windowTotal: 60 },
    isConfirmed: () => false,
    threadMonoMs: () => clock.monoMs(),
  })
  const { hybrid } = composed
  const own = (backend = composed.backend)
  await own.start()
  await own.queues.configure(QUEUE, {})
  hybrid.epochs.openTokens(QUEUE)
  await clock.advance(10)
  const tag = hybrid.view.tag(QUEUE)!
  const ask = { pusher: 'p', tokens: [], backlog: null, window: 10 } as const
  /** The process knows how full the lanes are. */
  const learn = async (): Promise<void> => hybrid.lanes.learn(QUEUE, tag, (await race.push(QUEUE, tag, ask)).value!)
  const insert = async (...priorities: readonly number[]): Promise<readonly string[]> => {
    const jobs = priorities.map((priority) => newJob(QUEUE, { priority }))
    await own.jobs.insert(jobs)
    await clock.advance(1)
    return jobs.map(({ id }) => world.jobs.get(id)!.status)
  }
  return { clock, race, tag, ask, hybrid, learn, insert, backend: own }
}

test('H1 a call with jobs of several lanes takes the fast path only if all of these have no backlog', async () => {
  const { race, tag, ask, learn, insert } = await setup()
  await race.push(QUEUE, tag, { ...ask, backlog: [false, false, true] })
  await learn()
  expect(await insert(5)).toEqual(['dispatched'])
  expect(await insert(5, LOW)).toEqual(['queued', 'queued'])
  expect(await insert(LOW, 5)).toEqual(['queued', 'queued'])
})

test('H1 a call with jobs of several lanes is counted lane by lane', async () => {
  const { race, learn, insert } = await setup()
  await learn()
  const most = 10
  expect(new Set(await insert(...Array<number>(most - 1).fill(LOW)))).toEqual(new Set(['dispatched']))
  expect(await insert(5, LOW, LOW)).toEqual(['queued', 'queued', 'queued'])
  expect(new Set(await insert(LOW, ...Array<number>(most).fill(5)))).toEqual(new Set(['dispatched']))
  expect(race.inspect(QUEUE).lanes.map((lane) => lane.length)).toEqual([most, 0, most])
})

test('H1 a process that only enqueues sends nothing to a Redis whose memory is full', async () => {
  const { clock, race, learn, insert } = await setup()
  await learn()
  race.memory = () => Promise.resolve({ used: 96, max: 100 })
  await clock.advance(6_000)
  await learn()
  expect(await insert(5)).toEqual(['queued'])
  race.memory = () => Promise.resolve({ used: 50, max: 100 })
  await clock.advance(6_000)
  await learn()
  expect(await insert(5)).toEqual(['dispatched'])
})

test('H6 no news is not the news that the server of PostgreSQL is the known one', () => {
  const view = new DispatchView()
  view.learn({ rows: [], epoch: 7, serverChanged: true })
  view.learn({ rows: [], epoch: 0, serverChanged: false })
  expect(view.serverChanged).toBe(true)
  view.learn({ rows: [], epoch: 8, serverChanged: false })
  expect(view.serverChanged).toBe(false)
})

test('H1 a long metadata leaves less room for the payload in a token', () => {
  const facts = { lease: 1, nowMs: 0, priority: 100, maxAttempts: 3, lanes: DEFAULT_LANES }
  const meta = 'x'.repeat(TOKEN_BODY_MAX - 120)
  const [short, long] = [50, 200].map((length) => newJob(QUEUE, { meta, payload: 'y'.repeat(length) }))
  expect(readToken(tokenOfNew(short!, facts).text, QUEUE)).toMatchObject({ needsBody: false, job: { meta } })
  expect(readToken(tokenOfNew(long!, facts).text, QUEUE)).toMatchObject({ needsBody: true, job: { meta, payload: '' } })
})

test('H1 a process that asks for one queue all the time still hears of the others now and then', async () => {
  const { clock, hybrid, backend: own } = await setup()
  const asked: string[] = []
  const refresh = hybrid.epochs.refresh.bind(hybrid.epochs)
  hybrid.epochs.refresh = (queues) => {
    asked.push(queues?.join() ?? 'all')
    return refresh(queues)
  }
  for (let passedMs = 0; passedMs < 21_000; passedMs += 300) {
    await own.jobs.insert([newJob('without-tokens')])
    await clock.advance(300)
  }
  expect(asked.filter((queues) => queues === 'all').length).toBeGreaterThanOrEqual(2)
})
