// Redis is disposable: wiped, killed, brought back without its data, nothing is lost and nothing runs twice.
import { afterAll, beforeAll, expect, onTestFinished, test } from 'vitest'
import { postgresWithLedger } from '../../../src/backends/postgres/backend.ts'
import type { JsonText } from '../../../src/core/json.ts'
import { defineJob } from '../../../src/index.ts'
import type { RunContext } from '../../../src/index.ts'
import { gate } from '../../features/support.ts'
import { until } from '../../postgres/faults/until.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { newJob } from '../ledger-world.ts'
import { useHybrid } from './support.ts'

let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis()
})
afterAll(() => redis.stop())

const place = useHybrid({ redisUrl: () => redis.url })
const filled = useHybrid({ redisUrl: () => redis.url, prefix: 'full' })

interface Counted {
  readonly runs: Map<number, number>
  readonly starts: number[]
}

function counting() {
  const seen: Counted = { runs: new Map(), starts: [] }
  const count = defineJob({
    name: 'count',
    async run({ input }: RunContext<number>) {
      seen.runs.set(input, (seen.runs.get(input) ?? 0) + 1)
      seen.starts.push(performance.now())
      await new Promise((resolve) => setTimeout(resolve, 1))
    },
  })
  return { seen, count }
}

test('H2 FLUSHALL under load loses nothing, runs nothing twice, and work goes on within a second', async () => {
  await using at = await place()
  const { seen, count } = counting()
  const mill = await at.process([count])
  await mill.work({ concurrency: 20 })
  const total = 3_000
  const filling = (async () => {
    for (let from = 0; from < total; from += 100) {
      await mill.enqueueMany(Array.from({ length: 100 }, (_, index) => [count, from + index] as const))
    }
  })()
  await until(() => seen.runs.size > 300, 'a good part of the jobs')
  await redis.command('flushall')
  const flushedMs = performance.now()
  await filling
  await until(() => seen.runs.size === total, 'all jobs')
  const next = seen.starts.find((startMs) => startMs > flushedMs + 50) ?? Infinity
  expect(next - flushedMs).toBeLessThan(1_000)
  expect([...seen.runs.values()].filter((runs) => runs !== 1)).toEqual([])
})

test('H2 FLUSHALL with a full lane: what waited in Redis is there again within seconds', async () => {
  const prefix = 'full'
  const lane = `${prefix}:{default}:normal`
  const waiting = async (): Promise<number> => Number(await redis.command('llen', lane))
  await using at = await filled()
  const end = gate()
  const wait = defineJob({ name: 'wait', run: () => end.opened })
  const mill = await at.process([wait])
  await mill.work({ concurrency: 1 })
  await mill.enqueue(wait, undefined)
  await until(async () => (await redis.command('exists', `${prefix}:{default}:state`)) === 1, 'tokens')
  const total = 10_000
  const sent = Array.from({ length: total }, () => [wait, undefined] as const)
  for (let from = 0; from < total; from += 1_000) await mill.enqueueMany(sent.slice(from, from + 1_000))
  // The worker holds a few of them.
  const most = total - 50
  await until(async () => (await waiting()) >= most, 'a full lane')
  await redis.command('flushall')
  const flushedMs = performance.now()
  await until(async () => (await waiting()) >= most, 'a full lane again')
  // Three seconds are promised, two more are for a busy machine; by a thousand a second it would be ten.
  expect(performance.now() - flushedMs).toBeLessThan(5_000)
  end.open()
})

test('H3 without Redis workers go on from PostgreSQL, and return to Redis when it is back', async () => {
  await using at = await place()
  const { seen, count } = counting()
  const mill = await at.process([count])
  await mill.work({ concurrency: 20 })
  await mill.enqueueMany(Array.from({ length: 200 }, (_, index) => [count, index] as const))
  await redis.kill()
  await mill.enqueueMany(Array.from({ length: 200 }, (_, index) => [count, 200 + index] as const))
  await until(() => seen.runs.size === 400, 'jobs without Redis')
  await redis.restart({ keepData: false })
  await until(async () => Number(await redis.command('dbsize')) > 0, 'the return to Redis')
  await mill.enqueueMany(Array.from({ length: 200 }, (_, index) => [count, 400 + index] as const))
  await until(() => seen.runs.size === 600, 'jobs with Redis again')
  expect([...seen.runs.values()].filter((runs) => runs !== 1)).toEqual([])
})

test('H3 while Redis answers and refuses to write workers go on from PostgreSQL, and return to Redis after', async () => {
  await using at = await place()
  const { seen, count } = counting()
  const mill = await at.process([count])
  await mill.work({ concurrency: 20 })
  const enqueue = (from: number, many: number): Promise<unknown> =>
    mill.enqueueMany(Array.from({ length: many }, (_, index) => [count, from + index] as const))
  const epoch = (): Promise<unknown> => redis.command('hget', `${at.address.prefix}:{default}:state`, 'epoch')
  await enqueue(0, 500)
  await until(() => seen.runs.size > 50, 'jobs through Redis')
  await redis.command('config', 'set', 'min-replicas-to-write', 1)
  try {
    const before = await epoch()
    await enqueue(500, 500)
    await until(() => seen.runs.size === 1_000, 'jobs without writes to Redis')
    await redis.command('config', 'set', 'min-replicas-to-write', 0)
    await until(async () => (await epoch()) !== before, 'the return to Redis')
    await enqueue(1_000, 200)
    await until(() => seen.runs.size === 1_200, 'jobs with Redis again')
    expect([...seen.runs.values()].filter((runs) => runs !== 1)).toEqual([])
  } finally {
    await redis.command('config', 'set', 'min-replicas-to-write', 0)
  }
})

test('H3 a worker that is busy does not keep the others from the Redis that took the place of the old one', async () => {
  await using at = await place()
  const { seen, count } = counting()
  let release = (): void => undefined
  const released = new Promise<void>((resolve) => void (release = resolve))
  let isBusy = false
  const long = defineJob({
    name: 'long',
    queue: 'long',
    run: () => {
      isBusy = true
      return released
    },
  })
  // The first one leads, and asks Redis all the time; the busy one has nothing to ask.
  const free = await at.process([count, long])
  await free.work({ queues: ['default'], concurrency: 5 })
  await free.enqueue(count, 0)
  const epochOn = (queue = 'default'): Promise<unknown> =>
    redis.command('hget', `${at.address.prefix}:{${queue}}:state`, 'identity')
  await until(async () => seen.runs.size === 1 && (await epochOn()) !== null, 'tokens')
  const busy = await at.process([count, long])
  await busy.work({ queues: ['default', 'long'], concurrency: 1 })
  const { id } = await busy.enqueue(long, undefined)
  await until(async () => isBusy && (await epochOn('long')) !== null, 'the long job')
  await redis.kill('SIGTERM')
  await redis.restart()
  await free.enqueueMany(Array.from({ length: 100 }, (_, index) => [count, 1 + index] as const))
  await until(() => seen.runs.size === 101, 'jobs beside the long one')
  const replid = /master_replid:(\w+)/.exec(String(await redis.command('info', 'replication')))?.[1]
  await until(async () => (await epochOn()) === replid, 'an epoch on the Redis of now')
  release()
  await until(async () => (await free.jobs.get(id))?.status === 'completed', 'the end of the long job')
  expect([...seen.runs.values()].filter((runs) => runs !== 1)).toEqual([])
})

test('H1 long payloads, extras and every kind of gate pass through the relay', async () => {
  await using at = await place()
  const got: string[] = []
  const take = defineJob({
    name: 'take',
    run: ({ input, job }: RunContext<string>) =>
      void got.push(`${input.length} ${job.tags.join()} ${job.batch === null}`),
  })
  const mill = await at.process([take], { queues: { default: { concurrency: 1 } } })
  const worker = await at.process([take])
  await worker.work()
  await mill.enqueue(take, 'x'.repeat(100_000), { tags: ['long'] })
  await mill.enqueue(take, 'y', { delay: 20, tags: ['late', 'short'] })
  await mill.enqueue(take, 'z', { group: 'g' })
  await until(() => got.length === 3, 'three jobs')
  expect(got.toSorted()).toEqual(['1  true', '1 late,short true', '100000 long true'])
})

test('H4 a job whose token never reached Redis is found and runs once; a repeated enqueue gives it no second token', async () => {
  await using at = await place()
  const { seen, count } = counting()
  const mill = await at.process([count])
  await mill.work()
  await mill.enqueueAndWait(count, 0)
  const { backend, ledger } = postgresWithLedger({ url: at.address.url, poolMax: 2 })
  await backend.start()
  onTestFinished(() => backend.stop())
  let tag = ''
  await until(async () => {
    const [row] = (await ledger.dispatch(['default'])).rows
    tag = `${row?.epoch}.${row?.birth}`
    return row?.birth !== null && row?.mode === 'token'
  }, 'tokens of the queue')
  // Minted by one who died before the push, and repeated by its caller.
  const job = { ...newJob('default'), name: 'count', payload: '7' as JsonText }
  const offers = new Map([['default', tag]])
  expect((await ledger.insert([job], offers)).leases[0]).toBeGreaterThan(0)
  expect((await ledger.insert([job], offers)).leases).toEqual([0])
  await until(() => seen.runs.has(7), 'the job whose token was lost')
  await until(async () => (await mill.jobs.get(job.id))?.status === 'completed', 'its end')
  expect(seen.runs.get(7)).toBe(1)
})
