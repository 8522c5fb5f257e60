// A backlog in many queues stays out of Redis but for the window in all, and is worked off all the same.
import { afterAll, beforeAll, expect, test } from 'vitest'
import { defineJob } from '../../../src/index.ts'
import { gate } from '../../features/support.ts'
import { until } from '../../postgres/faults/until.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useHybrid } from './support.ts'

const QUEUES = Array.from({ length: 8 }, (_, index) => `queue-${index}`)
const JOBS_PER_QUEUE = 60
const TOTAL = 96

let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const place = useHybrid({ redisUrl: () => redis.url, prefix: 'millrace', window: { window: 40, windowTotal: TOTAL } })

async function waiting(): Promise<readonly number[]> {
  const lanes = QUEUES.map((queue) => redis.command('llen', `millrace:{${queue}}:normal`))
  return (await Promise.all(lanes)).map(Number)
}

const sum = (all: readonly number[]): number => all.reduce((one, other) => one + other, 0)

test('H1 tokens of many queues stay within the window in all, each queue has some, and every job runs', async () => {
  await using at = await place()
  const open = gate()
  let ran = 0
  const jobs = QUEUES.map((queue) =>
    defineJob({
      name: queue,
      queue,
      async run() {
        await open.opened
        ran += 1
      },
    }),
  )
  const mill = await at.process(jobs)
  await mill.work({ concurrency: 4 })
  // The first job of a queue makes it, and a worker opens its epoch.
  for (const job of jobs) await mill.enqueue(job, undefined)
  const hasTokens = async (queue: string) => (await redis.command('exists', `millrace:{${queue}}:state`)) === 1
  await until(async () => (await Promise.all(QUEUES.map(hasTokens))).every(Boolean), 'tokens of all queues')
  let most = 0
  for (const job of jobs) {
    await mill.enqueueMany(Array.from({ length: JOBS_PER_QUEUE }, () => [job, undefined] as const))
    most = Math.max(most, sum(await waiting()))
  }
  const isSpread = async (): Promise<boolean> => {
    const depths = await waiting()
    most = Math.max(most, sum(depths))
    return depths.every((depth) => depth > 0) && sum(depths) > TOTAL / 2
  }
  await until(isSpread, 'tokens in every queue, and the loans')
  expect(most).toBeLessThanOrEqual(TOTAL)
  open.open()
  await until(() => ran === QUEUES.length * (JOBS_PER_QUEUE + 1), 'all jobs')
})
