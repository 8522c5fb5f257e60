// `millrace queues`: look, pause, resume, set.
import { describe, expect, test } from 'vitest'
import { mail, setup } from './harness.ts'

describe('queues', () => {
  test('ls shows settings and limits', async () => {
    const { mill, run } = await setup()
    await mill.queues.configure('mail', {
      concurrency: 5,
      rate: { limit: 100, per: '1m' },
      perKey: { concurrency: 2, rate: { limit: 1, per: '1s' } },
      retention: { completed: '7d' },
      priority: 'high',
    })
    await mill.queues.pause('mail')
    const { code, out } = await run('queues ls')
    expect(out).toMatch(/^mail +paused +50 +3 +5 +100 per 1m +2 at once, 1 per 1s +completed 7d$/m)
    expect(code).toBe(0)
    expect((await run('queues ls --json')).json).toMatchObject({
      queues: [
        { name: 'mail', paused: true, limits: { concurrency: 5 }, createdAt: expect.stringMatching(/Z$/) as string },
      ],
    })
  })

  test('pause and resume tell the state, and 3 for a queue that nobody knows', async () => {
    const { mill, run } = await setup()
    await mill.enqueue(mail, { to: 'ada' })
    expect(await run('queues pause mail')).toMatchObject({ code: 0, out: 'queue mail is paused\n' })
    expect(await mill.queues.get('mail')).toMatchObject({ paused: true })
    expect((await run('queues resume mail --json')).json).toMatchObject({ queue: { name: 'mail', paused: false } })
    expect(await run('queues pause mial')).toMatchObject({
      code: 3,
      err: expect.stringContaining('there is no queue mial') as string,
    })
  })

  test('set changes what is named and nothing else', async () => {
    const { mill, run } = await setup()
    await mill.queues.configure('mail', { concurrency: 5, attempts: 9 })
    const line = 'queues set mail --rate 500/10m --key-concurrency 2 --key-rate 10/s --priority low --keep-failed 90d'
    expect((await run(line)).code).toBe(0)
    expect(await mill.queues.get('mail')).toMatchObject({
      attempts: 9,
      priority: 200,
      limits: {
        concurrency: 5,
        rate: { limit: 500, perMs: 600_000 },
        perKeyConcurrency: 2,
        perKeyRate: { limit: 10, perMs: 1_000 },
      },
      retention: { failedMs: 90 * 86_400_000 },
    })
    const { json } = await run('queues set mail --concurrency none --rate none --json')
    expect(json).toMatchObject({ queue: { limits: { concurrency: null, rate: null } } })
  })

  test('set refuses to make a queue by a slip, and to do nothing', async () => {
    const { mill, run } = await setup()
    expect(await run('queues set mial --concurrency 5')).toMatchObject({
      code: 3,
      err: expect.stringContaining('--create') as string,
    })
    expect(await mill.queues.list()).toEqual([])
    expect(await run('queues set mial --concurrency 5 --create')).toMatchObject({ code: 0 })
    expect(await run('queues set mial')).toMatchObject({
      code: 2,
      err: expect.stringContaining('nothing to set') as string,
    })
    expect(await run('queues set mial --keep-failed long')).toMatchObject({ code: 2 })
  })
})
