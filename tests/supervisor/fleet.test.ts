// The registry of supervisors: what is published is listed, what is gone or cannot be read is not.
import { describe, expect, test } from 'vitest'
import { memory } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { FLEET_TTL_MS, SUPERVISORS_SPACE, createFleet } from '../../src/supervisor/fleet.ts'
import type { ChildStatus, SupervisorRecord } from '../../src/supervisor/fleet.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

function child(id: string, queues: readonly string[]): ChildStatus {
  return {
    id,
    workerIds: [`worker-of-${id}`],
    pool: 'mail',
    queues,
    pid: 4_711,
    state: 'running',
    rssBytes: 1,
    cpuPercent: 2,
    loopLagMs: 3,
    processed: 4,
    failed: 5,
    running: 6,
    concurrency: 7,
    startedAtMs: 8,
    lastHeartbeatAtMs: 9,
  }
}

function record(id: string, queues: readonly string[] = ['mail']): SupervisorRecord {
  const children = Array.from({ length: 20 }, (_, index) => child(`${id}-${index}`, queues))
  const pool = { name: 'mail', queues, concurrency: 7, min: 1, max: 20, wanted: 20, state: 'ok', children } as const
  return { id, host: 'one', pid: 1, startedAtMs: 0, state: 'running', pools: [pool] }
}

function setup() {
  const clock = new VirtualClock()
  const { notes } = memory({ clock })
  return { clock, notes, fleet: createFleet({ notes, runtime: createRuntime({ clock }) }) }
}

describe('fleet', () => {
  test('P1 what supervisors publish is listed with all their children, by id', async () => {
    const { fleet } = setup()
    await fleet.publish(record('b'))
    await fleet.publish(record('a'))
    await fleet.publish({ ...record('b'), state: 'quiet' })
    expect(await fleet.list()).toEqual([record('a'), { ...record('b'), state: 'quiet' }])
    await fleet.withdraw('a')
    expect((await fleet.list()).map(({ id }) => id)).toEqual(['b'])
  })

  test('P1 a supervisor that no longer publishes is gone after the time to live', async () => {
    const { fleet, clock } = setup()
    await fleet.publish(record('a'))
    await clock.advance(FLEET_TTL_MS - 1)
    expect(await fleet.list()).toHaveLength(1)
    await clock.advance(1)
    expect(await fleet.list()).toEqual([])
  })

  test('P1 a pool of very many queues still fits into a note', async () => {
    const { fleet, notes } = setup()
    const queues = Array.from({ length: 1_000 }, (_, index) => `${'q'.repeat(90)}${index}`)
    await fleet.publish(record('a', queues))
    const [note] = await notes.list(SUPERVISORS_SPACE, 10)
    expect(note!.value.length).toBeLessThan(64 * 1024)
    const [seen] = await fleet.list()
    expect(seen!.pools[0]!.queues).toEqual(queues.slice(0, 50))
    expect(seen!.pools[0]!.children).toHaveLength(20)
  })

  test('P1 as many pools and processes as there may be fit into a note', async () => {
    const { fleet } = setup()
    const queues = Array.from({ length: 50 }, (_, index) => `${'q'.repeat(90)}${index}`)
    const ended = Object.fromEntries(queues.map((queue) => [queue, 1_000_000]))
    const [pool] = record('a', queues).pools
    const pools = Array.from({ length: 50 }, (_, index) => ({
      ...pool!,
      ended,
      name: `pool-${index}`,
      children: pool!.children.slice(0, 2),
    }))
    await fleet.publish({ ...record('a'), pools })
    const [seen] = await fleet.list()
    expect(seen!.pools.map(({ children, queues: shown }) => [children.length, shown.length])).toEqual(
      pools.map(() => [2, 2]),
    )
    expect(seen!.pools[0], 'a part of the sums would be wrong sums').not.toHaveProperty('ended')
  })

  test('P1 a record that cannot be read is left out', async () => {
    const { fleet, notes } = setup()
    await fleet.publish(record('a'))
    await notes.put({ space: SUPERVISORS_SPACE, key: 'b', value: '"gibberish"' })
    await notes.put({ space: SUPERVISORS_SPACE, key: 'c', value: '{"id":"c","pools":[{}]}' })
    expect((await fleet.list()).map(({ id }) => id)).toEqual(['a'])
  })
})
