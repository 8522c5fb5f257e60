// A partition is retired while others work: changes on the way, readers in the way, two leaders, many survivors.
import { describe, expect, test } from 'vitest'
import type { JobId } from '../../src/core/job.ts'
import { EDGES } from '../../src/core/edges.ts'
import { completed, failed } from '../conformance/outcomes.ts'
import { DAY, retentionWorlds } from './retention-world.ts'
import type { RetentionWorld } from './retention-world.ts'

const { setup } = retentionWorlds(18)

/** Passes until everything of the range that is being retired was looked at, and nothing is swapped yet. */
async function untilWalked(world: RetentionWorld): Promise<void> {
  for (let no = 0; no < 50; no++) {
    const [found] = await world.sql('select walked = upper as is_walked, is_swapped from millrace.retirements')
    if (found?.['is_walked'] === true) {
      expect(found['is_swapped']).toBe(false)
      return
    }
    await world.step()
  }
  throw new Error('nothing is being retired')
}

describe('changes on the way', () => {
  test('P5 what happens to jobs of a partition that is being retired is not lost', async () => {
    const world = await setup()
    const worker = await world.worker()
    const gone = await world.ended(completed, {}, {})
    const [removed] = await world.ended(completed, {})
    const [replayed, deleted, stays] = await world.ended(failed, {}, {}, {})
    const ends = await world.addOne()
    const starts = await world.addOne({ queue: 'other' })
    await world.clock.advance(38 * DAY)
    await untilWalked(world)
    const remove = (jobId: JobId) =>
      ({ jobId, edge: 'remove', guard: { from: EDGES.remove.from }, to: 'removed' }) as never
    expect(await world.apply(remove(removed!), remove(deleted!))).toEqual(['applied', 'applied'])
    await world.apply({
      jobId: replayed!,
      edge: 'replay',
      guard: { from: ['failed'] },
      to: 'queued',
      attempt: 'reset',
    } as never)
    const runs = await worker.claim(10)
    expect(runs.map(({ id }) => id).toSorted()).toEqual([ends, replayed!].toSorted())
    await world.apply(completed(runs.find(({ id }) => id === ends)!))
    const late = world.idAt(world.clock.nowMs() - 37 * DAY)
    await world.add({ id: late, queue: 'other' })
    await world.settle()
    expect(await world.partitions()).not.toContain('20300103')
    expect(await world.statusOf(...gone, removed!, deleted!)).toEqual(['gone', 'gone', 'gone', 'gone'])
    expect(await world.statusOf(replayed!, ends, stays!, starts, late)).toEqual([
      'running',
      'completed',
      'failed',
      'queued',
      'queued',
    ])
    expect(await world.query.archived!([...gone, removed!, ends])).toMatchObject([{}, {}, null, null])
    await world.expectSound()
    await world.apply(completed(runs.find(({ id }) => id === replayed)!))
    expect(await world.statusOf(replayed!)).toEqual(['completed'])
  })

  test('P5 periods that change meanwhile are those that count', async () => {
    const world = await setup()
    const ids = await world.ended(completed, {}, {})
    await world.clock.advance(38 * DAY)
    await untilWalked(world)
    await world.queues.configure('mail', { retention: { completedMs: 100 * DAY, failedMs: null, cancelledMs: null } })
    await world.settle()
    expect(await world.statusOf(...ids)).toEqual(['completed', 'completed'])
    await world.expectSound()
  })
})

describe('others in the way', () => {
  test.each(['is seen before', 'is met by the lock'])(
    'P5 a long reader that %s puts the drop off, and nobody waits for it',
    async (how) => {
      const world = await setup()
      await world.ended(completed, {})
      await world.clock.advance(38 * DAY)
      await untilWalked(world)
      if (how === 'is met by the lock') {
        await world.sql(
          'create or replace function millrace.is_in_long_use(tables text[]) returns boolean language sql as $$ select false $$',
        )
      }
      const reader = await world.open()
      await reader.sql.query('begin')
      await reader.sql.query('select count(*) from millrace.jobs')
      const worker = await world.worker()
      let longestMs = 0
      const timed = async <Value>(call: Promise<Value>): Promise<Value> => {
        const startedMs = performance.now()
        const value = await call
        longestMs = Math.max(longestMs, performance.now() - startedMs)
        return value
      }
      let isDone = false
      const traffic = (async () => {
        while (!isDone) {
          await timed(world.addOne())
          const run = await timed(worker.claimOne())
          await timed(world.apply(completed(run)))
        }
      })()
      for (let no = 0; no < 5; no++) expect((await world.step()).next).toBe('soon')
      isDone = true
      await traffic
      expect(await world.partitions()).toContain('20300103')
      expect(longestMs).toBeLessThan(300)
      await reader.sql.query('commit')
      await reader.close()
      await world.settle()
      expect(await world.partitions()).not.toContain('20300103')
      await world.expectSound()
    },
  )

  test('P5 two leaders and a busy worker at once do no harm', async () => {
    const world = await setup()
    await world.fill(6_000, 1)
    await world.fill(50, 2)
    await world.clock.advance(38 * DAY)
    const worker = await world.worker()
    let isDone = false
    let worked = 0
    const traffic = (async () => {
      while (!isDone) {
        await world.addOne()
        await world.apply(completed(await worker.claimOne()))
        worked += 1
      }
    })()
    await Promise.all([world.settle(), world.settle(), world.settle()])
    isDone = true
    await traffic
    expect(await world.value('select count(*)::int from millrace.jobs')).toBe(50 + worked)
    expect(await world.value('select count(*)::int from millrace.archived_jobs')).toBe(6_000)
    await world.expectSound()
    await world.settle()
    await world.expectSound()
  })
})

describe('many survivors', () => {
  test('P5 stay in a partition of their own, which grows with the next and goes in its time', async () => {
    const world = await setup()
    await world.fill(3_000, 2)
    await world.fill(4_000, 1)
    await world.clock.advance(8 * DAY)
    await world.settle()
    await world.fill(4_000, 2)
    await world.clock.advance(31 * DAY)
    await world.settle()
    expect(await world.partitions()).toContain('20300103_000000')
    expect(await world.value('select count(*)::int from millrace.job_bodies_20300103_000000')).toBe(3_000)
    await world.clock.advance(7 * DAY)
    await world.settle()
    expect(await world.value('select count(*)::int from millrace.job_bodies_20300103_000000')).toBe(7_000)
    expect(await world.sql('select count(*)::int as n from millrace.kept_partitions')).toEqual([{ n: 1 }])
    await world.expectSound()
    await world.clock.advance(322 * DAY)
    await world.settle()
    expect(await world.value('select count(*)::int from millrace.jobs')).toBe(4_000)
    await world.clock.advance(30 * DAY)
    await world.settle()
    expect(await world.value('select count(*)::int from millrace.job_bodies')).toBe(0)
    expect(await world.sql('select * from millrace.kept_partitions')).toEqual([])
    await world.expectSound()
  })
})
