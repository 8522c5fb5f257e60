// `millrace status` and `millrace doctor`: is the system doing its work, and what is to be done if not.
import { describe, expect, test } from 'vitest'
import { decideHealth } from '../../src/observability/health.ts'
import { examine, worstOf } from '../../src/cli/doctor.ts'
import { MillraceError, memory } from '../../src/index.ts'
import { systemClock } from '../../src/runtime/clock.ts'
import type { Check } from '../../src/store/diagnosis.ts'
import { boom, eventually, mail, noop, setup, workOff } from './harness.ts'

const HOUR = 3_600_000

describe('status', () => {
  test('is ok when all that is ready is served', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(mail, { to: 'ada' })
    await workOff(mill, [id])
    const { code, out } = await run('status')
    expect(out).toMatch(/^mail +0 +0 +0 +0 +1 +0 +- +1$/m)
    expect(out).toMatch(/^ok {2}1 live worker, \d of 10 slots busy, no dead letters$/m)
    expect(out).toContain('store: the backend of millrace.config.mjs')
    expect(code).toBe(0)
  })

  test('is degraded, with 4, when ready jobs have no worker', async () => {
    const { mill, run } = await setup()
    await mill.enqueue(mail, { to: 'ada' })
    const { code, out } = await run('status')
    expect(out).toContain('degraded')
    expect(out).toContain('queue mail has 1 job ready and no live worker: start one with millrace work --queue mail')
    expect(code).toBe(4)
    const ran = await run('status --json')
    expect(ran.code).toBe(4)
    expect(ran.json).toMatchObject({
      schemaVersion: 1,
      health: 'degraded',
      problems: [{ code: 'no-worker', queue: 'mail' }],
      store: { from: 'millrace.config.mjs' },
      queues: [{ queue: 'mail', connection: 'default', paused: false, counts: { queued: 1 }, workers: 0 }],
      workers: { alive: 0, slots: 0 },
      deadLetters: 0,
    })
  })

  test('a paused queue is not a problem, and an empty system is fine', async () => {
    const { mill, run } = await setup()
    expect(await run('status')).toMatchObject({ code: 0, out: expect.stringContaining('no queues yet') as string })
    await mill.enqueue(mail, { to: 'ada' })
    await mill.queues.pause('mail')
    expect(await run('status')).toMatchObject({ code: 0, out: expect.stringMatching(/^mail .*paused$/m) as string })
  })

  test('O3 again and again, until a signal', async () => {
    const { mill, begin } = await setup()
    const watching = begin('status --watch 250ms', { tty: true })
    await eventually(() => watching.out().split('no queues yet').length).toBeGreaterThanOrEqual(3)
    await mill.enqueue(mail, { to: 'ada' })
    await eventually(watching.out).toContain('degraded')
    watching.signal('SIGINT')
    const { code, out } = await watching.done
    expect(code).toBe(130)
    expect(out.startsWith('\u001b[H\u001b[2Jno queues yet'), 'each look on a clean screen').toBe(true)
    expect(await begin('status --watch 1ms').done).toMatchObject({
      code: 2,
      err: expect.stringContaining('250ms') as string,
    })
  })

  test('O3 a store that does not answer ends with 69, with the reason in the report', async () => {
    const away = memory()
    const query = { ...away.query, counts: () => Promise.reject(new Error('gone for lunch')) }
    const { run } = await setup({ backend: { ...away, query } })
    const { code, json } = await run('status --json')
    expect(code).toBe(69)
    expect(json).toMatchObject({ health: 'failed', problems: [{ code: 'store-down', message: /gone for lunch/ }] })
  })

  test('O3 a store that answers and refuses is a failure, with 1', async () => {
    const strict = memory()
    const refusal = new MillraceError('STORE_REFUSED', 'permission denied for table ready')
    const query = { ...strict.query, counts: () => Promise.reject(refusal) }
    const { run } = await setup({ backend: { ...strict, query } })
    const { code, json } = await run('status --json')
    expect(code).toBe(1)
    expect(json).toMatchObject({
      health: 'failed',
      problems: [{ code: 'store-refused', message: /permission denied/ }],
    })
    expect(await run('top --once')).toMatchObject({
      code: 1,
      err: expect.stringContaining('permission denied') as string,
    })
  })

  test('waiting over an hour is being behind', async () => {
    const { mill } = await setup()
    await mill.enqueue(noop)
    await mill.queues.pause('default')
    const facts = { queues: await mill.queues.list(), counts: await mill.jobs.counts(), workers: [] }
    const now = systemClock.nowMs()
    expect(decideHealth({ ...facts, nowMs: now + 2 * HOUR }).state, 'paused is meant').toBe('ok')
    const active = { ...facts, queues: facts.queues.map((queue) => ({ ...queue, paused: false })) }
    expect(decideHealth({ ...active, nowMs: now + 2 * HOUR }).problems).toMatchObject([
      { code: 'no-worker' },
      { code: 'behind', queue: 'default' },
    ])
  })
})

describe('doctor', () => {
  test('runs its checks and says what to do', async () => {
    const { mill, run } = await setup()
    await mill.enqueue(mail, { to: 'ada' })
    await mill.queues.configure('reports', {})
    await mill.queues.pause('reports')
    const { code, out } = await run('doctor')
    expect(out).toMatch(/^ok {4}store: .* answered in \d+ ms$/m)
    expect(out).toMatch(/^ok {4}clock: this machine and the store agree on the time$/m)
    expect(out).toMatch(
      /^fail {2}workers: jobs are ready and no live worker serves: mail\n {6}millrace work --queue mail$/m,
    )
    expect(out).toMatch(/^warn {2}paused-queues: paused: reports; no jobs wait there\n {6}.*queues resume reports$/m)
    expect(out).toMatch(/^ok {4}schedules: no schedules, none is late$/m)
    expect(code).toBe(4)
  })

  test('ends with 0 when nothing fails, and with 4 on a warning when that is asked for', async () => {
    const { mill, run } = await setup()
    await mill.queues.configure('reports', {})
    expect((await run('doctor --json')).json).toMatchObject({ verdict: 'ok', checks: { length: 7 } })
    await mill.queues.pause('reports')
    expect(await run('doctor')).toMatchObject({ code: 0 })
    const strict = await run('doctor --strict --json')
    expect(strict.json).toMatchObject({ verdict: 'warn' })
    expect(strict.code).toBe(4)
  })

  test('counts dead letters, and finds schedules that nobody fires', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(boom, 'lost')
    await workOff(mill, [id])
    expect((await run('doctor')).out).toContain('dead-letters: 1 dead letter: fragile 1')
    const late = await setup()
    await late.mill.schedules.upsert('often', { job: noop, every: '10m' })
    const clock = { ...systemClock, nowMs: () => systemClock.nowMs() + HOUR }
    const { out } = await late.run('doctor', { clock })
    // Its own clock is an hour off and does not count: the store says what time it is.
    expect(out).toMatch(/^warn {2}clock: the clock of this machine is 1h ahead of that of the store$/m)
    expect(out).toContain('1 schedule, none is late')
  })

  test('asks the backend for checks of its own', async () => {
    const checks: readonly Check[] = [
      { name: 'schema', run: () => Promise.resolve({ level: 'warn', message: 'behind', fix: 'millrace migrate up' }) },
      { name: 'orphans', run: () => Promise.reject(new Error('postgres://u:secret@db/x went away')) },
    ]
    const { run } = await setup({ backend: Object.assign(memory(), { diagnose: () => Promise.resolve(checks) }) })
    const { code, out } = await run('doctor')
    expect(out).toContain('warn  schema: behind\n      millrace migrate up\n')
    expect(out).toContain('fail  orphans: postgres://u:***@db/x went away')
    expect(code).toBe(4)
    const backend = Object.assign(memory(), { diagnose: () => Promise.reject(new Error('no')) })
    const broken = await setup({ backend })
    expect((await broken.run('doctor')).out).toContain('fail  default backend: no')
  })

  test('a store that cannot be reached is a finding, with 69', async () => {
    const { run } = await setup()
    const load = (): Promise<unknown> => Promise.resolve({ default: { jobs: [] } })
    const gone = Object.assign(new Error('connect to postgres://u:secret@db/x refused'), { code: 'STORE_UNAVAILABLE' })
    const { code, json, out } = await run('doctor --json', { load, startEmbedded: () => Promise.reject(gone) })
    expect(json).toMatchObject({ verdict: 'fail', checks: [{ name: 'store', level: 'fail' }] })
    expect(out).not.toContain('secret')
    expect(code).toBe(69)
  })

  test('the worst finding is the verdict', async () => {
    const [ok, warn, fail] = (['ok', 'warn', 'fail'] as const).map((level) => ({ level, message: '' }))
    expect([worstOf([]), worstOf([ok!, warn!]), worstOf([warn!, fail!])]).toEqual(['ok', 'warn', 'fail'])
    expect(await examine([], systemClock)).toEqual([])
  })
})
