// `millrace workers history`, `force` and `autoscale`, over a memory store with a played host.
import { describe, expect, onTestFinished, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { createAutoscaler } from '../../src/supervisor/autoscaler.ts'
import { FakeHost } from '../supervisor/fake-fleet.ts'
import { writeEvent } from '../../src/supervisor/scaling-history.ts'
import { setup } from './harness.ts'

const CALM = { size: {}, busy: 0, endedPerS: 0, isDown: false }

describe('workers', () => {
  test('P2 history shows the steps with their reasons, as a table and as JSON', async () => {
    const { backend, run } = await setup()
    expect((await run('workers history')).out).toBe('the autoscaler has not changed anything in the last 30 days\n')
    const atMs = Date.UTC(2026, 10, 16, 9)
    const event = { pool: 'mail', queue: 'mail', from: 1, to: 3, metrics: null, reasons: ['500 jobs are ready', 'so'] }
    await writeEvent(backend.notes, { id: 'a', action: 'up', atMs, ...event })
    const forced = { ...event, pool: 'reports', queue: null, forcedBy: 'ada', from: 3, to: 1, reasons: ['full'] }
    await writeEvent(backend.notes, { id: 'b', action: 'down', atMs: atMs + 1_000, ...forced })
    const { out, code } = await run('workers history')
    expect(code).toBe(0)
    expect(out).toMatch(/^2026-11-16T09:00:01\.000Z +reports +- +3 → 1 +ada +full$/m)
    expect(out).toMatch(/^2026-11-16T09:00:00\.000Z +mail +mail +1 → 3 +autoscaler +500 jobs are ready; so$/m)
    expect(out.indexOf('reports')).toBeLessThan(out.indexOf('500 jobs'))
    const { json } = await run('workers history --queue mail --limit 1 --json')
    expect(json).toMatchObject({ events: [{ id: 'a', at: '2026-11-16T09:00:00.000Z', from: 1, to: 3 }] })
    expect((await run('workers history --pool nowhere --json')).json).toMatchObject({ events: [] })
  })

  test('P2 force asks the leader and tells what it did', async () => {
    const { backend, run } = await setup()
    const runtime = createRuntime()
    const host = new FakeHost('one', backend, runtime, CALM, {})
    await host.start()
    const autoscaler = createAutoscaler({ runtime, backend })
    await autoscaler.start()
    onTestFinished(async () => {
      await autoscaler.stop()
      await host.vanish()
    })
    const forced = await run(['workers', 'force', '4', '--queue', 'mail', '--reason', 'a sale', '--by', 'ada'])
    expect(forced).toMatchObject({ code: 0, out: 'pool mail: 1 → 4\n' })
    expect((await run('workers history')).out).toMatch(/1 → 4 +ada +ada forces 4: a sale/)
    const unknown = await run('workers force 4 --pool nowhere --reason x')
    expect(unknown).toMatchObject({ code: 4, err: expect.stringContaining('there are: mail') as string })
  })

  test('P2 force says how to use it, and when nobody answers', async () => {
    const { run } = await setup()
    expect((await run('workers force 4 --reason x')).code).toBe(2)
    expect((await run('workers force 4 --pool a --queue b --reason x')).code).toBe(2)
    expect((await run('workers force some --pool a --reason x')).code).toBe(2)
    expect((await run('workers force 4 --pool a')).code).toBe(2)
    const lonely = await run('workers force 4 --pool a --reason x --wait 10ms')
    expect(lonely).toMatchObject({ code: 124, err: expect.stringContaining('is a supervisor running') as string })
  })

  test('P2 autoscale switches off and on', async () => {
    const { run } = await setup()
    expect((await run('workers autoscale')).out).toBe('autoscaling is on\n')
    expect((await run('workers autoscale off --queue mail')).out).toBe('autoscaling is off for mail\n')
    expect((await run('workers autoscale off')).out).toBe('autoscaling is off for all queues\n')
    expect((await run('workers autoscale on --json')).json).toMatchObject({ off: ['mail'] })
    expect((await run('workers autoscale maybe')).code).toBe(2)
  })
})
