// What a person sees who looks into Redis with plain commands: the names of keys, and the live status of a job.
import { describe, expect, test } from 'vitest'
import { defineJob, fixed } from '../../../src/index.ts'
import type { RunContext } from '../../../src/index.ts'
import { gate } from '../../features/support.ts'
import { until } from '../support.ts'
import { useRedisPlaces } from './support.ts'
import type { RedisPlace } from './support.ts'

const place = useRedisPlaces()

function mailing() {
  const [started, end] = [gate(), gate()]
  const mail = defineJob({
    name: 'mail',
    queue: 'post',
    retry: fixed({ attempts: 2, delay: '1h', jitter: 0 }),
    async run({ input }: RunContext<string>) {
      started.open()
      await end.opened
      if (input === 'nobody') throw new Error('no such mailbox')
      return { sentTo: input }
    },
  })
  return { mail, started, end }
}

/** HGETALL of `<prefix>:{post}:job:<id>`. */
async function look(at: RedisPlace, id: string): Promise<Readonly<Record<string, string>>> {
  const flat = (await at.command('HGETALL', `${at.prefix}:{post}:job:${id}`)) as readonly string[]
  return Object.fromEntries(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1]!]] : [])))
}

describe('redis', () => {
  test('J5 a run that was not shown yet is told by every other way, and by HGETALL from its first report on', async () => {
    await using at = await place()
    const [reports, end] = [gate(), gate()]
    const mail = defineJob({
      name: 'mail',
      queue: 'post',
      async run({ progress }: RunContext<string>) {
        await reports.opened
        progress(50)
        await end.opened
      },
    })
    const mill = await at.process([mail])
    const worker = await mill.work()
    const handle = await mill.enqueue(mail, 'ada')
    await until(async () => (await mill.jobs.get(handle))!.status === 'running', 'the start')
    expect((await mill.jobs.list({ status: ['running'] })).items.map(({ id }) => id)).toEqual([handle.id])
    expect((await mill.jobs.list({ status: ['running', 'queued'] })).items.map(({ id }) => id)).toEqual([handle.id])
    expect((await mill.jobs.attempts(handle)).map((row) => row.status)).toEqual(['attempting'])
    expect(await mill.jobs.get(handle)).toMatchObject({ worker: worker.ids[0], startedAt: expect.any(Date) as Date })
    reports.open()
    await until(async () => 'progress' in (await look(at, handle.id)), 'the report')
    expect(await look(at, handle.id)).toMatchObject({ status: 'running', worker: worker.ids[0], progress: '50' })
    end.open()
    await handle.result()
    expect(await look(at, handle.id)).toMatchObject({ status: 'completed', attempt: '1', worker: worker.ids[0] })
  })

  test('J5 HGETALL of a job tells its status, worker, start, end, attempt, error and next retry', async () => {
    await using at = await place()
    const { mail, started, end } = mailing()
    const mill = await at.process([mail])
    const worker = await mill.work()
    const handle = await mill.enqueue(mail, 'ada')
    await started.opened
    expect((await mill.jobs.get(handle))!.status).toBe('running')
    // Shown when it has run for 250 ms; `jobs.get` knows at once.
    await until(async () => 'status' in (await look(at, handle.id)), 'the run to be shown')
    const running = await look(at, handle.id)
    expect(running).toMatchObject({
      status: 'running',
      worker: worker.ids[0],
      started: expect.stringMatching(MS) as string,
    })
    end.open()
    await handle.result()
    const completed = await look(at, handle.id)
    expect(completed).toMatchObject({ status: 'completed', attempt: '1', worker: worker.ids[0] })
    expect(Number(completed['finished'])).toBeGreaterThanOrEqual(Number(completed['started']))

    const retried = new Promise((resolve) => mill.on('retried', resolve))
    const failing = await mill.enqueue(mail, 'nobody')
    await retried
    const waiting = await look(at, failing.id)
    expect(waiting).toMatchObject({ status: 'scheduled', attempt: '1' })
    expect(waiting['error']).toContain('no such mailbox')
    const runAt = (await mill.jobs.get(failing))!.runAt
    expect(Number(waiting['nextRetry'])).toBe(runAt.getTime())
  })

  test('J5 a queue is in the registry, its waiting jobs in three lanes, and its parts under one hash tag', async () => {
    await using at = await place()
    const { mail } = mailing()
    const mill = await at.process([mail])
    const priorities = ['critical', 'normal', 'low', 'low', 'high'] as const
    const handles = await mill.enqueueMany(priorities.map((priority) => [mail, 'ada', { priority }] as const))
    expect(await at.command('ZRANGE', `${at.prefix}:queues`, 0, -1)).toEqual(['post'])
    const lanes = ['high', 'normal', 'low'].map((lane) => at.command('LLEN', `${at.prefix}:{post}:${lane}`))
    expect(await Promise.all(lanes)).toEqual([2, 1, 2])
    // One step is enough for as many keys as a run of these tests makes.
    const scan = await at.command('SCAN', 0, 'MATCH', `${at.prefix}:*`, 'COUNT', 1_000_000)
    const [, names] = scan as [string, string[]]
    expect(names.filter((name) => !/^[^:]+:(\{[^}]+\}:.+|queues)$/.test(name))).toEqual([])
    expect(await mill.jobs.get(handles[2]!)).toMatchObject({ status: 'queued' })
  })
})

const MS = /^\d{13}$/
