// The autoscaler on a real store: plans, history and requests through its notes, its counts and its lead. Hosts are
// played, jobs are real.
import { expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { createAutoscaler } from '../../src/supervisor/autoscaler.ts'
import { readPlan } from '../../src/supervisor/plan-notes.ts'
import { readScalingHistory } from '../../src/supervisor/scaling-history.ts'
import { FakeHost } from '../supervisor/fake-fleet.ts'
import { until } from '../support/until.ts'
import type { OpenPlace } from './place.ts'

const chore = defineJob({ name: 'chore', queue: 'chores', run: () => undefined })

export function scaling(place: OpenPlace): void {
  test('P2 the autoscaler grows with real jobs, hands over to another leader, is forced, and shrinks', async () => {
    await using at = await place()
    const mill = await at.process([chore])
    const [backend, other] = [at.backend(), at.backend()]
    await Promise.all([backend.start(), other.start()])
    const runtime = createRuntime()
    const load = { size: {}, busy: 1, endedPerS: 0, isDown: false }
    const host = new FakeHost('one', backend, runtime, load, {
      pools: { chores: { queues: ['chores'] } },
      publishMs: 50,
    })
    const options = { interval: 100, cooldown: 300, max: 5, smoothing: 100 } as const
    const scalers = [backend, other].map((store) =>
      createAutoscaler({ runtime, backend: store, options, leaderTtlMs: 2_000 }),
    )
    try {
      await host.start()
      for (const scaler of scalers) await scaler.start()
      await mill.enqueueMany(Array.from({ length: 150 }, () => [chore, undefined] as const))
      await until('the pool to grow', () => host.wanted('chores') === 5)
      expect(scalers.map((scaler) => scaler.isLeading())).toEqual([true, false])
      await scalers[0]!.stop()
      await until('the other one to lead', () => scalers[1]!.isLeading())
      const forced = await scalers[1]!.forceScale('chores', 2, 'for a test', { by: 'ada' })
      expect(forced).toEqual({ ok: true, pools: [{ pool: 'chores', from: 5, to: 2 }] })
      load.busy = 0
      const worker = await mill.work()
      await until('the pool to be at its minimum', () => host.wanted('chores') === 1)
      await worker.stop()
      const events = (await readScalingHistory(backend.notes, { limit: 100 })).toReversed()
      expect(events.slice(0, 3).map(({ from, to }) => `${from}→${to}`)).toEqual(['1→3', '3→5', '5→2'])
      expect(events[0]?.reasons.join()).toMatch(/150 jobs are ready/)
      expect(events[2]).toMatchObject({ forcedBy: 'ada', queue: 'chores' })
      expect(events.at(-1)).toMatchObject({ action: 'down', to: 1 })
      for (const [index, { atMs, forcedBy }] of events.entries()) {
        if (index > 0 && forcedBy === undefined) expect(atMs - events[index - 1]!.atMs).toBeGreaterThanOrEqual(300)
      }
      expect((await readPlan(other.notes, 'chores'))?.plan).toMatchObject({ total: 1, shares: { one: 1 } })
    } finally {
      for (const scaler of scalers) await scaler.stop()
      await host.vanish()
      await Promise.all([backend.stop(), other.stop()])
    }
  })
}
