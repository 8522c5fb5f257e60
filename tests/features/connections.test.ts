// Several named connections in one process.
import { describe, expect, test } from 'vitest'
import { MillraceError, defineJob, memory } from '../../src/index.ts'
import type { Backend, RunContext } from '../../src/index.ts'
import { createHealth } from '../../src/observability/health-reader.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { VirtualClock, gate, startProcess } from './support.ts'

const here = defineJob({ name: 'here', queue: 'here', attempts: 1, run: ({ input }: RunContext<string>) => input })
const there = defineJob({
  name: 'there',
  queue: 'there',
  connection: 'eu',
  attempts: 1,
  run: ({ input }: RunContext<string>) => {
    if (input === 'fail') throw new Error('broken in eu')
    return input
  },
})

async function twoConnections<const Jobs extends Parameters<typeof startProcess>[2]>(jobs: Jobs) {
  const clock = new VirtualClock()
  const connections = { default: memory({ clock }), eu: memory({ clock }) }
  const { mill } = await startProcess(clock, connections.default, jobs, { connections })
  return { clock, connections, mill }
}

describe('memory', () => {
  test('J13 one worker serves both connections and a job lives where its kind or its queue says', async () => {
    const { clock, mill, connections } = await twoConnections([here, there])
    const worker = await mill.work()
    expect(worker.ids.length).toBe(2)
    const [a, b] = [await mill.enqueue(here, 'a'), await mill.enqueue(there, 'b')]
    expect([a.connection, b.connection]).toEqual(['default', 'eu'])
    expect([await clock.during(a.result()), await clock.during(b.result())]).toEqual(['a', 'b'])
    expect((await connections.eu.query.get([b.id]))[0]).toMatchObject({ status: 'completed' })
    expect((await connections.default.query.get([b.id]))[0]).toBeNull()
    expect(await mill.jobs.get(b.id)).toMatchObject({ connection: 'eu' })
    expect(await clock.during(mill.result(b.id))).toBe('b')
  })

  test('J13 a dead letter shows its connection, to the hook and to the reader', async () => {
    const { clock, mill } = await twoConnections([here, there])
    await mill.work()
    const handle = await mill.enqueue(there, 'fail')
    await expect(clock.during(handle.result())).rejects.toMatchObject({ code: 'JOB_FAILED' })
    expect(await mill.deadLetters.get(handle.id)).toMatchObject({ connection: 'eu' })
    const listed = await mill.deadLetters.list({ connection: 'eu' })
    expect(listed.items.map(({ id, connection }) => [id, connection])).toEqual([[handle.id, 'eu']])
    await mill.deadLetters.replay(handle.id)
    expect(await mill.jobs.get(handle.id)).toMatchObject({ connection: 'eu' })
  })

  test('J13 what is written as one must live on one connection', async () => {
    const { mill } = await twoConnections([here, there])
    const mixed = mill.enqueueMany([
      [here, 'a'],
      [there, 'b'],
    ])
    await expect(mixed).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
    const parent = await mill.enqueue(here, 'a')
    await expect(mill.enqueue(there, 'b', { after: parent })).rejects.toMatchObject({ code: 'CONNECTION_MIXED' })
  })

  test('J13 pausing the queue of a kind that picked its connection stops that kind', async () => {
    const { clock, mill } = await twoConnections([here, there])
    await mill.work()
    await mill.queues.pause('there')
    const handle = await mill.enqueue(there, 'b')
    await clock.advance(5_000)
    expect(await handle.status()).toBe('queued')
    expect(await mill.queues.get('there')).toMatchObject({ connection: 'eu', paused: true })
  })

  test('J13 dead letters and jobs of a queue are listed where the kind that picked its connection lives', async () => {
    const { clock, mill } = await twoConnections([here, there])
    await mill.work()
    const handle = await mill.enqueue(there, 'fail')
    await expect(clock.during(handle.result())).rejects.toMatchObject({ code: 'JOB_FAILED' })
    const ids = async (list: Promise<{ readonly items: readonly { readonly id: string }[] }>) =>
      (await list).items.map(({ id }) => id)
    expect(await ids(mill.jobs.list({ queue: 'there' }))).toEqual([handle.id])
    expect(await ids(mill.deadLetters.list({ queue: 'there' }))).toEqual([handle.id])
  })

  test('J13 a slot that one connection gives back is used by the other at once', async () => {
    const held = gate()
    const started = gate()
    const holding = defineJob({
      name: 'holding',
      queue: 'here',
      async run() {
        started.open()
        await held.opened
      },
    })
    const { clock, mill } = await twoConnections([holding, there])
    await mill.work({ concurrency: 1 })
    await clock.advance(30)
    await mill.enqueue(holding)
    await clock.during(started.opened)
    const waiting = await mill.enqueue(there, 'b')
    await clock.advance(3_000)
    held.open()
    expect(await clock.during(waiting.result(), 1_500)).toBe('b')
  })

  test('J13 a long backlog on one connection does not starve the other', async () => {
    const clock = new VirtualClock()
    const connections = { default: memory({ clock }), eu: memory({ clock }) }
    const long = defineJob({
      name: 'long',
      queue: 'long',
      run: () => new Promise<void>((resolve) => clock.timer(100, resolve)),
    })
    const { mill } = await startProcess(clock, connections.default, [long, there], { connections })
    await mill.enqueueMany(Array.from({ length: 2_000 }, () => [long] as const))
    await mill.work({ concurrency: 2 })
    await clock.advance(2_000)
    const waiting = await mill.enqueue(there, 'b')
    expect(await clock.during(waiting.result(), 20_000)).toBe('b')
  })
})

describe('health', () => {
  function setup() {
    const [home, away] = [memory(), memory()]
    const gone = new MillraceError('STORE_UNAVAILABLE', 'eu is away')
    const eu: Backend = { ...away, queues: { ...away.queues, get: () => Promise.reject(gone) } }
    return { home, health: createHealth({ connections: { default: home, eu }, clock: systemClock }) }
  }

  test('P3 a queue of a store that answers is told of while another store is away', async () => {
    const { home, health } = setup()
    await home.queues.configure('mail', {})
    expect(await health.scale('mail')).toMatchObject({ queue: 'mail', value: 0 })
  })

  test('P3 a queue that may be in the store that is away is not said to be missing', async () => {
    const { health } = setup()
    await expect(health.scale('mail')).rejects.toMatchObject({ code: 'STORE_UNAVAILABLE' })
  })
})
