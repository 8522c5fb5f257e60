// The registry of worker lives: heartbeats, death, leadership, commands.
import { expect } from 'vitest'
import { decideExpiry } from '../../src/core/decide.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { DEFAULT_RETRY } from '../../src/core/retry.ts'
import type { WorkerRecord } from '../../src/store/worker-store.ts'
import { dump } from './dump.ts'
import { completed, failed } from './outcomes.ts'
import { present } from './world.ts'
import type { Setup, World } from './world.ts'

const ROLE = { role: 'maintenance', ttlMs: 10_000 } as const

export function workers({ test }: Setup): void {
  test('a registered worker is listed alive, and registering it again changes nothing', async (world) => {
    const id = 'w1' as WorkerId
    const life = { id, host: 'h', pid: 7, queues: ['a', 'b'], concurrency: 3 }
    await world.workers.register(life)
    const nowMs = world.clock.nowMs()
    expect(await record(world, id)).toMatchObject({
      ...life,
      state: 'alive',
      running: 0,
      startedAtMs: nowMs,
      lastBeatAtMs: nowMs,
    })
    const before = await dump(world.backend)
    await world.clock.advance(5)
    await world.workers.register({ ...life, pid: 8 })
    expect(await dump(world.backend)).toEqual(before)
  })

  test('a beat raises the beat number and shows what runs', async (world) => {
    const { id } = await world.worker()
    const { beat } = await record(world, id)
    await world.clock.advance(100)
    expect(await world.beat(id, { running: 4 })).toEqual({
      alive: true,
      cancels: [],
      commands: [],
    })
    const later = await record(world, id)
    expect(later.beat).toBeGreaterThan(beat)
    expect(later).toMatchObject({ running: 4, lastBeatAtMs: world.clock.nowMs() })
  })

  test('a beat shows how long the loop of the worker has been blocked', async (world) => {
    const { id } = await world.worker()
    expect((await record(world, id)).blockedMs).toBe(0)
    await world.beat(id, { blockedMs: 3_000 })
    expect((await record(world, id)).blockedMs).toBe(3_000)
    await world.beat(id, { blockedMs: 0 })
    expect((await record(world, id)).blockedMs).toBe(0)
  })

  test('P4 lives that ended long ago and hold nothing are forgotten, where the store offers it; others are not', async (world) => {
    const forget = world.workers.forget?.bind(world.workers)
    const ids = async () => (await world.workers.list()).map(({ id }) => id)
    const [dead, alive] = [await world.worker(), await world.worker()]
    await world.add({})
    await dead.claimOne()
    await world.kill(dead)
    // A store may wait for claims of the dead that are still under way before it believes that they hold nothing.
    await world.clock.advance(600_000)
    await world.beat(alive.id)
    const [due] = await world.jobs.due('expired', 10)
    expect(await forget?.(500_000, 10)).toBe(forget && 0)
    expect(await ids()).toEqual([dead.id, alive.id])
    await world.jobs.apply([
      decideExpiry(present(due, 'its job').job, { retry: DEFAULT_RETRY }, () => 0, 'worker-dead'),
    ])
    await world.jobs.due('expired', 10)
    expect(await forget?.(700_000, 10)).toBe(forget && 0)
    expect(await forget?.(500_000, 10)).toBe(forget && 1)
    expect(await ids()).toEqual(forget ? [alive.id] : [dead.id, alive.id])
    expect(await forget?.(500_000, 10)).toBe(forget && 0)
  })

  test('D1 a beat of an unknown or dead worker says so and does not bring it back', async (world) => {
    expect((await world.beat('ghost' as WorkerId)).alive).toBe(false)
    const worker = await world.worker()
    await world.kill(worker)
    expect((await world.beat(worker.id, { running: 1 })).alive).toBe(false)
    expect((await record(world, worker.id)).state).toBe('dead')
  })

  test('D1 a dead worker cannot come back by registering again', async (world) => {
    const worker = await world.worker()
    await world.kill(worker)
    await world.workers.register({ id: worker.id, host: 'h', pid: 1, queues: [], concurrency: 1 })
    expect((await world.beat(worker.id)).alive).toBe(false)
  })

  test('D1 a worker is declared dead only if its beat is still the one that was seen', async (world) => {
    const { id } = await world.worker()
    const seen = { id, beat: (await record(world, id)).beat }
    await world.beat(id)
    expect(await world.workers.declareDead([seen])).toEqual([])
    expect((await record(world, id)).state).toBe('alive')
    const now = { id, beat: (await record(world, id)).beat }
    expect(await world.workers.declareDead([now])).toEqual([id])
    expect(await world.workers.declareDead([now])).toEqual([])
  })

  test('D1 declaring one worker dead leaves the others alone', async (world) => {
    const [one, two] = [await world.worker(), await world.worker()]
    await world.add({}, {})
    await one.claimOne()
    const kept = await two.claimOne()
    await world.kill(one)
    expect((await record(world, two.id)).state).toBe('alive')
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.worker)).toEqual([one.id])
    expect(await world.apply(completed(kept))).toEqual(['applied'])
  })

  test('D1 the runs of a dead worker are due as expired until somebody settles them', async (world) => {
    await world.add({}, {}, {})
    const worker = await world.worker()
    const runs = await worker.claim(2)
    expect(await world.jobs.due('expired', 10)).toEqual([])
    await world.kill(worker)
    const due = await world.jobs.due('expired', 10)
    expect(due.map(({ job }) => [job.id, job.lease]).sort()).toEqual(runs.map(({ id, lease }) => [id, lease]).sort())
    expect(await world.jobs.due('expired', 1)).toHaveLength(1)
    await world.apply(failed(runs[0]!), completed(runs[1]!))
    expect(await world.jobs.due('expired', 10)).toEqual([])
  })

  test('D1 the runs of a retired worker are due as expired', async (world) => {
    await world.addOne()
    const worker = await world.worker()
    const run = await worker.claimOne()
    await world.workers.retire(worker.id)
    expect((await world.jobs.due('expired', 10)).map(({ job }) => job.id)).toEqual([run.id])
  })

  test('retiring twice, or an unknown worker, is harmless', async (world) => {
    const worker = await world.worker()
    await world.workers.retire(worker.id)
    await world.workers.retire(worker.id)
    await world.workers.retire('ghost' as WorkerId)
    expect((await world.workers.list()).filter(({ state }) => state === 'alive')).toEqual([])
  })

  test('the lead of a role goes to the first who asks and is learnt by the others', async (world) => {
    const first = await world.workers.lead({ ...ROLE, holder: 'a' })
    expect(first).toMatchObject({ held: true, holder: 'a' })
    expect(await world.workers.lead({ ...ROLE, holder: 'b' })).toEqual({ held: false, holder: 'a', term: first.term })
    expect(await world.workers.lead({ ...ROLE, role: 'other', holder: 'b' })).toMatchObject({ held: true, holder: 'b' })
  })

  test('a leader that renews keeps its lead and its term', async (world) => {
    const { term } = await world.workers.lead({ ...ROLE, holder: 'a' })
    for (let round = 0; round < 3; round++) {
      await world.clock.advance(9_999)
      expect(await world.workers.lead({ ...ROLE, holder: 'a' })).toEqual({ held: true, holder: 'a', term })
    }
    expect((await world.workers.lead({ ...ROLE, holder: 'b' })).held).toBe(false)
  })

  test('a lead that is not renewed passes on, with a higher term', async (world) => {
    const { term } = await world.workers.lead({ ...ROLE, holder: 'a' })
    await world.clock.advance(10_001)
    const next = await world.workers.lead({ ...ROLE, holder: 'b' })
    expect(next).toMatchObject({ held: true, holder: 'b' })
    expect(next.term).toBeGreaterThan(term)
    expect(await world.workers.lead({ ...ROLE, holder: 'a' })).toEqual({ held: false, holder: 'b', term: next.term })
  })

  test('who leads can be asked, until the lead lapses or is given up', async (world) => {
    expect(await world.workers.leader?.(ROLE.role)).toBeNull()
    const { term } = await world.workers.lead({ ...ROLE, holder: 'a' })
    expect(await world.workers.leader?.(ROLE.role)).toEqual({ holder: 'a', term })
    await world.clock.advance(10_001)
    expect(await world.workers.leader?.(ROLE.role)).toBeNull()
    await world.workers.lead({ ...ROLE, holder: 'a' })
    await world.workers.resign(ROLE.role, 'a')
    expect(await world.workers.leader?.(ROLE.role)).toBeNull()
  })

  test('a leader that resigns frees the lead at once; a stranger cannot resign for it', async (world) => {
    const { term } = await world.workers.lead({ ...ROLE, holder: 'a' })
    await world.workers.resign(ROLE.role, 'b')
    expect((await world.workers.lead({ ...ROLE, holder: 'b' })).held).toBe(false)
    await world.workers.resign(ROLE.role, 'a')
    const next = await world.workers.lead({ ...ROLE, holder: 'b' })
    expect(next.held).toBe(true)
    expect(next.term).toBeGreaterThan(term)
  })

  test('of many candidates at once exactly one leads', async (world) => {
    const holders = Array.from({ length: 10 }, (_, index) => `candidate-${index}`)
    const replies = await Promise.all(holders.map((holder) => world.workers.lead({ ...ROLE, holder })))
    expect(replies.filter(({ held }) => held)).toHaveLength(1)
    expect(new Set(replies.map(({ holder }) => holder)).size).toBe(1)
  })

  test('commands come with the beats, in order, until they are seen', async (world) => {
    const { id } = await world.worker()
    const other = await world.worker()
    expect(await world.workers.send(id, { kind: 'quiet' })).toBe(true)
    expect(await world.workers.send(id, { kind: 'stop' })).toBe(true)
    const first = await world.beat(id)
    expect(first.commands.map(({ command }) => command.kind)).toEqual(['quiet', 'stop'])
    const again = await world.beat(id)
    expect(again.commands).toEqual(first.commands)
    const rest = await world.beat(id, { commandsSeen: first.commands[0]!.no })
    expect(rest.commands).toEqual([first.commands[1]])
    const none = await world.beat(id, { commandsSeen: first.commands[1]!.no })
    expect(none.commands).toEqual([])
    expect((await world.beat(other.id)).commands).toEqual([])
  })

  test('command numbers rise across deliveries', async (world) => {
    const { id } = await world.worker()
    const numbers: number[] = []
    for (const kind of ['quiet', 'resume', 'stop'] as const) {
      await world.workers.send(id, { kind })
      const { commands } = await world.beat(id, { commandsSeen: numbers.at(-1) ?? 0 })
      expect(commands.map(({ command }) => command.kind)).toEqual([kind])
      numbers.push(commands[0]!.no)
    }
    expect(numbers).toEqual([...new Set(numbers)].sort((a, b) => a - b))
  })

  test('a command to a dead or unknown worker is refused', async (world) => {
    const worker = await world.worker()
    await world.kill(worker)
    expect(await world.workers.send(worker.id, { kind: 'stop' })).toBe(false)
    expect(await world.workers.send('ghost' as WorkerId, { kind: 'stop' })).toBe(false)
  })
}

async function record(world: World, id: WorkerId): Promise<WorkerRecord> {
  return present(
    (await world.workers.list()).find((worker) => worker.id === id),
    `worker ${id}`,
  )
}
