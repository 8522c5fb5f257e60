// The four roles at work: each runs the part of Millrace it is for, over its own login, and is refused the rest.
import pg from 'pg'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { renderGrants } from '../../src/backends/postgres/roles.ts'
import { createMillrace, defineJob } from '../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase } from '../support/postgres-server.ts'

const greet = defineJob({ name: 'greet', queue: 'greetings', run: () => 'hello' })
const prefix = `roles_${process.pid}`
let database: FreshDatabase
let owner: pg.Client

beforeAll(async () => {
  database = await freshDatabase(await sharedPostgres(18))
  const mill = await createMillrace({ jobs: [greet], postgres: database.url })
  await mill.stop()
  owner = new pg.Client({ connectionString: database.url })
  await owner.connect()
  await owner.query(renderGrants({ prefix }))
  for (const role of ['producer', 'worker', 'operator', 'viewer']) {
    await owner.query(`create role ${prefix}_${role}_login login password 'secret' in role ${prefix}_${role}`)
  }
})

afterAll(async () => {
  await owner.end()
  await database.drop()
  const admin = new pg.Client({ connectionString: (await sharedPostgres(18)).url })
  await admin.connect()
  for (const role of ['producer', 'worker', 'operator', 'viewer']) {
    await admin.query(`drop role if exists ${prefix}_${role}_login`)
    await admin.query(`drop role if exists ${prefix}_${role}`)
  }
  await admin.end()
})

function urlOf(role: string): string {
  const url = new URL(database.url)
  url.username = `${prefix}_${role}_login`
  url.password = 'secret'
  return url.href
}

function open(role: string) {
  return createMillrace({ jobs: [greet], postgres: { url: urlOf(role), migrate: 'check' } })
}

async function refusal(role: string, sql: string): Promise<unknown> {
  const client = new pg.Client({ connectionString: urlOf(role) })
  await client.connect()
  try {
    await client.query(sql)
    return 'allowed'
  } catch (error) {
    return error instanceof Error && 'code' in error ? error.code : error
  } finally {
    await client.end()
  }
}

const DENIED = '42501'

describe('J11 least-privilege roles', () => {
  test('J11 a producer enqueues, a worker runs it, and the producer gets its result', async () => {
    const producer = await open('producer')
    const worker = await open('worker')
    try {
      const handle = await producer.enqueue(greet)
      await worker.work()
      expect(await handle.result({ timeout: '15s' })).toBe('hello')
    } finally {
      await worker.stop()
      await producer.stop()
    }
  })

  test('J11 a producer reads no table of jobs, claims nothing and deletes nothing', async () => {
    expect(await refusal('producer', 'select * from millrace.job_bodies')).toBe(DENIED)
    expect(await refusal('producer', 'delete from millrace.ready')).toBe(DENIED)
    expect(await refusal('producer', `select millrace.register_worker('x', 'h', 1, '{}', 1)`)).toBe(DENIED)
  })

  test('J11 a producer of the hybrid mints and learns of epochs; only a worker turns them', async () => {
    const flip = `select millrace.flip_queues('{greetings}', '{0}', 'token', 'r', false, 0)`
    const mint = `select leases from millrace.insert_one(gen_random_uuid(), 'greetings', 'greet', 'null', 1000, null, null, null, null, null, null, null, '1.b', true)`
    expect(await refusal('producer', mint)).toBe('allowed')
    expect(await refusal('producer', `select millrace.dispatch_of('{greetings}')`)).toBe('allowed')
    expect(await refusal('producer', 'select millrace.pg_identity()')).toBe('allowed')
    for (const role of ['producer', 'operator', 'viewer']) {
      expect(await refusal(role, flip)).toBe(DENIED)
      expect(await refusal(role, 'select millrace.renew_server()')).toBe(DENIED)
    }
    await owner.query("update millrace.ledger set pg_identity = 'another'")
    expect(await refusal('worker', 'select millrace.renew_server()')).toBe('allowed')
    expect(await refusal('worker', flip)).toBe('allowed')
    expect(await refusal('worker', `select millrace.requeue_old('greetings', 1, 10, 0, 100)`)).toBe('allowed')
    expect(await refusal('operator', `select millrace.flag_cancel(gen_random_uuid(), 1, 'w', false)`)).toBe('allowed')
    // The way back to PostgreSQL alone is the operator's.
    expect(await refusal('operator', 'select millrace.recall_tokens()')).toBe('allowed')
    for (const role of ['producer', 'viewer']) {
      expect(await refusal(role, 'select millrace.recall_tokens()')).toBe(DENIED)
    }
    await owner.query('delete from millrace.dispatch')
  })

  test('J11 an operator pauses a queue and cancels a job, but runs none', async () => {
    const operator = await open('operator')
    const producer = await open('producer')
    try {
      await operator.queues.pause('greetings')
      const handle = await producer.enqueue(greet)
      expect(await operator.jobs.cancel(handle.id)).toBe('cancelled')
      await operator.queues.resume('greetings')
    } finally {
      await producer.stop()
      await operator.stop()
    }
    expect(await refusal('operator', `select millrace.register_worker('x', 'h', 1, '{}', 1)`)).toBe(DENIED)
  })

  test('J11 a viewer reads the reports and changes nothing', async () => {
    expect(await refusal('viewer', 'select queue_name, status, count(*) from millrace.jobs group by 1, 2')).toBe(
      'allowed',
    )
    expect(await refusal('viewer', 'select * from millrace.job_logs')).toBe('allowed')
    expect(await refusal('viewer', 'delete from millrace.job_bodies')).toBe(DENIED)
    expect(await refusal('viewer', `select millrace.enqueue('greetings', 'greet')`)).toBe(DENIED)
  })
})
