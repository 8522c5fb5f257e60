// What is left of attempts and log lines, periods of queues, deleting by hand, and who may do it.
import pg from 'pg'
import { describe, expect, test } from 'vitest'
import { renderGrants } from '../../src/backends/postgres/roles.ts'
import { postgres } from '../../src/backends/postgres/backend.ts'
import type { ClaimedJob } from '../../src/core/job.ts'
import type { Transition } from '../../src/core/transition.ts'
import { createMillrace } from '../../src/millrace.ts'
import { cancelledByHandler, completed, failed, retried } from '../conformance/outcomes.ts'
import { after } from '../conformance/world.ts'
import { DAY, retentionWorlds } from './retention-world.ts'
import type { RetentionWorld } from './retention-world.ts'

const { setup } = retentionWorlds(18)

const DAILY = `select day::text, queue_name, name, status, n::int, total_ms::int, max_ms::int`

/** The attempts that are stored, as daily rows. */
const RECOUNT = `${DAILY} from (
    select (a.finished_at at time zone 'UTC')::date as day, j.queue_name, j.name, a.status, count(*) as n,
           sum(coalesce(extract(epoch from a.duration) * 1000, 0)) as total_ms, max(coalesce(extract(epoch from a.duration) * 1000, 0)) as max_ms
    from millrace.job_logs a join millrace.jobs j on j.id = a.job_id group by 1, 2, 3, 4) d
  union all ${DAILY} from millrace.job_daily`

async function sums(world: RetentionWorld): Promise<unknown> {
  return world.sql(
    `select day, queue_name, name, status, sum(n)::int as n, sum(total_ms)::int as total_ms, max(max_ms)::int as max_ms
     from (${RECOUNT}) r group by 1, 2, 3, 4 order by 1, 2, 3, 4`,
  )
}

function logged(run: ClaimedJob, ...messages: readonly string[]): Transition {
  const logLines = messages.map((message) => ({ atMs: 0, attempt: 1, level: 'info' as const, message }))
  return {
    jobId: run.id,
    edge: 'report',
    guard: { from: ['running'], lease: run.lease },
    to: 'running',
    logLines,
    logFrom: 0,
  }
}

describe('logs', () => {
  test('P5 attempts that go leave daily sums behind, and each is counted once', async () => {
    const world = await setup()
    await world.ended((run) => completed(run, null, 30), {}, {}, { name: 'other' }, { queue: 'q2' })
    await world.ended((run) => retried(run, 0, 7), { maxAttempts: 4 })
    await world.ended((run) => failed(run, 'no', 11), {}, {})
    await world.clock.advance(2 * DAY)
    await world.ended((run) => completed(run, null, 50), {}, {})
    await world.ended(cancelledByHandler, {})
    const before = await sums(world)
    for (const days of [37, 10, 50, 80, 100, 120]) {
      await world.clock.advance(days * DAY)
      await world.settle()
      expect(await sums(world)).toEqual(before)
      await world.expectSound()
    }
    expect(await world.value('select count(*)::int from millrace.job_attempts')).toBe(0)
    expect(await world.value("select count(*)::int from millrace.job_daily where status = 'success'")).toBe(4)
  })

  test('P5 attempts and lines of jobs that stay go after 90 days; what ended the job stays', async () => {
    const world = await setup()
    const worker = await world.worker()
    const id = await world.addOne({ maxAttempts: 2 })
    const first = await worker.claimOne()
    await world.apply(logged(first, 'one', 'two'), retried(first))
    await world.jobs.promote(10)
    const second = await worker.claimOne()
    await world.apply(failed(second))
    const [archived] = await world.add({})
    const run = await worker.claimOne()
    await world.apply(logged(run, 'three'), completed(run))
    await world.sql('update millrace.job_lines set at = millrace.now_at()')
    await world.clock.advance(60 * DAY)
    await world.settle()
    expect(await world.query.attempts(id)).toHaveLength(2)
    expect(await world.query.logs(id)).toHaveLength(2)
    expect(await world.query.logs(archived!)).toMatchObject([{ message: 'three' }])
    await world.clock.advance(31 * DAY)
    await world.settle()
    expect(await world.query.attempts(id)).toMatchObject([{ status: 'failed', attempt: 2 }])
    expect([await world.query.logs(id), await world.query.logs(archived!)]).toEqual([[], []])
    expect(await world.statusOf(id)).toEqual(['failed'])
    await world.expectSound()
  })
})

describe('periods', () => {
  test('P5 a queue may keep its jobs shorter, to the minute and without an archive', async () => {
    const world = await setup()
    await world.queues.configure('short', { retention: { completedMs: DAY, failedMs: 2 * DAY, cancelledMs: null } })
    const [done] = await world.ended(completed, { queue: 'short' })
    const [dead] = await world.ended(failed, { queue: 'short' })
    const [other] = await world.ended(completed, {})
    await world.clock.advance(DAY - 1_000)
    await world.settle()
    expect(await world.statusOf(done!, dead!)).toEqual(['completed', 'failed'])
    await world.clock.advance(2_000)
    await world.settle()
    expect(await world.statusOf(done!, dead!, other!)).toEqual(['gone', 'failed', 'completed'])
    await world.clock.advance(DAY)
    await world.settle()
    expect(await world.statusOf(dead!, other!)).toEqual(['gone', 'completed'])
    expect(await world.query.archived!([done!, dead!])).toEqual([null, null])
    await world.expectSound()
  })

  test('P5 short periods come in bounded steps that never look back', async () => {
    const world = await setup()
    await world.queues.configure('short', { retention: { completedMs: DAY, failedMs: null, cancelledMs: null } })
    await world.fill(2_500, 1, 'short')
    await world.fill(100, 1)
    await world.clock.advance(DAY + 1)
    expect(await world.step({}, 1_000)).toMatchObject({ deleted: 1_000, next: 'now' })
    await world.settle()
    expect(await world.sql('select queue_name, count(*)::int from millrace.jobs group by 1')).toEqual([
      { queue_name: 'mail', count: 100 },
    ])
    await world.expectSound()
  })

  test('P5 a queue that comes under a rule later is looked at from its beginning', async () => {
    const world = await setup()
    const retention = { completedMs: 200 * DAY, failedMs: null, cancelledMs: null }
    await world.queues.configure('slow', { retention })
    const [id] = await world.ended(completed, { queue: 'slow' })
    await world.ended(completed, {})
    await world.clock.advance(60 * DAY)
    await world.settle()
    expect(await world.statusOf(id!)).toEqual(['completed'])
    await world.queues.configure('slow', { retention: { ...retention, completedMs: null } })
    await world.settle()
    expect(await world.statusOf(id!)).toEqual(['gone'])
    await world.expectSound()
  })

  test('P5 all periods can be set for the system, and no archive at all', async () => {
    const world = await setup()
    const options = {
      completed: '2d',
      failed: '5d',
      cancelled: '2d',
      archive: null,
      logs: '3d',
      partition: '1d',
    } as const
    const [done] = await world.ended(completed, {})
    const [dead] = await world.ended(failed, {})
    await world.settle(options)
    await world.clock.advance(2 * DAY)
    await world.settle(options)
    expect(await world.partitions()).toEqual(['20300103'])
    await world.clock.advance(8 * DAY)
    await world.settle(options)
    expect(await world.partitions()).toEqual(['20300110', '20300113', '20300114'].slice(1))
    expect(await world.statusOf(done!, dead!)).toEqual(['gone', 'gone'])
    expect(await world.value('select count(*)::int from millrace.job_archive')).toBe(0)
    await world.expectSound()
  })
})

describe('the archive', () => {
  test('P5 a client reads an archived job by its id and cannot touch it any more', async () => {
    const world = await setup()
    const mill = await createMillrace({ jobs: [], connections: { default: world.backend } })
    const [id] = await world.ended((run) => completed(run, '{"sent":true}'), {})
    expect(await mill.jobs.get(id!)).not.toHaveProperty('archived')
    await world.clock.advance(38 * DAY)
    await world.settle()
    expect(await mill.jobs.get(id!)).toMatchObject({ id, status: 'completed', result: { sent: true }, archived: true })
    expect(await mill.jobs.attempts(id!)).toMatchObject([{ status: 'success' }])
    expect(await mill.jobs.remove(id!)).toBe('missing')
    expect(await mill.jobs.get(world.newId())).toBeNull()
    expect((await mill.jobs.list()).items).toEqual([])
    await mill.stop()
  })
})

describe('deleting by hand', () => {
  test('J6 deleting a job by plain SQL does what remove does, with all that hangs on it', async () => {
    const world = await setup()
    const batch = await world.batch()
    const worker = await world.worker()
    const [parent, waiting] = await world.add({ batch }, { group: 'g', queue: 'other' })
    const child = await world.addOne({ dependsOn: [after(parent!, 'cancel')], queue: 'third' })
    const next = await world.addOne({ group: 'g', queue: 'other' })
    const [done] = await world.ended((run) => completed(run), { queue: 'fourth' })
    expect(
      await world.sql('delete from millrace.jobs where id = any($1) returning id', [parent, waiting, done]),
    ).toHaveLength(3)
    expect(await world.statusOf(parent!, waiting!, done!, child, next)).toEqual([
      'gone',
      'gone',
      'gone',
      'blocked',
      'queued',
    ])
    expect(await world.jobs.due('orphaned', 10)).toMatchObject([{ job: { id: child } }])
    expect(await world.sql('select total, pending, kept from millrace.batches')).toEqual([
      { total: 0, pending: 0, kept: 0 },
    ])
    expect(await worker.claim(10, ['other'])).toMatchObject([{ id: next }])
    await world.expectSound()
  })

  test('J6 a running job is not deleted; the message says what to do', async () => {
    const world = await setup()
    const worker = await world.worker()
    const id = await world.addOne()
    const run = await worker.claimOne()
    const refused = world.sql('delete from millrace.jobs where id = $1', id)
    await expect(refused).rejects.toMatchObject({
      message: `job ${id} (send-welcome) is running and cannot be deleted`,
      hint: expect.stringContaining('mill.jobs.remove(id)'),
    })
    await world.apply(completed(run))
    await world.sql('delete from millrace.jobs where id = $1', id)
    expect(await world.statusOf(id)).toEqual(['gone'])
    expect(await world.sql('delete from millrace.jobs where id = $1 returning id', id)).toEqual([])
    await world.expectSound()
  })
})

describe('rights', () => {
  test('P5 a process with the rights of a worker keeps the periods', async () => {
    const world = await setup()
    const prefix = `p5_${process.pid}`
    await world.sql(renderGrants({ prefix }))
    await world.sql(`create role ${prefix}_login login password 'x' in role ${prefix}_worker`)
    const url = new URL(world.url)
    url.username = `${prefix}_login`
    url.password = 'x'
    const backend = postgres({ url: url.href, poolMax: 2 })
    await backend.start()
    try {
      const [id] = await world.ended(completed, {})
      await world.clock.advance(38 * DAY)
      const policy = {
        rules: [{ status: 'completed', olderThanMs: 30 * DAY }],
        archiveMs: 100 * DAY,
        logsMs: 50 * DAY,
        partitionMs: 7 * DAY,
      } as const
      for (let no = 0; no < 20; no++) if ((await backend.jobs.retain!(policy, 100)).next === 'later') break
      expect(await backend.query.get([id!])).toEqual([null])
      expect(await backend.query.archived!([id!])).toMatchObject([{ id }])
      await world.expectSound()
    } finally {
      await backend.stop()
      const admin = new pg.Client(world.url)
      await admin.connect()
      await admin.query(`drop role ${prefix}_login`)
      for (const role of ['producer', 'worker', 'operator', 'viewer']) {
        await admin.query(`drop owned by ${prefix}_${role}; drop role ${prefix}_${role}`)
      }
      await admin.end()
    }
  })
})
