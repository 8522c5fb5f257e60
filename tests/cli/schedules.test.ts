// `millrace schedules` and `millrace batches`.
import { describe, expect, test } from 'vitest'
import { UNKNOWN_ID, mail, noop, setup } from './harness.ts'
import type { Setup } from './harness.ts'

async function withSchedule(): Promise<Setup> {
  const system = await setup()
  await system.mill.schedules.upsert('nightly', {
    job: mail,
    input: { to: 'ada' },
    cron: '0 3 * * *',
    timeZone: 'Europe/Berlin',
  })
  return system
}

describe('schedules', () => {
  test('ls shows rhythm and times', async () => {
    const { mill, run } = await withSchedule()
    await mill.schedules.upsert('often', { job: noop, every: '10m' })
    const { code, out } = await run('schedules ls')
    expect(out).toMatch(/^nightly +0 3 \* \* \* Europe\/Berlin +send-mail +mail +active +20\S+Z +-$/m)
    expect(out).toMatch(/^often +every 10m +noop +default +active/m)
    expect(code).toBe(0)
    expect((await run('schedules ls --json')).json).toMatchObject({
      schedules: [{ name: 'nightly', enabled: true }, { name: 'often' }],
    })
  })

  test('run enqueues an extra job', async () => {
    const { mill, run } = await withSchedule()
    const { code, json } = await run('schedules run nightly --json')
    expect(code).toBe(0)
    expect(await mill.jobs.get(json['id'] as string)).toMatchObject({
      name: 'send-mail',
      schedule: { name: 'nightly' },
    })
    expect(await run('schedules run nigthly')).toMatchObject({ code: 3 })
  })

  test('pause and resume', async () => {
    const { mill, run } = await withSchedule()
    expect((await run('schedules pause nightly')).out).toMatch(/^nightly .* paused +- /m)
    expect((await run('schedules resume nightly --json')).json).toMatchObject({ schedule: { enabled: true } })
    expect(await mill.schedules.get('nightly')).toMatchObject({ enabled: true })
    expect(await run('schedules pause nigthly')).toMatchObject({ code: 3 })
  })

  test('rm asks, needs --yes without a terminal, and can only look', async () => {
    const { mill, run } = await withSchedule()
    expect(await run('schedules rm nightly')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--yes') as string,
    })
    expect((await run('schedules rm nightly --dry-run --json')).json).toMatchObject({ dryRun: true, removed: false })
    expect(await run('schedules rm nightly', { tty: true, answer: 'no' })).toMatchObject({
      code: 1,
      err: expect.stringContaining('This will remove 1 schedule, nightly: 0 3 * * *') as string,
    })
    expect(await mill.schedules.get('nightly')).not.toBeNull()
    expect(await run('schedules rm nightly --yes')).toMatchObject({ code: 0, out: 'schedule nightly is removed\n' })
    expect(await mill.schedules.get('nightly')).toBeNull()
    expect(await run('schedules rm nightly --yes')).toMatchObject({ code: 3 })
  })
})

describe('batches', () => {
  async function withBatch() {
    const system = await setup()
    const { id } = await system.mill.enqueueBatch('campaign', [
      [mail, { to: 'ada' }],
      [mail, { to: 'grace' }],
    ])
    return { ...system, id }
  }

  test('ls and show tell the progress', async () => {
    const { run, id } = await withBatch()
    expect((await run('batches ls')).out).toMatch(new RegExp(`^${id}  campaign  running +2 +2 +0 +0  20\\S+Z$`, 'm'))
    expect((await run('batches ls --limit 1 --json')).json).toMatchObject({
      batches: [{ id, progress: { total: 2, pending: 2 } }],
    })
    expect((await run(['batches', 'show', id])).out).toMatch(
      /^jobs +2: 2 pending, 0 completed, 0 failed, 0 cancelled$/m,
    )
    expect((await run(['batches', 'show', id, '--json'])).json).toMatchObject({
      batch: { name: 'campaign', sealed: true },
    })
    expect(await run(['batches', 'show', UNKNOWN_ID])).toMatchObject({ code: 3 })
  })

  test('cancel asks, needs --yes without a terminal, and can only look', async () => {
    const { mill, run, id } = await withBatch()
    expect(await run(['batches', 'cancel', id])).toMatchObject({ code: 2 })
    expect((await run(['batches', 'cancel', id, '--dry-run'])).out).toBe(
      'would cancel batch campaign with 2 unfinished jobs\n',
    )
    expect(await run(['batches', 'cancel', id], { tty: true, answer: 'n' })).toMatchObject({ code: 1 })
    expect((await mill.batches.get(id))?.cancelled).toBe(false)
    expect((await run(['batches', 'cancel', id, '--yes', '--json'])).json).toEqual({
      schemaVersion: 1,
      dryRun: false,
      batch: id,
      pending: 2,
      reached: 2,
    })
    expect((await mill.batches.get(id))?.cancelled).toBe(true)
    expect(await run(['batches', 'cancel', UNKNOWN_ID, '--yes'])).toMatchObject({ code: 3 })
  })
})
