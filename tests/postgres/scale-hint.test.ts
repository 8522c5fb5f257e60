// The view for outside scalers: the numbers of /scale, for a role that may read nothing else, and cheap in a deep queue.
import { describe, expect, test } from 'vitest'
import { defineJob } from '../../src/index.ts'
import { ROLES, renderGrants, roleName } from '../../src/backends/postgres/roles.ts'
import { gate } from '../features/support.ts'
import { until } from '../support/until.ts'
import { readText } from '../tidy/source.ts'
import { usePostgres } from './features/support.ts'

const place = usePostgres()

interface Hint {
  readonly queue: string
  readonly paused: boolean
  readonly ready: string
  readonly running: string
  readonly oldest_ready_seconds: string
  readonly workers: string
  readonly slots: string
  readonly value: string
  readonly wanted_workers: string
}

const hintOf = (queue: string): string => `select * from millrace.scale_hint where queue = '${queue}'`

describe('P3 scale_hint', () => {
  test('P3 has the numbers of GET /scale', async () => {
    await using at = await place()
    const door = gate()
    const slow = defineJob({ name: 'slow', queue: 'mail', run: () => door.opened })
    const mill = await at.process([slow])
    const worker = await mill.work({ concurrency: 3 })
    await mill.enqueueMany(
      Array.from({ length: 10 }, (_, no) => [slow, undefined, { priority: no % 2 === 0 ? 10 : 200 }] as const),
    )
    const compared = async (): Promise<readonly [Record<string, unknown>, Record<string, unknown> | null]> => {
      const [row] = await at.query<Hint>(hintOf('mail'))
      const { queue, paused, ...numbers } = row!
      const n = Object.fromEntries(Object.entries(numbers).map(([name, value]) => [name, Number(value)]))
      const { oldest_ready_seconds, wanted_workers, ...rest } = n
      const fromView = {
        queue,
        paused,
        ...rest,
        oldestReadySeconds: oldest_ready_seconds,
        wantedWorkers: wanted_workers,
      }
      return [fromView, (await mill.health.scale('mail')) as Record<string, unknown> | null]
    }
    await until('three to run', async () => (await compared())[0]['running'] === 3)
    const [view, signal] = await compared()
    // A second may begin between the two.
    expect({ ...view, oldestReadySeconds: 0 }).toEqual({ ...signal, oldestReadySeconds: 0 })
    expect(view).toMatchObject({ ready: 7, running: 3, workers: 1, slots: 3, value: 10, wantedWorkers: 4 })

    await at.query(`update millrace.ready set ready_at = ready_at - interval '90 seconds' where priority = 200`)
    const [older, same] = await compared()
    expect(Number(older['oldestReadySeconds'])).toBeGreaterThanOrEqual(90)
    expect(Math.abs(Number(older['oldestReadySeconds']) - Number(same?.['oldestReadySeconds']))).toBeLessThanOrEqual(1)

    await mill.queues.pause('mail')
    expect((await compared())[0]).toMatchObject({ paused: true, value: 3, wantedWorkers: 1 })
    door.open()
    await worker.stop()
    await mill.queues.configure('empty', {})
    expect(await at.query<Hint>(hintOf('empty'))).toMatchObject([{ ready: '0', value: '0', wanted_workers: '0' }])
  })

  test('P3 a consumer by hand, which has no slots, does not break it', async () => {
    await using at = await place()
    const noop = defineJob({ name: 'noop', queue: 'mail', run: () => undefined })
    const mill = await at.process([noop])
    await mill.enqueueMany(Array.from({ length: 11 }, () => [noop, undefined] as const))
    const consumer = mill.consumer({ queues: ['mail'] })
    const [claimed] = await consumer.claim(1)
    expect(await at.query<Hint>(hintOf('mail'))).toMatchObject([
      { ready: '10', running: '1', workers: '1', slots: '0', value: '11', wanted_workers: '2' },
    ])
    expect(await mill.health.scale('mail')).toMatchObject({ workers: 1, slots: 0, value: 11, wantedWorkers: 2 })
    await consumer.ack(claimed!)
    await consumer.stop()
  })

  test('P3 a role that may only look can read it, with the query of the KEDA example', async () => {
    await using at = await place()
    const noop = defineJob({ name: 'noop', queue: 'mail', run: () => undefined })
    const mill = await at.process([noop])
    await mill.enqueueMany(Array.from({ length: 4 }, () => [noop, undefined] as const))
    const prefix = `keda${process.pid}`
    await at.query(renderGrants({ prefix }))
    try {
      const query = /query: (.+)$/m.exec(readText('deploy/kubernetes/keda-postgresql.yaml'))?.[1] ?? ''
      expect(query).toContain('millrace.scale_hint')
      await at.query(`set role ${roleName(prefix, 'viewer')}`)
      const rows = await at.query<Record<string, number>>(query)
      expect(Object.values(rows[0] ?? {})).toEqual([4])
      await expect(at.query('select * from millrace.ready')).rejects.toMatchObject({ code: '42501' })
    } finally {
      await at.query('reset role')
      for (const role of ROLES) {
        await at.query(`drop owned by ${roleName(prefix, role)}; drop role ${roleName(prefix, role)}`)
      }
    }
  })

  test('P3 counting ends at a bound, and a deep queue costs its neighbour nothing', async () => {
    await using at = await place()
    const mill = await at.process([])
    await mill.queues.configure('deep', {})
    await mill.queues.configure('small', {})
    await at.query(`
      insert into millrace.ready (seq, run_at, ready_at, id, queue_id, priority, attempts, crashes, hooks)
      select n, now(), now() - n * interval '1 millisecond', gen_random_uuid(), q.id, 100, 0, 0, 0
      from generate_series(1, 120000) n, millrace.job_queues q where q.name = 'deep'
      union all
      select 1, now(), now(), gen_random_uuid(), q.id, 100, 0, 0, 0 from millrace.job_queues q where q.name = 'small'`)
    expect(await at.query<Hint>(hintOf('deep'))).toMatchObject([
      { ready: '100000', value: '100000', wanted_workers: '10000' },
    ])
    const [plan] = await at.query<{ readonly 'QUERY PLAN': readonly Plan[] }>(
      `explain (analyze, buffers, format json) ${hintOf('small')}`,
    )
    const { 'Shared Hit Blocks': hit, 'Shared Read Blocks': read } = plan!['QUERY PLAN'][0]!.Plan
    // The table has about a thousand pages; not one of the deep queue is looked at.
    expect(hit + read).toBeLessThan(200)
  })
})

interface Plan {
  readonly Plan: { readonly 'Shared Hit Blocks': number; readonly 'Shared Read Blocks': number }
}
