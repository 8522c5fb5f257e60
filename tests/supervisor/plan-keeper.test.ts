// Plans under two leaders, after a crash, and the history that is written from them.
import { expect, test } from 'vitest'
import { backendOver } from '../../src/backends/memory/backend.ts'
import { World } from '../../src/backends/memory/world.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { PlanKeeper } from '../../src/supervisor/plan-keeper.ts'
import { readPlan } from '../../src/supervisor/plan-notes.ts'
import { readScalingHistory, trimHistory, writeEvent } from '../../src/supervisor/scaling-history.ts'
import type { ScaleEvent } from '../../src/supervisor/plan-notes.ts'
import { readStoreTime } from '../../src/supervisor/store-time.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

async function setup() {
  const clock = new VirtualClock()
  const backend = backendOver(new World(clock))
  const { notes } = backend
  const runtime = createRuntime({ clock })
  const time = await readStoreTime(backend, clock)
  const takeOver = (term: number) => PlanKeeper.takeOver({ notes, runtime, time, term, leaderTtlMs: 10_000 })
  const history = (limit = 50) => readScalingHistory(notes, { limit, nowMs: clock.nowMs() })
  return { clock, notes, takeOver, history }
}

const plan = (total: number, event: ScaleEvent | null = null) => {
  return { pool: 'mail', total, shares: { one: total }, reasons: [`${total}`], event }
}

function event(id: string, atMs: number, more: Partial<ScaleEvent> = {}): ScaleEvent {
  return {
    id,
    pool: 'mail',
    queue: 'mail',
    action: 'up',
    from: 1,
    to: 3,
    reasons: ['so'],
    metrics: null,
    atMs,
    ...more,
  }
}

test('P2 an old leader cannot write over the plan of a new one, not even once', async () => {
  const { notes, takeOver } = await setup()
  const old = await takeOver(1)
  expect(await old.save(plan(3))).toBe(true)
  const young = await takeOver(2)
  // The new one has decided nothing yet, and the door is closed already.
  expect(await old.save(plan(9))).toBe(false)
  expect(await old.save(plan(9))).toBe(false)
  expect((await readPlan(notes, 'mail'))?.plan).toMatchObject({ total: 3, term: 2 })
  expect(await young.save(plan(4))).toBe(true)
  expect((await readPlan(notes, 'mail'))?.plan).toMatchObject({ total: 4, term: 2 })
})

test('P2 two leaders that make the first plan of a pool at once: one of them does', async () => {
  const { notes, takeOver } = await setup()
  const [one, two] = [await takeOver(1), await takeOver(2)]
  expect(await Promise.all([one.save(plan(3)), two.save(plan(5))])).toEqual([true, false])
  expect(await two.save(plan(5))).toBe(true)
  expect(await one.save(plan(3))).toBe(false)
  expect((await readPlan(notes, 'mail'))?.plan.total).toBe(5)
})

test('P2 terms that a store has lost do not stop the leader for ever', async () => {
  const { clock, takeOver } = await setup()
  await (await takeOver(9)).save(plan(3))
  const next = await takeOver(1)
  expect(await next.save(plan(4))).toBe(false)
  await clock.advance('11s')
  expect(await next.save(plan(4))).toBe(true)
  expect(await next.save(plan(5))).toBe(true)
})

test('P2 a leader that dies between plan and history leaves the step to the next one', async () => {
  const { clock, takeOver, history } = await setup()
  const dying = await takeOver(1)
  await dying.save(plan(3, event('a', clock.nowMs())))
  expect(await history()).toEqual([])
  const next = await takeOver(2)
  expect(next.steps('mail')).toMatchObject([{ action: 'up' }])
  await next.flush()
  await next.flush()
  expect((await history()).map(({ id }) => id)).toEqual(['a'])
})

test('P2 without its plan a pool still has the cooldown that the history tells', async () => {
  const { clock, notes, takeOver } = await setup()
  await writeEvent(notes, event('a', clock.nowMs() - 60_000))
  const keeper = await takeOver(1)
  expect(keeper.get('mail')).toBeNull()
  expect(keeper.steps('mail')).toEqual([{ action: 'up', atMs: clock.nowMs() - 60_000 }])
})

test('P2 a plan that cannot be read is written over', async () => {
  const { notes, takeOver } = await setup()
  for (const value of ['"nonsense"', '{"total":-1,"shares":[1],"recent":[{"id":7}]}']) {
    await notes.put({ space: 'scaling-plan', key: 'mail', value })
    const keeper = await takeOver(1)
    expect(keeper.get('mail')).toMatchObject({ total: 0, recent: [] })
    expect(await keeper.save(plan(1))).toBe(true)
  }
})

test('P2 the history is read from the newest, by pool and queue, and is bounded', async () => {
  const { clock, notes, history } = await setup()
  const minute = 60_000
  for (let index = 0; index < 250; index++) {
    const more = index % 10 === 0 ? { pool: 'rare', queue: 'odd' } : {}
    await writeEvent(
      notes,
      event(`e${String(index).padStart(3, '0')}`, clock.nowMs() - (250 - index) * 30 * minute, more),
    )
  }
  expect((await history(2)).map(({ id }) => id)).toEqual(['e249', 'e248'])
  expect(await history(500)).toHaveLength(250)
  const rare = await readScalingHistory(notes, { limit: 3, pool: 'rare', queue: 'odd', nowMs: clock.nowMs() })
  expect(rare.map(({ id }) => id)).toEqual(['e240', 'e230', 'e220'])
  expect(await trimHistory(notes, 100)).toBe(150)
  expect((await history(500)).at(-1)?.id).toBe('e150')
  expect(await trimHistory(notes, 100)).toBe(0)
  await clock.advance('31d')
  expect(await history()).toEqual([])
})
