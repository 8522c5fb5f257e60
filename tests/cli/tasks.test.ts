// `millrace tasks` over a memory store: what it shows, what it runs, how it ends.
import { mkdtempSync, rmSync, utimesSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, onTestFinished, test } from 'vitest'
import { JOBS, noop, setup } from './harness.ts'

function logFolder(): string {
  const dir = mkdtempSync(join(tmpdir(), 'millrace-cli-tasks-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  writeFileSync(join(dir, 'old.log'), 'xx')
  utimesSync(join(dir, 'old.log'), 1, 1)
  return dir
}

test('P4 tasks ls shows every task, its schedule and how its last run ended', async () => {
  const { run, mill } = await setup()
  await mill.schedules.upsert('millrace.task.stale', { job: noop, every: '1h' })
  const before = await run('tasks ls')
  expect(before).toMatchObject({ code: 0 })
  expect(before.out).toMatch(/stale +every 1h/)
  expect(before.out).toMatch(/backup +not for this store/)
  await run('tasks run stale')
  const after = await run('tasks ls --json')
  const tasks = after.json['tasks'] as { name: string; last: unknown; schedule: unknown }[]
  expect(tasks.map(({ name }) => name)).toEqual(['retention', 'backup', 'logs', 'stale', 'tracking', 'notifications'])
  expect(tasks.find(({ name }) => name === 'stale')).toMatchObject({
    last: { outcome: 'done', by: { pid: process.pid }, result: { counts: { notes: 0, workers: 0 } } },
    schedule: { enabled: true },
    running: null,
  })
})

test('P4 tasks run runs a task here, with the options of the configuration and of the line', async () => {
  const dir = logFolder()
  const { run } = await setup({ tasks: { logs: { dir, keep: '20000d' as never } } })
  expect(await run('tasks run logs')).toMatchObject({ code: 2, err: expect.stringContaining('keep') as string })
  const other = await setup({ tasks: { logs: { dir, keep: '365d' } } })
  const dry = await other.run('tasks run logs --dry-run --json')
  expect(dry.json).toMatchObject({ task: 'logs', result: { dryRun: true, counts: { files: 1 }, bytes: 2 } })
  const kept = await other.run('tasks run logs --set dir=/tmp/no-such-folder')
  expect(kept).toMatchObject({ code: 2, err: expect.stringContaining('dir') as string })
  const done = await other.run('tasks run logs')
  expect(done).toMatchObject({ code: 0, out: expect.stringContaining('1 log files removed') as string })
})

test.each(['retention', 'logs', 'stale', 'notifications'])('P4 tasks run %s works on an empty store', async (name) => {
  const { run } = await setup()
  for (const line of [`tasks run ${name}`, `tasks run ${name} --dry-run`]) {
    expect(await run(line)).toMatchObject({ code: 0, out: expect.stringMatching(/result +done/) as string })
  }
})

test.each([
  ['tasks run nothing', 3, 'known are retention'],
  ['tasks run stale --set keep', 2, '--set keep=3d'],
  ['tasks run stale --set keeep=1', 2, 'keeep'],
  ['tasks run backup --set dir=/tmp/x', 3, 'no work for the task backup'],
  ['tasks run stale --connection eu', 3, 'no connection "eu"'],
  ['tasks run stale --queue --set workersAfter=1h', 2, 'leave out --set'],
  ['tasks run stale --queue', 4, 'tasks: {}'],
  ['tasks run stale --queue --connection eu', 4, 'tasks: {}'],
] as const)('P4 %s ends with %i', async (line, code, says) => {
  const { run } = await setup()
  expect(await run(line)).toMatchObject({ code, err: expect.stringContaining(says) as string })
})

test('P4 tasks run ends with 4 while another process runs the same task', async () => {
  const { run, backend } = await setup()
  await backend.workers.lead({ role: 'task:stale', holder: 'another', ttlMs: 60_000 })
  const busy = await run('tasks run stale --json')
  expect(busy.code).toBe(4)
  expect(JSON.parse(busy.err)).toMatchObject({ error: { code: 'TASK_BUSY' } })
  await backend.workers.resign('task:stale', 'another')
  expect(await run('tasks run stale')).toMatchObject({ code: 0 })
})

test('P4 tasks run --queue leaves it to a worker, and twice is once', async () => {
  const { run, mill } = await setup({ jobs: JOBS, tasks: {} })
  const first = await run('tasks run stale --queue --json')
  expect(first.json, first.err).toMatchObject({ task: 'stale', duplicate: false })
  const second = await run('tasks run stale --queue --json')
  expect(second.json).toMatchObject({ id: first.json['id'], duplicate: true })
  expect(await mill.jobs.get(String(first.json['id']))).toMatchObject({
    name: 'millrace.task.stale',
    queue: 'millrace.tasks',
    status: 'queued',
  })
})
