// Tasks as jobs, on a virtual clock: what becomes of one whose process died, which lost its lead, or which another process does
// already; and tasks of several stores.
import { expect, test } from 'vitest'
import { memory } from '../../src/index.ts'
import type { Backend, TasksOptions } from '../../src/index.ts'
import { readRecord, writeRunning } from '../../src/tasks/records.ts'
import { VirtualClock, startProcess } from '../features/support.ts'

const LEAD_MS = 30_000
const ONLY_STALE: TasksOptions = { retention: false, logs: false, notifications: false, stale: { every: '24h' } }

/** The lead of the task is held by somebody else, who will not renew it. */
async function held(store: Backend, clock: VirtualClock, by: { readonly jobId?: string } | null): Promise<void> {
  await store.workers.lead({ role: 'task:stale', holder: 'the other one', ttlMs: LEAD_MS })
  if (by === null) return
  const run = { startedAtMs: clock.nowMs(), by: { host: 'h', pid: 1, ...by } }
  await writeRunning(store.notes, 'stale', run, LEAD_MS)
}

async function setup(store: (clock: VirtualClock) => Backend = (clock) => memory({ clock })) {
  const clock = new VirtualClock()
  const backend = store(clock)
  // The calls that a test holds back are not given up.
  const options = { tasks: { ...ONLY_STALE, stale: false }, storeTimeout: '10m' } as const
  const { mill } = await startProcess(clock, backend, [], options)
  return { clock, backend, mill, handle: await mill.tasks.enqueue('stale') }
}

test('P4 the job of a task whose process died waits for its own lead, and then does its work', async () => {
  const { clock, backend, mill, handle } = await setup()
  await held(backend, clock, { jobId: handle.id })
  await mill.work()
  await clock.advance(5_000)
  expect(await handle.status()).toBe('scheduled')
  expect(await clock.during(handle.result(), 2 * LEAD_MS)).toMatchObject({ outcome: 'done' })
  expect(await readRecord(backend.notes, 'stale')).toMatchObject({ by: { jobId: handle.id } })
  await mill.stop({ deadline: 0 })
})

test('P4 so does one whose process died before it could say who it is', async () => {
  const { clock, backend, mill, handle } = await setup()
  await held(backend, clock, null)
  await mill.work()
  expect(await clock.during(handle.result(), 2 * LEAD_MS)).toMatchObject({ outcome: 'done' })
  await mill.stop({ deadline: 0 })
})

test.each([{}, { jobId: 'another' }])('P4 a job that finds another process at its task is over: %j', async (by) => {
  const { clock, backend, mill, handle } = await setup()
  await held(backend, clock, by)
  await mill.work()
  expect(await clock.during(handle.result(), 1_000)).toMatchObject({ outcome: 'busy' })
  await mill.stop({ deadline: 0 })
})

test('P4 a job that lost the lead of its task is tried again', async () => {
  let isAway = false
  let prunes = 0
  let go = (): void => undefined
  const waiting = new Promise<void>((resolve) => (go = resolve))
  const { clock, mill, handle } = await setup((own) => {
    const store = memory({ clock: own })
    return {
      ...store,
      workers: {
        ...store.workers,
        lead: (asked) =>
          isAway && asked.role === 'task:stale' ? Promise.reject(new Error('away')) : store.workers.lead(asked),
      },
      // The first pass lasts until it is let go, and a second one must follow.
      notes: {
        ...store.notes,
        prune: (limit) => waiting.then(() => (++prunes < 5 ? limit : store.notes.prune(limit))),
      },
    }
  })
  await mill.work()
  await clock.advance(15_000)
  isAway = true
  await clock.advance(90_000)
  go()
  await clock.advance(15_000)
  expect(await mill.jobs.get(handle.id)).toMatchObject({ status: 'scheduled', attemptCount: 1 })
  isAway = false
  expect(await clock.during(handle.result(), 300_000)).toMatchObject({ outcome: 'done' })
  await mill.stop({ deadline: 0 })
})

test('P4 whoever asks for a look is not given the job that does it', async () => {
  const { mill, handle } = await setup()
  const look = await mill.tasks.enqueue('stale', { dryRun: true })
  expect([look.duplicate, look.id === handle.id]).toEqual([false, false])
  expect(await mill.tasks.enqueue('stale')).toMatchObject({ id: handle.id, duplicate: true })
  expect(await mill.tasks.enqueue('stale', { dryRun: true })).toMatchObject({ id: look.id, duplicate: true })
  await mill.stop({ deadline: 0 })
})

async function twoStores(tasks: TasksOptions) {
  const clock = new VirtualClock()
  const connections = { default: memory({ clock }), eu: memory({ clock }) }
  const { mill } = await startProcess(clock, connections.default, [], { connections, tasks })
  return { clock, connections, mill }
}

test('P4 J13 a task is scheduled for every store that it fits, and runs on each', async () => {
  const { clock, connections, mill } = await twoStores(ONLY_STALE)
  await mill.work()
  await clock.advance(10_000)
  const names = (await mill.schedules.list()).map(({ name }) => name).sort()
  expect(names).toEqual(['millrace.task.stale', 'millrace.task.stale:eu'])
  for (const { notes } of Object.values(connections)) {
    expect(await readRecord(notes, 'stale')).toMatchObject({ outcome: 'done' })
  }
  const shown = (await mill.tasks.list()).filter(({ name }) => name === 'stale')
  expect(shown).toMatchObject([
    { connection: 'default', schedule: { name: 'millrace.task.stale' }, last: { outcome: 'done' } },
    { connection: 'eu', schedule: { name: 'millrace.task.stale:eu' }, last: { outcome: 'done' } },
  ])
  await mill.stop({ deadline: 0 })
})

test('P4 J13 it may be kept to some stores, and schedules of the others go', async () => {
  const { clock, connections, mill } = await twoStores({ ...ONLY_STALE, stale: { every: '1h', connections: ['eu'] } })
  await mill.schedules.upsert('millrace.task.stale:gone', {
    job: 'millrace.task.stale',
    input: {},
    every: '1h',
  } as never)
  await mill.work()
  await clock.advance(10_000)
  expect((await mill.schedules.list()).map(({ name }) => name)).toEqual(['millrace.task.stale:eu'])
  expect(await readRecord(connections.default.notes, 'stale')).toBeNull()
  expect(await readRecord(connections.eu.notes, 'stale')).toMatchObject({ outcome: 'done' })
  await expect(mill.tasks.enqueue('stale', { connection: 'us' })).rejects.toMatchObject({
    code: 'CONNECTION_NOT_FOUND',
  })
  await mill.stop({ deadline: 0 })
})

test('P4 J13 a store that there is not is found when the Millrace is made', async () => {
  const tasks = { stale: { connections: ['us'] } }
  await expect(twoStores(tasks)).rejects.toMatchObject({ code: 'CONNECTION_NOT_FOUND' })
})
