// The autoscaler with real processes: `millrace supervise` on PostgreSQL, a burst of jobs that sleep, a short cooldown.
import { expect, test } from 'vitest'
import { sentenceOf } from '../../src/core/scaling.ts'
import { readScalingHistory } from '../../src/supervisor/scaling-history.ts'
import { usePostgres } from '../postgres/features/support.ts'
import { until } from '../support/until.ts'
import { JOBS, untilWorking, useSupervisors } from './harness.ts'

const open = useSupervisors()
const place = usePostgres()
const BURST = 80

test(
  'P2 real processes: from 1 to 3 under a burst and back to 1, no job lost, with the history printed',
  { timeout: 120_000 },
  async () => {
    await using at = await place()
    const world = open()
    const supervised = world.start({
      address: at.address,
      pools: { faults: { queues: ['faults'], concurrency: 2, processes: { min: 1, max: 3 } } },
      autoscale: { interval: '500ms', smoothing: '1s', cooldown: '3s', up: { size: 20 } },
    })
    await untilWorking(supervised, 1)
    const mill = await at.process(JOBS)
    const handles = await mill.enqueueMany(Array.from({ length: BURST }, () => ['plain', 500] as const))
    await untilWorking(supervised, 3)
    await Promise.all(handles.map((handle) => handle.result()))
    expect(new Set(world.runs().map(({ job }) => job)).size).toBe(BURST)
    expect(world.runs()).toHaveLength(BURST)
    expect(new Set(world.runs().map(({ pid }) => pid)).size).toBe(3)
    await until('the pool to be at its minimum', () => supervised.workers().length === 1, { withinMs: 40_000 })
    const backend = at.backend()
    await backend.start()
    const events = (await readScalingHistory(backend.notes)).toReversed()
    await backend.stop()
    const lines = events.map((event) => `${new Date(event.atMs).toISOString().slice(11, 19)} ${sentenceOf(event)}`)
    process.stdout.write(`${lines.join('\n')}\n`)
    expect(events.map(({ from, to }) => `${from}→${to}`)).toEqual(['1→3', '3→2', '2→1'])
    for (const [index, { atMs }] of events.entries()) {
      if (index > 0) expect(atMs - events[index - 1]!.atMs).toBeGreaterThanOrEqual(3_000)
    }
    supervised.signal('SIGTERM')
    expect(await supervised.exit).toBe(0)
  },
)
