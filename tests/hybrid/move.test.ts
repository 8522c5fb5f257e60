// A slot of a Cluster moves to another node: its queue begins anew there, the others stay where they are.
import { expect, test } from 'vitest'
import { RaceCalls } from '../../src/backends/hybrid/calls.ts'
import { DispatchView } from '../../src/backends/hybrid/dispatch-view.ts'
import { Epochs } from '../../src/backends/hybrid/epoch.ts'
import { MemoryRace } from '../../src/backends/hybrid/memory-race.ts'
import type { DispatchRow, FlipRequest, Ledger } from '../../src/backends/hybrid/ports.ts'
import { DEFAULT_LANES } from '../../src/core/priority.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { ManualClock } from '../conformance/manual-clock.ts'

const ROW: DispatchRow = {
  queue: 'mail',
  mode: 'token',
  epoch: 7,
  birth: 'b',
  redisId: 'one',
  firstLease: 1,
  paused: false,
  configVersion: 1,
  lanes: DEFAULT_LANES,
  lowerLaneShare: 0,
  defaultPriority: 100,
}

/** Queues that were opened on the Redis `one`, and the one that answers for them now; null: none. */
async function flipsFor(nodes: Readonly<Record<string, string | null>>) {
  const clock = new ManualClock()
  const view = new DispatchView()
  for (const queue of Object.keys(nodes)) view.learnRow({ ...ROW, queue })
  const race = new MemoryRace()
  race.identity = async (queue) => {
    const node = nodes[queue] ?? null
    if (node === null) throw new Error('away')
    return node
  }
  const flips: FlipRequest[] = []
  const unusable: string[] = []
  const runtime = createRuntime({ clock })
  const ignore = (): void => undefined
  const calls = new RaceCalls({
    runtime,
    race,
    timeoutMs: 1_000,
    probeMs: 250,
    onAnswer: ignore,
    onError: ignore,
    onRefused: ignore,
  })
  const ledger = {
    flip: (request: FlipRequest) => Promise.resolve((flips.push(request), [])),
    dispatch: () => Promise.resolve({ rows: [], epoch: 7, serverChanged: false }),
  } as Partial<Ledger> as Ledger // nothing else is asked for
  const epochs = new Epochs({
    runtime,
    ledger,
    calls,
    view,
    onNews: ignore,
    onRead: ignore,
    onUnusable: (queues) => void unusable.push(...queues),
  })
  epochs.refused('mail', '7.b', { why: 'IDENTITY', redisId: nodes['mail']!, epoch: '7.b' })
  await clock.advance(10)
  const told = flips.map(({ queues, redisId }) => `${redisId}: ${queues.map(({ queue }) => queue).join()}`)
  return { flips: told, unusable }
}

test('H6 a queue whose slot has moved is flipped alone', async () => {
  expect(await flipsFor({ mail: 'two', letters: 'one', parcels: null })).toEqual({
    flips: ['two: mail'],
    unusable: ['mail'],
  })
})

test('H6 when a Redis is replaced all of its queues are flipped at once, each to the one that has it now', async () => {
  expect(await flipsFor({ mail: 'two', letters: 'two', parcels: 'three' })).toEqual({
    flips: ['two: mail,letters', 'three: parcels'],
    unusable: ['mail', 'letters', 'parcels'],
  })
})
