// From end to end on virtual time: real workers of this process instead of processes, hosts that start and drain them
// as the plan says, a burst of real jobs in the memory store. From one worker to as many as it takes, and back.
import { expect, test } from 'vitest'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { sentenceOf } from '../../src/core/scaling.ts'
import { createMillrace, defineJob } from '../../src/index.ts'
import type { Millrace } from '../../src/index.ts'
import { sleep } from '../../src/runtime/clock.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { createLoop } from '../../src/runtime/service.ts'
import { createAutoscaler } from '../../src/supervisor/autoscaler.ts'
import { createFleet } from '../../src/supervisor/fleet.ts'
import { readPlan } from '../../src/supervisor/plan-notes.ts'
import { readScalingHistory } from '../../src/supervisor/scaling-history.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

const CONCURRENCY = 5
const JOBS = 1_200

test('P2 a burst grows a pool from 1 to its maximum and it shrinks again, with every step in the history', async () => {
  const clock = new VirtualClock()
  const backend = backendOver(new World(clock))
  let lastId = 0
  const runtime = createRuntime({ clock, random: () => 0.5 })
  let done = 0
  const chore = defineJob({
    name: 'chore',
    queue: 'chores',
    async run() {
      await sleep(clock, 2_000)
      done += 1
    },
  })
  const make = (): Promise<Millrace> =>
    createMillrace({ jobs: [chore], backend: { ...backend, stop: async () => undefined }, runtime: { clock } })

  interface Process {
    readonly id: string
    readonly mill: Millrace
    ended: number
    running: number
    isDraining: boolean
  }
  let processes: Process[] = []
  const sizes: number[] = []
  async function start(): Promise<void> {
    const mill = await make()
    const own: Process = { id: `p${++lastId}`, mill, ended: 0, running: 0, isDraining: false }
    mill.on('started', () => void (own.running += 1))
    mill.on('completed', () => {
      own.running -= 1
      own.ended += 1
    })
    await mill.work({ queues: ['chores'], concurrency: CONCURRENCY })
    processes.push(own)
  }
  function drain(own: Process): void {
    own.isDraining = true
    void own.mill.stop({ deadline: '1m' }).then(() => (processes = processes.filter((one) => one !== own)))
  }
  const fleet = createFleet({ notes: backend.notes, runtime })
  const follow = async (): Promise<number> => {
    const active = processes.filter(({ isDraining }) => !isDraining)
    const wanted = (await readPlan(backend.notes, 'chores'))?.plan.shares['host'] ?? 1
    for (let index = active.length; index < wanted; index++) await start()
    for (const one of active.slice(wanted)) drain(one)
    sizes.push(processes.length)
    const children = processes.map(({ id, ended, running, isDraining }) => ({
      id,
      workerIds: [],
      pool: 'chores',
      queues: ['chores'],
      pid: 1,
      state: isDraining ? ('draining' as const) : ('running' as const),
      rssBytes: 0,
      cpuPercent: 0,
      loopLagMs: 0,
      processed: ended,
      failed: 0,
      running,
      concurrency: CONCURRENCY,
      startedAtMs: 0,
      lastHeartbeatAtMs: 0,
    }))
    const pool = {
      name: 'chores',
      queues: ['chores'],
      concurrency: CONCURRENCY,
      min: 1,
      max: 6,
      wanted,
      state: 'ok' as const,
    }
    await fleet.publish({
      id: 'host',
      host: 'host',
      pid: 1,
      startedAtMs: 0,
      state: 'running',
      pools: [{ ...pool, children }],
    })
    return 2_500
  }
  const host = createLoop({ name: 'host', runtime, pass: follow })
  await follow()
  await host.start()
  const autoscaler = createAutoscaler({ runtime, backend, options: { cooldown: '20s', max: 6 } })
  await autoscaler.start()
  const client = await make()
  await clock.advance('10s')
  expect(processes).toHaveLength(1)
  await client.enqueueMany(Array.from({ length: JOBS }, () => [chore, undefined] as const))
  await clock.advance('5m')

  const events = (await readScalingHistory(backend.notes, { nowMs: clock.nowMs() })).toReversed()
  process.stdout.write(
    `${events.map((event) => `${new Date(event.atMs).toISOString().slice(14, 19)} ${sentenceOf(event)}`).join('\n')}\n`,
  )
  expect(done).toBe(JOBS)
  expect(events.map(({ from, to }) => `${from}→${to}`)).toEqual([
    '1→3',
    '3→5',
    '5→6',
    '6→5',
    '5→4',
    '4→3',
    '3→2',
    '2→1',
  ])
  expect(Math.max(...sizes)).toBe(6)
  expect(processes).toHaveLength(1)
  for (const [index, { atMs }] of events.entries()) {
    if (index > 0) expect(atMs - events[index - 1]!.atMs).toBeGreaterThanOrEqual(20_000)
  }
  await autoscaler.stop()
  await host.stop()
  await client.stop({ deadline: 0 })
  await Promise.all(processes.map(({ mill }) => mill.stop({ deadline: 0 })))
})
