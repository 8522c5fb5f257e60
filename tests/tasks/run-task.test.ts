// One run of a task on a virtual clock: it keeps its lead while it runs, ends when it cannot, and says how it ended.
import { expect, test } from 'vitest'
import { memory } from '../../src/index.ts'
import type { Backend } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { builtInTasks } from '../../src/tasks/built-in.ts'
import { planTasks } from '../../src/tasks/options.ts'
import { readRecord, readRunning } from '../../src/tasks/records.ts'
import { runTask } from '../../src/tasks/run-task.ts'
import { VirtualClock } from '../../src/testing/virtual-clock.ts'

/** A store whose first pass of `stale` lasts until it is let go. */
function setup() {
  const clock = new VirtualClock()
  const store = memory({ clock })
  let go = (): void => undefined
  const held = new Promise<void>((resolve) => (go = resolve))
  let isAway = false
  const backend: Backend = {
    ...store,
    workers: {
      ...store.workers,
      lead: (request) => (isAway ? Promise.reject(new Error('away')) : store.workers.lead(request)),
    },
    notes: { ...store.notes, prune: (limit) => held.then(() => (isAway ? limit : store.notes.prune(limit))) },
  }
  return { clock, store, backend, runtime: createRuntime({ clock }), go, cut: () => (isAway = true) }
}

test('P4 a long task keeps its lead, and shows that it runs', async () => {
  const { clock, store, backend, runtime, go } = setup()
  const run = runTask('stale', { runtime, backend }, {}, { jobId: 'j1' })
  for (let minute = 0; minute < 5; minute++) {
    await clock.advance(60_000)
    expect(await store.workers.lead({ role: 'task:stale', holder: 'another', ttlMs: 1 })).toMatchObject({ held: false })
    expect(await readRunning(store.notes, 'stale')).toMatchObject({ by: { jobId: 'j1' } })
  }
  go()
  expect(await run).toMatchObject({ outcome: 'done', durationMs: 300_000 })
  expect(await readRunning(store.notes, 'stale')).toBeNull()
  expect(await store.workers.lead({ role: 'task:stale', holder: 'another', ttlMs: 1 })).toMatchObject({ held: true })
  expect(await readRecord(store.notes, 'stale')).toMatchObject({ outcome: 'done', durationMs: 300_000, error: null })
})

test('P4 a task that cannot keep its lead is stopped, and the record keeps the last success', async () => {
  const { clock, store, backend, runtime, go, cut } = setup()
  await runTask('stale', { runtime, backend: store }, {})
  const before = await readRecord(store.notes, 'stale')
  const run = runTask('stale', { runtime, backend }, {}).catch((error: unknown) => error)
  await clock.advance(15_000)
  cut()
  await clock.advance(90_000)
  go()
  await clock.advance(15_000)
  expect(await run).toMatchObject({ code: 'TASK_BUSY' })
  expect(await readRecord(store.notes, 'stale')).toMatchObject({
    outcome: 'failed',
    error: { code: 'TASK_BUSY' },
    succeededAtMs: before?.succeededAtMs,
  })
})

test('P4 a look that fails, and an option that is wrong, are no news of the task', async () => {
  const { store, runtime } = setup()
  await runTask('stale', { runtime, backend: store }, {})
  const before = await readRecord(store.notes, 'stale')
  const broken: Backend = { ...store, workers: { ...store.workers, list: () => Promise.reject(new Error('away')) } }
  await expect(runTask('stale', { runtime, backend: broken }, { dryRun: true })).rejects.toThrow('away')
  await expect(runTask('stale', { runtime, backend: store }, { keep: 1 } as never)).rejects.toThrow('keep')
  expect(await readRecord(store.notes, 'stale')).toEqual(before)
  expect(before).toMatchObject({ outcome: 'done' })
})

test.each([
  [{ backup: { dir: 'relative' } }, 'dir'],
  [{ backup: { dir: '/backups', keep: 'x' } }, 'keep'],
  [{ backup: { dir: '/backups', every: '1d', cron: '0 0 * * *' } }, 'not both'],
  [{ stale: { cron: 'never' } }, 'never'],
  [{ stale: { workersafter: 1 } }, 'did you mean workersAfter'],
  [{ logs: { dryRun: true } }, 'dryRun'],
  [{ backups: {} }, 'did you mean backup'],
  [{ stale: 'hourly' }, 'tasks.stale'],
  [{ stale: { connections: [] } }, 'tasks.stale.connections'],
  [{ stale: { connections: ['a b'] } }, 'connection'],
])('P4 a configuration of tasks that is wrong is refused at once: %o', (options, says) => {
  expect(() => builtInTasks(options as never)).toThrow(says)
})

test('P4 a task is on with its defaults, off when asked, and a backup needs its directory', () => {
  const plan = planTasks({ stale: false, logs: { cron: '5 4 * * *', timeZone: 'Europe/Berlin' } })
  expect(plan.stale.timing).toBeNull()
  expect(plan.backup.timing).toBeNull()
  expect(plan.logs.timing).toEqual({ cron: '5 4 * * *', timeZone: 'Europe/Berlin' })
  expect(plan.notifications.timing).toEqual({ every: 300_000 })
  expect(planTasks({ backup: { dir: '/backups', every: '1d', keep: '7d' } }).backup).toMatchObject({
    timing: { every: '1d' },
    options: { dir: '/backups', keep: '7d' },
  })
})
