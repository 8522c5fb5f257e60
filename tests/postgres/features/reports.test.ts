// What plain SQL can rely on: the names of the contract, the reports that people write, and no loose ends.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed } from '../../../src/index.ts'
import type { RunContext } from '../../../src/index.ts'
import { isDiagnosable } from '../../../src/store/diagnosis.ts'
import type { Finding } from '../../../src/store/diagnosis.ts'
import { backendOf, usePostgres } from './support.ts'
import type { PostgresPlace } from './support.ts'

const COLUMNS = {
  jobs: `id queue_name name status priority payload attempt_count max_attempts run_at started_at completed_at failed_at
    last_error_message worker_id batch_id result created_at updated_at`,
  job_logs: 'id job_id status log_message attempt_number worker_id started_at finished_at duration created_at',
  job_queues: 'name default_priority is_active created_at',
  workers: 'id host pid queues concurrency started_at last_beat_at',
  batches: 'id name total pending completed failed cancelled created_at finished_at',
  schedules: 'name job_name queue_name payload priority is_enabled next_run_at last_run_at created_at',
}

const place = usePostgres()

const send = defineJob({
  name: 'send',
  queue: 'mail',
  retry: fixed({ attempts: 2, delay: 10, jitter: 0 }),
  run({ input, log }: RunContext<string>) {
    log.info(`to ${input}`)
    if (input === 'nobody') throw new Error('no such mailbox')
    return { sentTo: input }
  },
})
const count = defineJob({ name: 'count', queue: 'numbers', run: ({ input }: RunContext<number>) => input })
const jobs = [send, count] as const

/** Three mails sent, one failed, one for later; a number counted in a batch; a paused queue with one job. */
async function busyDay(at: PostgresPlace) {
  const mill = await at.process(jobs)
  const worker = await mill.work()
  const sent = await mill.enqueueMany(['ada', 'bob', 'cyd'].map((name) => [send, name] as const))
  const failed = await mill.enqueue(send, 'nobody')
  const later = await mill.enqueue(send, 'dan', { delay: '1h', priority: 30 })
  const batch = await mill.enqueueBatch('sums', [[count, 7]])
  await mill.schedules.upsert('nightly', { job: count, input: 1, cron: '0 3 * * *' })
  for (const handle of sent) await handle.result()
  await failed.result().catch(() => undefined)
  await batch.wait()
  await mill.queues.pause('numbers')
  const waiting = await mill.enqueue(count, 8)
  return { mill, worker, sent, failed, later, batch, waiting }
}

describe('postgres', () => {
  test('J6 tables and views have the columns of the contract', async () => {
    await using at = await place()
    const { failed, batch, waiting } = await busyDay(at)
    const read = (table: keyof typeof COLUMNS) =>
      at.query<Record<string, unknown>>(`select ${COLUMNS[table].split(/\s+/).join(', ')} from millrace.${table}`)
    for (const table of Object.keys(COLUMNS) as (keyof typeof COLUMNS)[]) {
      expect((await read(table)).length, table).toBeGreaterThan(0)
    }
    const rows = await read('jobs')
    expect(rows.find(({ id }) => id === failed.id)).toMatchObject({
      queue_name: 'mail',
      name: 'send',
      status: 'failed',
      priority: 100,
      payload: 'nobody',
      attempt_count: 2,
      max_attempts: 2,
      completed_at: null,
      failed_at: expect.any(Date) as Date,
      started_at: expect.any(Date) as Date,
      last_error_message: 'no such mailbox',
      batch_id: null,
      result: null,
    })
    expect(rows.find(({ id }) => id === waiting.id)).toMatchObject({
      status: 'queued',
      attempt_count: 0,
      started_at: null,
      worker_id: null,
    })
    expect(rows.find(({ batch_id }) => batch_id === batch.id)).toMatchObject({
      status: 'completed',
      result: 7,
      completed_at: expect.any(Date) as Date,
      last_error_message: null,
    })
  })

  test('J6 the usual reports: status counts per queue, failures of the last 24 h, jobs of one worker', async () => {
    await using at = await place()
    const { worker, sent, failed, batch } = await busyDay(at)
    expect(
      await at.query('select queue_name, status, count(*)::int as jobs from millrace.jobs group by 1, 2 order by 1, 2'),
    ).toEqual([
      { queue_name: 'mail', status: 'completed', jobs: 3 },
      { queue_name: 'mail', status: 'failed', jobs: 1 },
      { queue_name: 'mail', status: 'scheduled', jobs: 1 },
      { queue_name: 'numbers', status: 'completed', jobs: 1 },
      { queue_name: 'numbers', status: 'queued', jobs: 1 },
    ])
    const failures = `select id, name, last_error_message from millrace.jobs
      where status = 'failed' and failed_at > now() - interval '24 hours'`
    expect(await at.query(failures)).toEqual([{ id: failed.id, name: 'send', last_error_message: 'no such mailbox' }])
    const ofWorker = await at.query<{ id: string }>('select id from millrace.jobs where worker_id = $1', [
      worker.ids[0],
    ])
    const counted = await at.query<{ id: string }>('select id from millrace.jobs where batch_id = $1', [batch.id])
    const ran = [...sent.map(({ id }) => id), failed.id, counted[0]!.id]
    expect(ofWorker.map(({ id }) => id).toSorted()).toEqual(ran.toSorted())
  })

  test('J6 job_logs tells every attempt, with its duration and its error', async () => {
    await using at = await place()
    const { worker, failed } = await busyDay(at)
    const rows = await at.query<{ duration: unknown }>(
      `select status, log_message, attempt_number, worker_id, duration = finished_at - started_at as has_duration
       from millrace.job_logs where job_id = $1 order by id`,
      [failed.id],
    )
    const row = { log_message: 'no such mailbox', worker_id: worker.ids[0], has_duration: true }
    expect(rows).toEqual([
      { ...row, status: 'retry', attempt_number: 1 },
      { ...row, status: 'failed', attempt_number: 2 },
    ])
    const ids = await at.query<{ id: string }>('select id from millrace.job_logs')
    expect(new Set(ids.map(({ id }) => id)).size).toBe(ids.length)
  })

  test('J6 a deleted job leaves nothing behind, whether the library or plain SQL deletes it', async () => {
    await using at = await place()
    const { mill, sent, failed, later, waiting } = await busyDay(at)
    const child = await mill.enqueue(send, 'eve', { after: [later], unique: { key: 'eve' }, tags: ['t'] })
    const ids = [...sent, failed, later, waiting, child].map(({ id }) => id)
    for (const id of ids.slice(0, 3)) expect(await mill.jobs.remove(id)).toBe('removed')
    await at.query('delete from millrace.jobs where id = any($1)', [ids])
    expect(await at.query('select id from millrace.jobs where id = any($1)', [ids])).toEqual([])
    // By the names of columns, so that a table that is added is looked at too.
    const columns = await at.query<{ place: string; name: string }>(
      `select format('millrace.%I', c.relname) as place, quote_ident(a.attname) as name
       from pg_class c join pg_attribute a on a.attrelid = c.oid
       where c.relnamespace = 'millrace'::regnamespace and c.relkind = 'r' and a.atttypid = 'uuid'::regtype
         and a.attname in ('id', 'job_id', 'child', 'holder') and c.relname not like 'retired%'`,
    )
    expect(columns.length).toBeGreaterThan(8)
    for (const { place: table, name } of columns) {
      expect(await at.query(`select 1 from ${table} where ${name} = any($1)`, [ids]), `${table}.${name}`).toEqual([])
    }
    expect(await orphans(at)).toMatchObject({ level: 'ok' })
  })

  test('J6 no log without job: doctor finds what was torn apart by hand', async () => {
    await using at = await place()
    const { sent } = await busyDay(at)
    expect(await orphans(at)).toMatchObject({ level: 'ok' })
    await at.query('delete from millrace.job_bodies where id = $1', [sent[0]!.id])
    const finding = await orphans(at)
    expect(finding.level).toBe('fail')
    expect(finding.message).toContain('without a job')
    expect(finding.message).toContain(sent[0]!.id)
  })

  test('J6 no job without queue: a queue that has jobs cannot be deleted', async () => {
    await using at = await place()
    const { mill, waiting } = await busyDay(at)
    await expect(at.query(`delete from millrace.job_queues where name = 'numbers'`)).rejects.toThrow(/numbers/)
    expect(await mill.jobs.get(waiting)).toMatchObject({ queue: 'numbers', status: 'queued' })
  })
})

async function orphans(at: PostgresPlace): Promise<Finding> {
  const backend = backendOf({ url: at.url })
  await backend.start()
  try {
    const checks = isDiagnosable(backend) ? await backend.diagnose() : []
    return await checks.find(({ name }) => name === 'orphans')!.run()
  } finally {
    await backend.stop()
  }
}
