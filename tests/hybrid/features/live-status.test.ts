// What a person sees who looks into the Redis of the hybrid with plain commands: the live status of jobs that are worth a look.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest'
import type { RaceEye, ShownJob } from '../../../src/backends/hybrid/eye.ts'
import { LiveStatus } from '../../../src/backends/hybrid/live-status.ts'
import { Sessions } from '../../../src/backends/hybrid/session.ts'
import type { JobId, LeaseNumber, WorkerId } from '../../../src/core/job.ts'
import { defineJob, fail, fixed } from '../../../src/index.ts'
import type { RunContext } from '../../../src/index.ts'
import { createRuntime } from '../../../src/runtime/runtime.ts'
import { gate } from '../../features/support.ts'
import { until } from '../../postgres/faults/until.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useHybrid } from './support.ts'

const MS = /^\d{13}$/

let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis()
})
beforeEach(() => redis.command('flushall'))
afterAll(() => redis.stop())

const place = useHybrid({ redisUrl: () => redis.url, prefix: 'millrace' })

/** HGETALL of `<prefix>:{post}:job:<id>`. */
async function look(id: string): Promise<Readonly<Record<string, string>>> {
  const flat = (await redis.command('hgetall', keyOf(id))) as readonly string[] | Record<string, string>
  if (!Array.isArray(flat)) return flat as Record<string, string>
  return Object.fromEntries(flat.flatMap((name, index) => (index % 2 === 0 ? [[name, flat[index + 1]!]] : [])))
}

async function lookFor(id: string, status: string): Promise<Readonly<Record<string, string>>> {
  await until(async () => (await look(id))['status'] === status, `${id} to be shown as ${status}`)
  return look(id)
}

function keyOf(id: string): string {
  return `millrace:{post}:job:${id}`
}

async function shownKeys(): Promise<readonly string[]> {
  const [, names] = (await redis.command('scan', 0, 'match', '*:job:*', 'count', 100_000)) as [string, string[]]
  return names
}

const hasTokens = async (): Promise<boolean> => (await redis.command('exists', 'millrace:{post}:state')) === 1

function mailing() {
  const end = gate()
  const mail = defineJob({
    name: 'mail',
    queue: 'post',
    retry: fixed({ attempts: 2, delay: '1h', jitter: 0 }),
    async run({ input }: RunContext<string>) {
      if (input === 'slow') await end.opened
      if (input === 'nobody') throw new Error('no such mailbox')
      return input === 'never' ? fail('refused') : undefined
    },
  })
  const again = defineJob({
    name: 'again',
    queue: 'post',
    retry: fixed({ attempts: 2, delay: 200, jitter: 0 }),
    run: ({ attempt }) => (attempt === 1 ? Promise.reject(new Error('not yet')) : Promise.resolve()),
  })
  return { mail, again, end }
}

describe('live status on the hybrid', () => {
  test('J5 HGETALL of a job that runs for a while tells its status, worker, start, and then its end', async () => {
    await using at = await place()
    const { mail, end } = mailing()
    const mill = await at.process([mail])
    const worker = await mill.work()
    await mill.result((await mill.enqueue(mail, 'quick')).id)
    await until(hasTokens, 'tokens')
    const handle = await mill.enqueue(mail, 'slow')
    const running = await lookFor(handle.id, 'running')
    expect(running).toMatchObject({ worker: worker.ids[0], started: expect.stringMatching(MS) as string })
    expect(running['finished']).toBeUndefined()
    expect(await redis.command('ttl', keyOf(handle.id))).toBeGreaterThan(0)
    // The mark in PostgreSQL and the hash in Redis are written by different loops.
    await until(async () => (await handle.status()) === 'running', 'the mark of the row')
    end.open()
    await handle.result()
    const completed = await lookFor(handle.id, 'completed')
    expect(completed).toMatchObject({ attempt: '1', worker: worker.ids[0] })
    expect(Number(completed['finished'])).toBeGreaterThanOrEqual(Number(completed['started']))
    expect(await redis.command('ttl', keyOf(handle.id))).toBeGreaterThan(3_500)
  })

  test('J5 a failure and a retry are shown with their error and the time of the next try, however quick', async () => {
    await using at = await place()
    const { mail, again } = mailing()
    const mill = await at.process([mail, again])
    await mill.work()
    await mill.result((await mill.enqueue(mail, 'quick')).id)
    await until(hasTokens, 'tokens')
    const [retried, failed, second] = await mill.enqueueMany([
      [mail, 'nobody'],
      [mail, 'never'],
      [again, undefined],
    ])
    const waiting = await lookFor(retried.id, 'scheduled')
    expect(waiting).toMatchObject({ attempt: '1', error: expect.stringContaining('no such mailbox') as string })
    const { runAt } = (await mill.jobs.get(retried.id))!
    expect(Math.abs(Number(waiting['nextRetry']) - runAt.getTime())).toBeLessThan(2_000)
    const over = await lookFor(failed.id, 'failed')
    expect(over).toMatchObject({ finished: expect.stringMatching(MS) as string })
    expect(over['nextRetry']).toBeUndefined()
    expect(await lookFor(second.id, 'completed')).toMatchObject({ attempt: '2' })
    // Without Redis the answer is the same.
    await redis.command('flushall')
    expect(await mill.jobs.get(failed.id)).toMatchObject({ status: 'failed' })
  })

  test('J5 quick jobs that end well have no hash', async () => {
    await using at = await place()
    const { mail } = mailing()
    const mill = await at.process([mail])
    await mill.work({ concurrency: 50 })
    await mill.result((await mill.enqueue(mail, 'quick')).id)
    await until(hasTokens, 'tokens')
    const handles = await mill.enqueueMany(Array.from({ length: 300 }, () => [mail, 'quick'] as const))
    await Promise.all(handles.map(({ id }) => mill.result(id)))
    expect(await shownKeys()).toEqual([])
  })
})

describe('live status', () => {
  function setup(share: number) {
    const shown: ShownJob[] = []
    const eye = { show: (_queue: string, jobs: readonly ShownJob[]) => Promise.resolve(void shown.push(...jobs)) }
    const status = new LiveStatus({
      runtime: createRuntime(),
      eye: eye as unknown as RaceEye, // nothing else of it is called
      sessions: new Sessions(),
      monoMs: () => 0,
      afterMs: 250,
      timeoutMs: 1_000,
      mayShow: () => true,
      share: () => share,
    })
    const jobId = randomUUID() as JobId
    const lease = 7 as LeaseNumber
    const flight = { jobId, lease, queueIndex: 0, field: '', queue: 'post', attemptCount: 0, crashCount: 0 }
    const end = (edge: 'complete' | 'fail'): void => {
      const guard = { from: ['running'], lease } as const
      const to = edge === 'complete' ? 'completed' : 'failed'
      status.ended('worker' as WorkerId, flight, { jobId, edge, guard, to, ranMs: 3 }, 'applied')
      status.flush()
    }
    return { shown, end }
  }

  test('J5 a quick completion sends nothing', () => {
    const { shown, end } = setup(1)
    end('complete')
    expect(shown).toEqual([])
  })

  test('H5 it is kept for an hour, for less when memory is tight, and not shown when there is none', () => {
    const keptMs = (share: number): readonly number[] => {
      const { shown, end } = setup(share)
      end('fail')
      return shown.map(({ keepMs }) => keepMs)
    }
    expect(keptMs(1)).toEqual([3_600_000])
    expect(keptMs(0.5)).toEqual([1_800_000])
    expect(keptMs(0)).toEqual([])
  })
})
