// Retention on real servers: what goes, what stays, and that everything that counts stays right.
import { describe, expect, test } from 'vitest'
import { cancelledByHandler, completed, failed, retried } from '../conformance/outcomes.ts'
import { after } from '../conformance/world.ts'
import { DAY, retentionWorlds } from './retention-world.ts'

describe.each([18, 15] as const)('on PostgreSQL %i', (version) => {
  const { setup } = retentionWorlds(version)

  test('P5 the first jobs have a partition, the next one is made ahead of time, and jobs and attempts share bounds', async () => {
    const world = await setup()
    expect(await world.partitions()).toEqual(['20300103'])
    await world.settle()
    expect(await world.partitions()).toEqual(['20300103', '20300110'])
    const [early] = await world.ended(completed, {})
    await world.clock.advance(8 * DAY)
    await world.settle()
    const [late] = await world.ended(completed, {})
    expect(await world.partitions('job_attempts')).toEqual(['20300103', '20300110', '20300117'])
    expect(await world.placeOf(early!)).toEqual(['20300103', '20300103'])
    expect(await world.placeOf(late!)).toEqual(['20300110', '20300110'])
  })

  test('P5 ids of skewed clocks have a home, can be worked on, and go in their time', async () => {
    const world = await setup()
    const ids = [
      world.idAt(Date.UTC(1990, 1)),
      world.idAt(Date.UTC(2100, 1)),
      world.idAt(world.clock.nowMs() - 40 * DAY),
    ]
    await world.ended(completed, ...ids.map((id) => ({ id })))
    for (const id of ids) expect(await world.placeOf(id)).toEqual(['rest', 'rest'])
    await world.clock.advance(29 * DAY)
    await world.settle()
    expect(await world.statusOf(...ids)).toEqual(['completed', 'completed', 'completed'])
    await world.clock.advance(2 * DAY)
    await world.settle()
    expect(await world.statusOf(...ids)).toEqual(['gone', 'gone', 'gone'])
    await world.expectSound()
  })

  test('P5 workers that died go after the last that they ran, those that live or died lately stay', async () => {
    const world = await setup()
    const [old, alive] = [await world.worker(), await world.worker()]
    await world.workers.retire(old.id)
    await world.jobs.due('expired', 10)
    await world.clock.advance(400 * DAY)
    const late = await world.worker()
    await world.workers.retire(late.id)
    await world.beat(alive.id)
    await world.settle()
    expect(await world.sql('select id from millrace.workers order by no')).toEqual([{ id: alive.id }, { id: late.id }])
    expect(await world.value('select count(*)::int from millrace.worker_claims')).toBe(2)
  })

  test('P5 a new partition takes in the few of its time that came before it', async () => {
    const world = await setup()
    const id = world.idAt(world.clock.nowMs() + 8 * DAY)
    await world.ended(completed, { id })
    expect(await world.placeOf(id)).toEqual(['rest', 'rest'])
    await world.settle()
    expect(await world.placeOf(id)).toEqual(['20300110', '20300110'])
    await world.expectSound()
  })

  test('P5 finished jobs go with their partition; what must live longer stays', async () => {
    const world = await setup()
    await world.queues.configure('slow', { retention: { completedMs: 100 * DAY, failedMs: null, cancelledMs: null } })
    const batch = await world.batch({})
    const gone = await world.ended(completed, {}, {}, { batch })
    const [cancelled] = await world.ended(cancelledByHandler, {})
    const [dead] = await world.ended(failed, { batch })
    const [long] = await world.ended(completed, { queue: 'slow' })
    const [waiting] = await world.add({ delayMs: 300 * DAY })
    const [child] = await world.ended(completed, { dependsOn: [after(gone[0]!)] })
    const ids = [...gone, cancelled!, dead!, long!, waiting!, child!]
    await world.clock.advance(36 * DAY)
    await world.settle()
    expect((await world.statusOf(...ids)).filter((status) => status === 'gone')).toEqual([])
    await world.clock.advance(2 * DAY)
    await world.settle()
    expect(await world.statusOf(...ids)).toEqual([
      'gone',
      'gone',
      'gone',
      'gone',
      'failed',
      'completed',
      'scheduled',
      'gone',
    ])
    expect(await world.partitions()).not.toContain('20300103')
    for (const id of [dead!, long!]) expect(await world.placeOf(id)).toEqual(['rest', 'rest'])
    expect(await world.placeOf(waiting!)).toEqual(['rest'])
    await world.expectSound()
    await world.clock.advance(70 * DAY)
    await world.settle()
    expect(await world.statusOf(dead!, long!, waiting!)).toEqual(['failed', 'gone', 'scheduled'])
    await world.clock.advance(260 * DAY)
    await world.settle()
    expect(await world.statusOf(dead!, waiting!)).toEqual(['gone', 'scheduled'])
    await world.expectSound()
  })

  test('P5 completed jobs can be read from the archive for six months', async () => {
    const world = await setup()
    const parent = await world.addOne()
    const id = await world.addOne({ dependsOn: [after(parent)], tags: ['a'], meta: '{"m":1}', maxAttempts: 5 })
    const worker = await world.worker()
    await world.apply(completed(await worker.claimOne()))
    await world.apply(retried(await worker.claimOne()))
    await world.clock.advance(1_000)
    await world.jobs.promote(10)
    const run = await worker.claimOne()
    await world.apply(completed(run, '{"done":true}', 40))
    const [before, attempts] = [await world.get(id), await world.query.attempts(id)]
    await world.clock.advance(38 * DAY)
    await world.settle()
    expect(await world.query.get([id])).toEqual([null])
    const [archived, missing] = await world.query.archived!([id, world.newId()])
    expect(archived).toEqual({ ...before, progress: null, uniqueKey: null })
    expect(missing).toBeNull()
    expect(await world.query.attempts(id)).toEqual(attempts)
    expect(
      await world.sql(
        'select status, attempt_count, result, worker_id, tags from millrace.archived_jobs where id = $1',
        id,
      ),
    ).toEqual([{ status: 'completed', attempt_count: 2, result: { done: true }, worker_id: worker.id, tags: ['a'] }])
    expect(await world.partitions('job_archive')).toHaveLength(1)
    await world.clock.advance(60 * DAY)
    await world.settle()
    expect(await world.query.attempts(id)).toMatchObject([{ status: 'success', attempt: 2 }])
    await world.clock.advance(100 * DAY)
    await world.settle()
    expect(await world.query.archived!([id])).toEqual([null])
    expect(await world.partitions('job_archive')).toEqual([])
    await world.expectSound()
  })
})
