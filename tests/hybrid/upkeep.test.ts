// Relay, reconcile and reaper go on with the queues that can be worked on, whatever is wrong with others.
import { afterEach, expect, test } from 'vitest'
import { composeHybrid } from '../../src/backends/hybrid/compose.ts'
import { LedgerState, memoryLedger } from '../../src/backends/hybrid/memory-ledger.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { Ledger, Race } from '../../src/backends/hybrid/ports.ts'
import { HYBRID_TIMES } from '../../src/backends/hybrid/times.ts'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { MillraceError } from '../../src/core/errors.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'
import { complete, newJob } from './ledger-world.ts'
import { passed, session, tokens } from './race-setup.ts'

const QUEUES = ['bad', 'good'] as const
const stops: (() => Promise<void>)[] = []

afterEach(async () => {
  for (const stop of stops.splice(0).toReversed()) await stop()
})

/** Two queues with tokens; calls named `<method> <queue>` fail. */
async function setup() {
  const clock = new ManualClock()
  const world = new World(clock)
  const memory = new MemoryRace()
  const failing = new Set<string>()
  const backendParts = { runtime: createRuntime({ clock, random: () => 0.5 }), store: backendOver(world) }
  const { backend, hybrid } = composeHybrid({
    ...backendParts,
    ledger: failingPort<Ledger>(memoryLedger(world, new LedgerState()), failing),
    race: failingPort<Race>(memory, failing),
    times: HYBRID_TIMES,
    isConfirmed: () => false,
    threadMonoMs: () => clock.monoMs(),
  })
  await backend.start()
  stops.push(() => backend.stop())
  for (const queue of QUEUES) {
    await backend.queues.configure(queue, {})
    hybrid.epochs.openTokens(queue)
  }
  await clock.advance(10)
  const start = async (): Promise<void> => {
    for (const service of backend.upkeep!({ isLeading: () => true })) {
      await service.start()
      stops.push(() => service.stop())
    }
  }
  const insert = async (): Promise<void> => {
    for (const queue of QUEUES) await backendParts.store.jobs.insert([newJob(queue)])
  }
  const push = (queue: string, list: readonly ReturnType<typeof tokens>[number][], pusher: string) =>
    memory.push(queue, hybrid.view.tag(queue)!, { pusher, tokens: list, backlog: null, window: 100 }).then(passed)
  const waiting = (): readonly number[] => QUEUES.map((queue) => memory.inspect(queue).lanes.flat().length)
  return { clock, world, hybrid, backend, memory, failing, start, insert, push, waiting }
}

function failingPort<Port extends object>(port: Port, failing: ReadonlySet<string>): Port {
  const guard = (name: string, call: unknown): unknown =>
    typeof call !== 'function'
      ? call
      : (...args: readonly unknown[]): unknown =>
          failing.has(`${name} ${String(args[0])}`)
            ? Promise.reject(new MillraceError('STORE_UNAVAILABLE', `no ${name}`))
            : Reflect.apply(call, port, args)
  const get = (name: string): unknown => guard(name, Reflect.get(port, name, port))
  const names = [...Object.keys(port), ...Object.getOwnPropertyNames(Object.getPrototypeOf(port))]
  // The same methods with the same types; only that some fail.
  return Object.fromEntries(names.map((name) => [name, get(name)])) as Port
}

test('H1 a queue whose pushes fail does not keep the relay from the others', async () => {
  const { clock, failing, start, insert, waiting } = await setup()
  failing.add('push bad')
  await insert()
  await start()
  await clock.advance(100)
  expect(waiting()).toEqual([0, 1])
})

test('H1 a queue that cannot be told of a change does not keep the relay from the others', async () => {
  const { clock, failing, start, insert, waiting } = await setup()
  failing.add('config bad')
  await insert()
  await start()
  await clock.advance(100)
  expect(waiting()).toEqual([0, 1])
})

test.each(['requeueOld bad', 'audit bad', 'unmarked bad'])(
  'H2 reconcile finds the lost tokens of a queue although another fails at %s',
  async (call) => {
    const { clock, world, failing, start, insert, memory, waiting } = await setup()
    await insert()
    await start()
    await clock.advance(100)
    expect(waiting()).toEqual([1, 1])
    failing.add(call)
    const { lanes, held, state } = memory.inspect('good')
    lanes[1].length = 0
    state!.lengths[1] = 0
    for (const field of held.keys()) if (field !== '#') held.delete(field)
    await clock.advance(5_000)
    expect(waiting()[1]).toBe(1)
    expect([...world.jobs.values()].map(({ lease }) => lease)).toHaveLength(2)
  },
)

test('H2 the reaper buries the dead of a queue although another one fails', async () => {
  const { clock, failing, start, hybrid, memory, push } = await setup()
  await push('good', tokens(1_000, 1), 'p')
  const taken = { session: session('dead-one'), c: 1, most: 1, done: [] }
  passed(await memory.take('good', hybrid.view.tag('good')!, taken))
  failing.add('audit bad')
  await start()
  await clock.advance(1_200)
  expect([...memory.inspect('good').held.keys()]).toEqual(['#'])
})

test('H3 with one breaker open the leader goes on with the other queues, and would rather not lead', async () => {
  const { clock, backend, hybrid, start, insert, waiting, failing } = await setup()
  failing.add('probe bad')
  hybrid.watch.unusable('bad')
  expect(backend.mayLead!()).toBe(false)
  await insert()
  await start()
  await clock.advance(100)
  expect(waiting()).toEqual([0, 1])
  failing.clear()
  await clock.advance(100)
  expect(backend.mayLead!()).toBe(true)
})

test('H1 Redis forgets who pushed long ago, also when there is nothing to ask about', async () => {
  const { clock, start, memory } = await setup()
  const { pushers, floor } = memory.inspect('good').state!
  pushers.set('old', floor).set('new', 1_000_000)
  await start()
  await clock.advance(60_000)
  expect([...pushers.keys()]).toEqual(['new'])
})

test('what a worker held in Redis comes due with its death, and not a pass of the reaper later', async () => {
  const { backend, failing, job } = await withOneTaken()
  const [{ id, beat } = { id: WORKER, beat: 0 }] = await backend.workers.list()
  // Redis of another queue being away does not matter.
  failing.add('audit bad')
  expect(await backend.workers.declareDead([{ id, beat }])).toEqual([WORKER])
  expect((await backend.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([job.id])
})

const WORKER = 'w' as WorkerId

/** A worker has taken the token of one job of each of its queues. */
async function withOneTaken(queues: readonly string[] = ['good']) {
  const found = await setup()
  const { backend, clock, memory } = found
  await backend.workers.register({ id: WORKER, host: 'h', pid: 1, queues, concurrency: 2 })
  await backend.workers.beat({ id: WORKER, running: 0, commandsSeen: 0 })
  await backend.jobs.insert(queues.map((queue) => newJob(queue)))
  await found.start()
  await clock.advance(100)
  const { jobs } = await backend.jobs.claim({ worker: WORKER, claimNo: 1, queues, limit: 2 })
  expect(jobs).toHaveLength(queues.length)
  const job = jobs.at(-1)!
  return { ...found, jobs, job, field: `${job.id}:${job.lease}`, redis: memory.inspect('good') }
}

test('a worker that stops leaves nothing in Redis, and nobody has to look for it', async () => {
  const { backend, job, field, redis, failing } = await withOneTaken()
  await backend.jobs.apply([complete({ jobId: job.id, lease: job.lease })])
  expect([...redis.held.keys()]).toEqual(['#', field])
  // Without the reaper.
  failing.add('audit good')
  await backend.workers.retire(WORKER)
  expect([...redis.held.keys()]).toEqual(['#'])
  expect([...redis.state!.sessions.keys()]).toEqual([])
})

test.each(['holdings good', 'drop good'])(
  'where %s fails, a worker stops all the same and the reaper clears up',
  async (call) => {
    const { backend, clock, failing, job, field, redis } = await withOneTaken()
    await backend.jobs.apply([complete({ jobId: job.id, lease: job.lease })])
    failing.add(call)
    await backend.workers.retire(WORKER)
    expect([...redis.held.keys()]).toEqual(['#', field])
    failing.clear()
    await clock.advance(3_000)
    expect([...redis.held.keys()]).toEqual(['#'])
    expect([...redis.state!.sessions.keys()]).toEqual([])
  },
)

test('a worker that stops with something in flight leaves it to the reaper', async () => {
  const { backend, failing, field, redis } = await withOneTaken()
  failing.add('audit good')
  await backend.workers.retire(WORKER)
  expect(redis.held.get(field)).toBe(`${WORKER}/1`)
  expect([...redis.state!.sessions.keys()]).toEqual([WORKER])
})

test('a worker that stops leaves one queue although another fails', async () => {
  const { backend, failing, jobs, redis } = await withOneTaken(QUEUES)
  await backend.jobs.apply(jobs.map(({ id, lease }) => complete({ jobId: id, lease })))
  failing.add('holdings bad').add('audit good').add('audit bad')
  await backend.workers.retire(WORKER)
  expect([...redis.held.keys()]).toEqual(['#'])
  expect([...redis.state!.sessions.keys()]).toEqual([])
})

test('a worker whose take had an unknown outcome leaves what it may hold to the reaper', async () => {
  const { backend, failing, job, field, redis } = await withOneTaken()
  await backend.jobs.apply([complete({ jobId: job.id, lease: job.lease })])
  failing.add('take good').add('audit good')
  await backend.jobs.claim({ worker: WORKER, claimNo: 2, queues: ['good'], limit: 1 })
  await backend.workers.retire(WORKER)
  expect([...redis.held.keys()]).toEqual(['#', field])
  expect([...redis.state!.sessions.keys()]).toEqual([WORKER])
})
