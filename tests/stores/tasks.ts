// Built-in tasks on every store that lives in a server: directly, by a worker, by their schedules, and one at a time.
import { expect, test } from 'vitest'
import { createMillrace, defineJob, fixed } from '../../src/index.ts'
import type { Backend, RunContext } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { taskKind } from '../../src/tasks/built-in.ts'
import { retryNotifications } from '../../src/tasks/notifications.ts'
import { readRecord } from '../../src/tasks/records.ts'
import { runRetention } from '../../src/tasks/retention.ts'
import { runTask } from '../../src/tasks/run-task.ts'
import { cleanStale } from '../../src/tasks/stale.ts'
import type { TaskContext } from '../../src/tasks/task.ts'
import type { OpenPlace } from './place.ts'

const PATIENCE = { timeout: 15_000, interval: 10 }
const quick = defineJob({ name: 'quick', run: ({ input }: RunContext<number>) => input * 2 })

function contextOf(backend: Backend, more: Partial<TaskContext> = {}): TaskContext {
  return { runtime: createRuntime(), backend, signal: new AbortController().signal, ...more }
}

export function tasks(place: OpenPlace): void {
  test('P5 retention runs until nothing is due, and what it took can be read again where there is an archive', async () => {
    await using at = await place()
    const backend = at.backend()
    const mill = await at.process([quick], { backend, maintenance: true })
    const worker = await mill.work()
    const handles = await mill.enqueueMany(Array.from({ length: 30 }, (_, no) => [quick, no] as const))
    await Promise.all(handles.map((handle) => handle.result()))
    await worker.stop()
    const context = contextOf(backend, { retention: { completed: 1 } })
    const due = await runRetention(context, { dryRun: true })
    expect(due).toMatchObject({ dryRun: true, counts: { completed: 30 } })
    const result = await runRetention(context)
    expect(result).toMatchObject({ outcome: 'done', left: null, counts: { deleted: 30 } })
    const found = await mill.jobs.get(handles[3]!.id)
    if (backend.query.archived === undefined) expect(found).toBeNull()
    else expect(found).toMatchObject({ archived: true, status: 'completed', result: 6 })
    expect((await mill.jobs.list()).items).toEqual([])
    expect(await runRetention(context)).toMatchObject({ counts: { deleted: 0 } })
  })

  test('P4 a task is run by a worker or by its schedule, and everybody sees how it ended', async () => {
    await using at = await place()
    const mill = await at.process([quick], { tasks: { stale: { every: '1h' }, retention: false } })
    await mill.work()
    // An interval that never ran runs at once.
    const backend = at.backend()
    await backend.start()
    await expect.poll(() => readRecord(backend.notes, 'stale'), PATIENCE).toMatchObject({ outcome: 'done' })
    const record = await readRecord(backend.notes, 'stale')
    expect(record).toMatchObject({ by: { pid: process.pid, jobId: expect.any(String) as string }, error: null })
    const schedules = (await mill.schedules.list()).map(({ name }) => name)
    expect(schedules).toContain(taskKind('stale'))
    expect(schedules).not.toContain(taskKind('retention'))
    expect(schedules).not.toContain(taskKind('backup'))

    const handle = await mill.tasks.enqueue('retention', { dryRun: true })
    expect(await handle.result()).toMatchObject({ outcome: 'done', dryRun: true })
    expect(await readRecord(backend.notes, 'retention')).toBeNull()
    await backend.stop()
  })

  test('P4 two processes do not run one task at once', async () => {
    await using at = await place()
    const [one, two] = [at.backend(), at.backend()]
    await one.start()
    await two.start()
    let release = (): void => undefined
    const held = new Promise<void>((resolve) => (release = resolve))
    const slow: Backend = {
      ...one,
      notes: {
        ...one.notes,
        async prune(limit) {
          await held
          return one.notes.prune(limit)
        },
      },
    }
    const runtime = createRuntime()
    const first = runTask('stale', { runtime, backend: slow }, {})
    await expect.poll(() => two.notes.get('tasks', 'stale:running'), PATIENCE).not.toBeNull()
    await expect(runTask('stale', { runtime, backend: two }, {})).rejects.toMatchObject({
      code: 'TASK_BUSY',
      message: expect.stringContaining(String(process.pid)) as string,
    })
    release()
    await first
    expect(await two.notes.get('tasks', 'stale:running')).toBeNull()
    expect(await runTask('stale', { runtime, backend: two }, {})).toMatchObject({ outcome: 'done' })
    await one.stop()
    await two.stop()
  })

  test('P4 expired notes and dead workers go, live ones stay', async () => {
    await using at = await place()
    const backend = at.backend()
    await backend.start()
    await backend.notes.put({ space: 's', key: 'lasting', value: '1', ttlMs: 3_600_000 })
    const life = { host: 'h', pid: 1, queues: ['q'], concurrency: 1 }
    const [dead, alive] = ['dead', 'alive'].map((id) => ({ ...life, id })) as never[]
    await backend.workers.register(dead!)
    await backend.workers.register(alive!)
    await backend.workers.retire('dead' as never)
    // When it has expired, the worker has been dead for a millisecond.
    await backend.notes.put({ space: 's', key: 'brief', value: '1', ttlMs: 1 })
    // What it might hold must be settled first.
    await backend.jobs.due('expired', 10)
    await expect.poll(() => backend.notes.get('s', 'brief'), PATIENCE).toBeNull()
    const result = await cleanStale(contextOf(backend), { workersAfter: 0 })
    expect(result).toMatchObject({ outcome: 'done', counts: { notes: 1 } })
    const left = (await backend.workers.list()).map(({ id }) => String(id))
    expect(left).toContain('alive')
    // With the history of jobs in PostgreSQL its workers are kept as long.
    if (backend.workers.forget !== undefined) expect(left).toEqual(['alive'])
    expect(await backend.notes.get('s', 'lasting')).not.toBeNull()
    await backend.stop()
  })

  test('P4 notifications that failed are sent again, three times and not more', async () => {
    await using at = await place()
    const backend = at.backend()
    let sends = 0
    const notify = defineJob({
      name: 'millrace.notify',
      queue: 'millrace.alerts',
      retry: fixed({ attempts: 1, delay: 1 }),
      run() {
        sends += 1
        throw new Error('nobody answers')
      },
    })
    const mill = await createMillrace({ jobs: [notify, quick], backend })
    await mill.work()
    const handle = await mill.enqueue(notify, undefined)
    await handle.result().catch(() => undefined)
    const context = contextOf(backend)
    expect(await retryNotifications(context)).toMatchObject({ counts: { failed: 1, replayed: 0, waiting: 1 } })
    for (let round = 2; round <= 4; round++) {
      const due = await retryNotifications(context, { delay: 0, dryRun: true })
      expect(due).toMatchObject({ counts: { replayed: 1 } })
      expect(await retryNotifications(context, { delay: 0 })).toMatchObject({ counts: { replayed: 1 } })
      await expect.poll(() => sends, PATIENCE).toBe(round)
      await expect.poll(() => handle.status(), PATIENCE).toBe('failed')
    }
    const last = await retryNotifications(context, { delay: 0 })
    expect(last).toMatchObject({
      counts: { replayed: 0, givenUp: 1 },
      warnings: [expect.stringContaining('every time')],
    })
    expect(await retryNotifications(context, { delay: 0, newerThan: 0 })).toMatchObject({ counts: { failed: 0 } })
    await mill.stop({ deadline: 0 })
  })
}
