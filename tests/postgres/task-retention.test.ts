// The retention task over months: partitions go in one run, and what went is in the archive and in the sums per day.
import { describe, expect, test } from 'vitest'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { cleanLogs } from '../../src/tasks/logs.ts'
import { runRetention } from '../../src/tasks/retention.ts'
import { completed, failed } from '../conformance/outcomes.ts'
import { DAY, retentionWorlds } from './retention-world.ts'

describe.each([18, 15] as const)('on PostgreSQL %i', (version) => {
  const { setup } = retentionWorlds(version)

  test('P5 one run takes all that is due; the archive is read by id, failed jobs stay, logs become sums', async () => {
    const world = await setup()
    const context = { runtime: createRuntime(), backend: world.backend, signal: new AbortController().signal }
    await runRetention(context)
    const [first, second] = await world.ended(completed, {}, {})
    const [dead] = await world.ended(failed, {})
    await world.clock.advance(40 * DAY)
    const result = await runRetention(context)
    expect(result).toMatchObject({ outcome: 'done', left: null, warnings: [] })
    expect(result.counts).toMatchObject({ swapped: 1 })
    expect(await world.statusOf(first!, second!, dead!)).toEqual(['gone', 'gone', 'failed'])
    const archived = await world.backend.query.archived!([first!, second!])
    expect(archived.map((job) => job?.status)).toEqual(['completed', 'completed'])
    expect(await world.value(`select sum(n)::int from millrace.job_daily where status = 'success'`)).toBe(2)

    await world.clock.advance(60 * DAY)
    expect(await cleanLogs(context)).toMatchObject({ outcome: 'done', counts: { files: 0 } })
    await world.clock.advance(100 * DAY)
    expect(await runRetention(context)).toMatchObject({ outcome: 'done' })
    expect(await world.backend.query.archived!([first!, second!])).toEqual([null, null])
    expect(await world.statusOf(dead!)).toEqual(['failed'])
    await world.expectSound()
  })

  test('P5 a run that is out of time says so, and the next one goes on', async () => {
    const world = await setup()
    await world.fill(3_000, 1)
    await world.clock.advance(40 * DAY)
    const runtime = createRuntime()
    let nowMs = 0
    const clock = { ...runtime.clock, monoMs: () => (nowMs += 10) }
    const context = { runtime: { ...runtime, clock }, backend: world.backend, signal: new AbortController().signal }
    const cut = await runRetention(context, { maxTime: 15 })
    expect(cut).toMatchObject({
      outcome: 'partial',
      counts: { passes: 1 },
      left: expect.stringContaining('next run') as string,
    })
    expect(await runRetention(context)).toMatchObject({ outcome: 'done' })
    expect(await world.value('select count(*)::int from millrace.job_archive')).toBe(3_000)
  })
})
