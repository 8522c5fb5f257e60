// A partition is retired while others work: changes on the way, readers in the way, two leaders, many survivors.
import { describe, expect, test } from 'vitest'
import { createMigrator } from '../../src/backends/postgres/migrate.ts'
import { decideRemove, decideReplay } from '../../src/core/decide.ts'
import type { JobId } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { completed, failed } from '../conformance/outcomes.ts'
import { DAY, retentionWorlds } from './retention-world.ts'
import type { RetentionWorld } from './retention-world.ts'

const { setup } = retentionWorlds(15)

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

/** New jobs, run one after the other, until `stop`: how many, and the longest call since it was asked last. */
async function traffic(world: RetentionWorld) {
  const worker = await world.worker()
  let longestMs = 0
  let jobs = 0
  let isDone = false
  const timed = async <Value>(call: Promise<Value>): Promise<Value> => {
    const startedMs = performance.now()
    const value = await call
    longestMs = Math.max(longestMs, performance.now() - startedMs)
    return value
  }
  const running = (async () => {
    while (!isDone) {
      await timed(world.addOne())
      const run = await timed(worker.claimOne())
      await timed(world.apply(completed(run)))
      jobs += 1
    }
  })()
  return {
    takeLongestMs: (): number => {
      const ms = longestMs
      longestMs = 0
      return ms
    },
    stop: async (): Promise<number> => {
      isDone = true
      await running
      return jobs
    },
  }
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
    expect(await world.apply(remove(removed!), remove(deleted!))).toEqual(['applied', 'applied'])
    await world.apply(replay(replayed!))
    const runs = await worker.claim(10)
    expect(runs.map(({ id }) => id).toSorted()).toEqual([ends, replayed!].toSorted())
    await world.apply(completed(runs.find(({ id }) => id === ends)!))
    const late = world.idAt(world.clock.nowMs() - 37 * DAY)
    await world.add({ id: late, queue: 'other' })
    await world.settle()
    expect(await world.partitions()).not.toContain('20300103')
    expect(await world.statusOf(...gone, removed!, deleted!)).toEqual(['gone', 'gone', 'gone', 'gone'])
    const there = ['running', 'completed', 'failed', 'queued', 'queued']
    expect(await world.statusOf(replayed!, ends, stays!, starts, late)).toEqual(there)
    expect(await world.query.archived!([...gone, removed!, ends])).toMatchObject([{}, {}, null, null])
    await world.expectSound()
    await world.apply(completed(runs.find(({ id }) => id === replayed)!))
    expect(await world.statusOf(replayed!)).toEqual(['completed'])
  })

  test('P5 jobs that run, fail, are replayed, removed and added while their partition goes all come out right', async () => {
    const world = await setup()
    await world.fill(4_000, 1)
    const dead = await world.ended(failed, ...Array.from({ length: 60 }, () => ({})))
    const waiting = await world.add(...Array.from({ length: 120 }, () => ({ queue: 'other' })))
    await world.clock.advance(38 * DAY)
    const worker = await world.worker()
    const expected = new Map<JobId, string>()
    for (const id of dead) expected.set(id, 'failed')
    for (const id of waiting) expected.set(id, 'queued')
    let isDone = false
    const runs = (async () => {
      for (let no = 0; !isDone && no < waiting.length; no++) {
        const run = await worker.claimOne('other')
        await world.apply((no % 2 === 0 ? completed : failed)(run))
        expected.set(run.id, no % 2 === 0 ? 'completed' : 'failed')
      }
    })()
    const hands = (async () => {
      for (let no = 0; !isDone && no < dead.length; no++) {
        const id = dead[no]!
        expect(await world.apply(no % 2 === 0 ? replay(id) : remove(id))).toEqual(['applied'])
        expected.set(id, no % 2 === 0 ? 'queued' : 'gone')
        const [late] = await world.add({ id: world.idAt(world.clock.nowMs() - 38 * DAY + no) })
        expected.set(late!, 'queued')
      }
    })()
    // Small steps, so that much happens between them.
    await world.settle({}, 40)
    isDone = true
    await Promise.all([runs, hands])
    await world.settle()
    expect(await world.partitions()).not.toContain('20300103')
    const ids = [...expected.keys()]
    expect(await world.statusOf(...ids)).toEqual([...expected.values()])
    expect(await world.value('select count(*)::int from millrace.archived_jobs')).toBe(4_000)
    await world.expectSound()
  })

  test('P5 every part that was judged already is judged again when its first job goes', async () => {
    const world = await setup()
    await world.fill(500, 1)
    await world.clock.advance(38 * DAY)
    for (let no = 0; no < 4; no++) await world.step({}, 50)
    const removed = await world.sql(
      'delete from millrace.jobs where id in (select lower from millrace.retired_chunks) returning id',
    )
    expect(removed).toHaveLength(2)
    await world.settle({}, 50)
    expect(await world.value('select count(*)::int from millrace.jobs')).toBe(0)
    expect(await world.value('select count(*)::int from millrace.archived_jobs')).toBe(498)
    expect(await world.value('select sum(n)::int from millrace.job_daily')).toBe(498)
    await world.expectSound()
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
  test.each([
    ['is seen before', ''],
    [
      'is met by the lock',
      'create or replace function millrace.is_in_long_use(tables text[]) returns boolean language sql as $$ select false $$',
    ],
  ])('P5 a long reader that %s puts the drop off, and nobody waits for it', async (_, blinding) => {
    const world = await setup()
    await world.ended(completed, {})
    await world.clock.advance(38 * DAY)
    await untilWalked(world)
    if (blinding !== '') await world.sql(blinding)
    const reader = await world.open()
    await reader.sql.query('begin')
    await reader.sql.query('select count(*) from millrace.jobs')
    const { stop, takeLongestMs } = await traffic(world)
    const longest: number[] = []
    for (let no = 0; no < 5; no++) {
      takeLongestMs()
      expect((await world.step()).next).toBe('soon')
      longest.push(takeLongestMs())
    }
    await stop()
    expect(await world.partitions()).toContain('20300103')
    // The median: a machine that is busy with other tests may hold up any one of them.
    expect(longest.toSorted((one, other) => one - other)[2]).toBeLessThan(300)
    await reader.sql.query('commit')
    await reader.close()
    await world.settle()
    expect(await world.partitions()).not.toContain('20300103')
    await world.expectSound()
  })

  test('P5 two leaders and a busy worker at once do no harm', async () => {
    const world = await setup()
    await world.fill(6_000, 1)
    await world.fill(50, 2)
    await world.clock.advance(38 * DAY)
    const { stop } = await traffic(world)
    await Promise.all([world.settle(), world.settle(), world.settle()])
    const worked = await stop()
    expect(await world.value('select count(*)::int from millrace.jobs')).toBe(50 + worked)
    expect(await world.value('select count(*)::int from millrace.archived_jobs')).toBe(6_000)
    await world.expectSound()
    await world.settle()
    await world.expectSound()
  })
})

describe('much that stays', () => {
  test('P5 many survivors have a partition of their own, which grows with the next and goes in its time', async () => {
    const world = await setup()
    await world.fill(3_000, 2)
    await world.fill(4_000, 1)
    await world.clock.advance(8 * DAY)
    await world.settle()
    await world.fill(4_000, 2)
    await world.fill(10_000, 1)
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

  test('P5 a partition of which most must stay is left as it is, and the others are deleted from it', async () => {
    const world = await setup()
    await world.queues.configure('slow', { retention: { completedMs: 100 * DAY, failedMs: null, cancelledMs: null } })
    await world.fill(4_000, 1, 'slow')
    await world.fill(500, 1)
    await world.clock.advance(38 * DAY)
    await world.settle()
    expect(await world.partitions()).toContain('20300103')
    expect(await world.value('select count(*)::int from millrace.job_bodies_20300103')).toBe(4_000)
    expect(await world.value('select count(*)::int from millrace.archived_jobs')).toBe(500)
    expect(await world.sql("select 1 from pg_trigger where tgname = 'mark_change'")).toEqual([])
    await world.expectSound()
    await world.clock.advance(70 * DAY)
    await world.settle()
    expect(await world.value('select count(*)::int from millrace.job_bodies')).toBe(0)
    await world.clock.advance(300 * DAY)
    await world.settle()
    expect(await world.partitions()).not.toContain('20300103')
    await world.expectSound()
  })

  test('P5 the schema can be taken down in the middle of it', async () => {
    const world = await setup()
    await world.ended(completed, {})
    await world.clock.advance(38 * DAY)
    await untilWalked(world)
    const migrator = createMigrator({ url: world.url })
    await migrator.down(0)
    await migrator.close()
    expect(await world.sql("select tablename from pg_tables where schemaname = 'millrace'")).toEqual([
      { tablename: 'test_clock' },
    ])
  })

  test('P5 a big default partition is not read through under the lock', async () => {
    const world = await setup()
    // 70 MB of an earlier time, without their attempts: jobs that wait.
    await world.sql(`
      insert into millrace.job_queues (name, created_at) values ('old', millrace.now_at());
      insert into millrace.job_bodies (id, enqueued_at, first_run_at, queue_id, timeout_ms, max_attempts, priority, name, payload)
      select (left(millrace.uuid_at('2001-01-01')::text, 14) || '7' || substr(gen_random_uuid()::text, 16))::uuid, millrace.now_at(), millrace.now_at(),
             q.id, 1000, 3, 100, 'old', to_json(repeat('x', 1800)) from generate_series(1, 36000), millrace.job_queues q`)
    expect((await world.step()).next).toBe('now')
    const constraint = "select conname, convalidated from pg_constraint where conname like 'awaits%' order by 1, 2"
    expect(await world.sql(constraint)).toMatchObject([{ convalidated: false }, { convalidated: false }])
    await world.settle()
    expect(await world.sql(constraint)).toEqual([])
    expect(await world.partitions()).toEqual(['20300103', '20300110'])
  })
})

function remove(id: JobId): Transition {
  return decideRemove(id)[0]
}

function replay(id: JobId): Transition {
  return decideReplay(id, 'ada')
}
