// `millrace work` and `millrace dev` in this process: what ends a worker, and how.
import { setImmediate as turn } from 'node:timers/promises'
import { describe, expect, test } from 'vitest'
import { placesOf } from '../../src/cli/commands/dev.ts'
import { createMillrace, defineJob, memory } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import { gate } from '../features/support.ts'
import { boom, eventually, flaky, mail, noop, setup } from './harness.ts'
import type { Started } from './harness.ts'

const MB = 1024 * 1024

/** The watch of the process looks every second; here it looks at once. */
const hasty = {
  ...systemClock,
  timer: (delayMs: number, fire: () => void, options?: { readonly keepAlive?: boolean }) =>
    systemClock.timer(delayMs === 1_000 ? 5 : delayMs, fire, options),
}

async function until(started: Started, text: string): Promise<void> {
  await eventually(started.err).toContain(text)
}

async function urlOf(started: Started): Promise<string> {
  await until(started, 'scale signals are served')
  return /url=(\S+)/.exec(started.err())?.[1] ?? ''
}

const statusOf = async (url: string, init: RequestInit = {}): Promise<number> => (await fetch(url, init)).status

describe('the port of a worker', () => {
  test('O3 is open from the start, ready while it works, and not while it drains', async () => {
    const door = gate()
    const slow = defineJob({ name: 'slow', run: () => door.opened })
    const held = gate()
    const backend = memory()
    const start = async () => {
      await held.opened
      await backend.start()
    }
    const { mill, begin } = await setup({ jobs: [slow], backend: { ...backend, start: () => Promise.resolve() } })
    const load = () => Promise.resolve({ default: { jobs: [slow], backend: { ...backend, start } } })
    const work = begin('work --metrics-port 0', { load })
    const url = await urlOf(work)
    expect([await statusOf(`${url}/live`), await statusOf(`${url}/ready`)]).toEqual([200, 503])
    expect(await statusOf(`${url}/health`)).toBe(503)
    held.open()
    await until(work, 'worker started')
    await eventually(() => statusOf(`${url}/ready`)).toBe(200)
    await mill.enqueue(slow)
    await eventually(async () => (await mill.health.report()).totals.running).toBe(1)
    work.signal('SIGTERM')
    await eventually(() => statusOf(`${url}/ready`)).toBe(503)
    expect(await statusOf(`${url}/live`)).toBe(200)
    await eventually(() => statusOf(`${url}/health`)).toBe(200)
    door.open()
    expect((await work.done).code).toBe(0)
    await expect(fetch(`${url}/live`)).rejects.toThrow(/fetch failed/)
  })

  test('O3 comes from the configuration too, with a token from the environment', async () => {
    const { begin } = await setup({ http: { port: 0 } })
    const token = 'sixteen-letters-or-more'
    const work = begin('work', { env: { MILLRACE_HTTP_TOKEN: token } })
    const url = await urlOf(work)
    expect(await statusOf(`${url}/health`)).toBe(401)
    await until(work, 'worker started')
    expect(await statusOf(`${url}/health`, { headers: { authorization: `Bearer ${token}` } })).toBe(200)
    work.signal('SIGTERM')
    const { err } = await work.done
    expect(err).not.toContain(token)
  })

  test('O3 what cannot be opened is said before any job starts', async () => {
    const { begin, run } = await setup()
    const work = begin('work --metrics-port 0')
    const { port } = new URL(await urlOf(work))
    expect(await run(`work --metrics-port ${port}`)).toMatchObject({
      code: 1,
      err: expect.stringContaining('another process has it') as string,
    })
    expect(await run('work --metrics-host 0.0.0.0')).toMatchObject({ code: 2 })
    work.signal('SIGTERM')
    await work.done
  })
})

describe('work', () => {
  test('runs jobs until SIGTERM, then drains and ends with 0', async () => {
    const door = gate()
    const slow = defineJob({ name: 'slow', run: () => door.opened })
    const { mill, begin } = await setup({ jobs: [slow, mail] })
    const work = begin('work --concurrency 3')
    await until(work, 'worker started')
    const first = await mill.enqueue(mail, { to: 'ada' })
    expect(await first.result()).toEqual({ sentTo: 'ada' })
    const running = await mill.enqueue(slow)
    await eventually(() => running.status()).toBe('running')
    work.signal('SIGTERM')
    await until(work, 'SIGTERM: takes no new jobs and waits for running ones')
    const late = await mill.enqueue(mail, { to: 'late' })
    door.open()
    const { code, out, err } = await work.done
    expect(code).toBe(0)
    expect(await running.status()).toBe('completed')
    expect(await late.status()).toBe('queued')
    expect(err).toMatch(/^\d\d:\d\d:\d\d worker started workers=\["[0-9a-f-]+"\] queues=all concurrency=3$/m)
    expect(err).toMatch(/work ended reason=SIGTERM started=2 completed=2 retried=0 failed=0/)
    expect(err).not.toContain('send-mail completed')
    expect(out, 'stdout is for data').toBe('')
  })

  test('a second signal ends at once with 130', async () => {
    const door = gate()
    const slow = defineJob({ name: 'slow', run: () => door.opened })
    const { mill, begin } = await setup({ jobs: [slow] })
    const work = begin('work')
    const { id } = await mill.enqueue(slow)
    await eventually(async () => (await mill.jobs.get(id))?.status).toBe('running')
    work.signal('SIGINT')
    expect(work.exits).toEqual([])
    work.signal('SIGINT')
    expect(work.exits).toEqual([130])
    door.open()
    await work.done
  })

  test('running jobs are given back at the deadline, with 124', async () => {
    const stubborn = defineJob({
      name: 'stubborn',
      run: ({ signal }: RunContext<undefined>) =>
        new Promise((_, reject) => signal.addEventListener('abort', () => reject(signal.reason as Error))),
    })
    const { mill, begin } = await setup({ jobs: [stubborn] })
    const work = begin('work --deadline 10ms --verbose')
    const handle = await mill.enqueue(stubborn)
    await eventually(() => handle.status()).toBe('running')
    work.signal('SIGTERM')
    const { code, err } = await work.done
    expect(err).toContain('work ended at its deadline')
    expect(err).toContain('stubborn was given back')
    expect(code).toBe(124)
    expect(await mill.jobs.get(handle)).toMatchObject({ status: 'queued', attemptCount: 0 })
  })

  test('--max-jobs starts so many and not one more', async () => {
    const { mill, begin } = await setup()
    for (let index = 0; index < 20; index++) await mill.enqueue(noop)
    const { code, json, err } = await begin('work --max-jobs 7 --concurrency 5 --json').done
    expect(code).toBe(0)
    expect(json).toMatchObject({
      schemaVersion: 1,
      reason: 'max-jobs',
      drained: true,
      jobs: { started: 7, completed: 7 },
    })
    expect((await mill.jobs.list({ status: 'queued' })).items).toHaveLength(13)
    for (const line of err.trim().split('\n'))
      expect(JSON.parse(line)).toMatchObject({ level: 'info', time: expect.stringMatching(/Z$/) as string })
  })

  test('--max-jobs lets its jobs finish, whatever the deadline of a stop', async () => {
    const door = gate()
    const slow = defineJob({ name: 'slow', run: () => door.opened })
    const { mill, begin } = await setup({ jobs: [slow] })
    const work = begin('work --max-jobs 1 --deadline 0ms')
    const handle = await mill.enqueue(slow)
    await eventually(() => handle.status()).toBe('running')
    await turn()
    expect(work.err()).not.toContain('work ended')
    door.open()
    expect(await work.done).toMatchObject({ code: 0 })
    expect(await handle.status()).toBe('completed')
  })

  test('--memory drains and ends with 4', async () => {
    const { begin } = await setup()
    let rss = 100 * MB
    const work = begin('work --memory 512', { rssBytes: () => rss, clock: hasty })
    await until(work, 'worker started')
    rss = 600 * MB
    const { code, err } = await work.done
    expect(err).toContain('over its memory limit: takes no new jobs and waits for running ones rssMb=600 memoryMb=512')
    expect(code).toBe(4)
  })

  test('a stop command from the store ends it with 0', async () => {
    const { backend, begin } = await setup({ work: { heartbeat: 20, ttl: 100 } })
    const work = begin('work')
    await until(work, 'worker started')
    const [worker] = await backend.workers.list()
    await backend.workers.send(worker!.id, { kind: 'stop' })
    expect(await work.done).toMatchObject({ code: 0, err: expect.stringContaining('reason=stop-command') as string })
  })

  test('failures are told, and with --verbose every job', async () => {
    const { mill, begin } = await setup()
    const quiet = begin('work --max-jobs 2')
    await mill.enqueue(boom, 'disk full')
    await mill.enqueue(noop)
    const { err } = await quiet.done
    expect(err).toMatch(/boom failed id=\S+ queue=fragile attempt=1 error="Error: disk full"/)
    expect(err).not.toContain('noop')
    const verbose = begin('work --max-jobs 2 --verbose')
    await mill.enqueue(noop)
    await mill.enqueue(flaky)
    const said = (await verbose.done).err
    expect(said).toMatch(/noop started[^]*noop completed/)
    expect(said).toMatch(/flaky will be tried again .* error="not today"/)
  })

  test('serves the queues it is told, else those of the configuration', async () => {
    const { mill, begin } = await setup({ work: { queues: ['fragile'], concurrency: 2 } })
    const configured = begin('work')
    await until(configured, 'queues=["fragile"] concurrency=2')
    configured.signal('SIGINT')
    await configured.done
    const told = begin('work --queue mail,default -c 9')
    await until(told, 'queues=["mail","default"] concurrency=9')
    const { id } = await mill.enqueue(mail, { to: 'ada' })
    await mill.result(id)
    told.signal('SIGINT')
    expect((await told.done).code).toBe(0)
  })

  test('refuses what makes no sense before it connects', async () => {
    const { run } = await setup()
    expect(await run('work --timeout soon')).toMatchObject({ code: 2 })
    expect(await run('work --deadline soon')).toMatchObject({ code: 2 })
    expect(await run('work --concurrency 0')).toMatchObject({ code: 2 })
    expect(await run('work --queue', {})).toMatchObject({ code: 2 })
    const empty = await setup({ jobs: [] })
    expect(await empty.run('work')).toMatchObject({
      code: 2,
      err: expect.stringContaining('at least one registered job') as string,
    })
  })
})

describe('dev', () => {
  test('tells where the jobs are, and each job as it goes', async () => {
    const { mill, begin } = await setup()
    const dev = begin('dev', { clock: hasty })
    await until(dev, 'worker started')
    await mill.enqueue(noop)
    await until(dev, 'noop completed')
    await until(dev, 'queued 0 · running 0 · scheduled 0 · blocked 0 · completed 1 · failed 0')
    dev.signal('SIGINT')
    const { code, err, out } = await dev.done
    expect(err).toContain('jobs are kept in the backend of millrace.config.mjs')
    expect(code).toBe(0)
    expect(out).toBe('')
  })

  test('on a terminal keeps one line at the bottom', async () => {
    const { mill, begin } = await setup()
    const dev = begin('dev', { clock: hasty, tty: true, columns: 30 })
    await until(dev, 'queued 0 · running 0 · sched…')
    await mill.enqueue(noop)
    // The line is taken away, the log line is written, the line is drawn again.
    await eventually(dev.err).toMatch(/\r.\[K[^\r]*noop completed[^\r]*\nqueued \d/)
    dev.signal('SIGINT')
    const { err } = await dev.done
    await turn()
    expect(err.split('\n').at(-1), 'nothing is left on the last line').toMatch(/^$|\[K$/)
  })

  test('shows the URL of the database masked, unless it is asked for', () => {
    const url = 'postgres://millrace:secret@127.0.0.1:5433/millrace'
    const store = { kind: 'embedded', dir: '.millrace', shown: 'the embedded PostgreSQL', from: '' } as const
    const told = (showUrl: boolean) => JSON.stringify(placesOf({ url, dir: 'project/.millrace' }, { store }, showUrl))
    expect(told(false)).toContain('postgres://millrace:***@127.0.0.1:5433/millrace')
    expect(told(false)).toContain('project/.millrace')
    expect(told(false)).not.toContain('secret')
    expect(told(true)).toContain(url)
  })

  test('leaves the embedded database when it cannot begin', async () => {
    const calls: string[] = []
    const stop = () => Promise.resolve(void calls.push('stop'))
    const startEmbedded = () => Promise.resolve({ url: 'postgres://u:secret@127.0.0.1:1/x', dir: '', stop })
    const { begin } = await setup()
    const load = (): Promise<unknown> => Promise.resolve({ default: { jobs: [noop] } })
    const { code, err } = await begin('dev', { load, startEmbedded }).done
    expect(err).toContain('the embedded PostgreSQL (no store was named): ')
    expect(err).not.toContain('secret')
    expect(code).toBe(69)
    expect(calls).toEqual(['stop'])
  })
})

test('a worker of the command line and one of the library share their work', async () => {
  const { mill, begin, backend } = await setup()
  const other = await createMillrace({ jobs: [noop], backend })
  await other.work()
  const work = begin('work')
  await until(work, 'worker started')
  for (let index = 0; index < 50; index++) await mill.enqueue(noop)
  await eventually(async () => (await mill.jobs.counts('default'))[0]?.counts.completed).toBe(50)
  work.signal('SIGTERM')
  expect(await work.done).toMatchObject({ code: 0 })
  await other.stop()
})
