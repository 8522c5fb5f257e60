// A backlog in fifty queues: what of it lies in Redis is bounded, and a take costs what it costs beside nothing.
// `BACKLOG=5000000 npx vitest run tests/hybrid/backlog.test.ts` makes it as large as it gets; see docs/hybrid.md.
import { randomUUID } from 'node:crypto'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { createMillrace, defineJob, hybrid } from '../../src/index.ts'
import type { Millrace, RunContext } from '../../src/index.ts'
import type { Race } from '../../src/backends/hybrid/ports.ts'
import type { WorkerId } from '../../src/core/job.ts'
import { gate } from '../features/support.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import type { FreshDatabase } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { until } from '../support/until.ts'
import { connectRace } from './race-setup.ts'

const JOBS = Number(process.env.BACKLOG ?? 20_000)
const QUEUES = Array.from({ length: 50 }, (_, index) => `queue-${index}`)
const BULK = 1_000
/** The default of a large backlog; less, so that it bounds a small one too. */
const WINDOW_TOTAL = Math.min(100_000, JOBS / 4)
const BYTES_MAX = 100_000_000
const TAKES = 11
const TAKEN = 10
const PAYLOAD = { to: 'someone@example.com', body: 'x'.repeat(160) }

let redis: RedisProcess
let database: FreshDatabase
let mill: Millrace
let race: Race

beforeAll(async () => {
  redis = await startRedis()
  await redis.command('config', 'set', 'slowlog-log-slower-than', '0', 'slowlog-max-len', '1000')
  database = await freshDatabase(await sharedPostgres(18))
  race = (await connectRace({ url: redis.url }, { prefix: 'millrace' })).race
})

afterAll(async () => {
  await race.stop()
  await mill.stop()
  await database.drop()
  await redis.stop()
})

/** Microseconds of the script of one take, the median of some, each by a session of its own that nobody knows. */
async function takeCostUs(): Promise<number> {
  const costs: number[] = []
  for (let no = 0; costs.length < TAKES && no < 5 * TAKES; no++) {
    const queue = QUEUES[no % QUEUES.length]!
    const tag = String(await redis.command('hget', `millrace:{${queue}}:state`, 'epoch'))
    const session = randomUUID() as WorkerId
    const { value } = await race.take(queue, tag, { session, c: 1, most: TAKEN, done: [] })
    if (value?.kind === 'taken' && value.texts.length === TAKEN) costs.push(await scriptUs(session))
  }
  expect(costs).toHaveLength(TAKES)
  return costs.toSorted((a, b) => a - b)[Math.floor(TAKES / 2)]!
}

/** How long the script took that was called with this value. */
async function scriptUs(value: string): Promise<number> {
  const entries = (await redis.command('slowlog', 'get', '200')) as readonly SlowEntry[] // as Redis documents them
  const [, , us] = entries.find(([, , , args]) => args.includes(value))!
  return us
}

type SlowEntry = readonly [no: number, atS: number, us: number, args: readonly string[]]

async function enqueue(job: ReturnType<typeof jobOf>, count: number): Promise<void> {
  for (let done = 0; done < count; done += BULK) {
    const size = Math.min(BULK, count - done)
    await mill.enqueueMany(Array.from({ length: size }, () => [job, PAYLOAD] as const))
  }
}

/** It runs until the test is over. */
function jobOf(queue: string, end: Promise<void>) {
  const run = async ({ input }: RunContext<typeof PAYLOAD>): Promise<void> => {
    expect(input).toEqual(PAYLOAD)
    await end
  }
  return defineJob({ name: queue, queue, timeout: '1h', run })
}

async function tokens(): Promise<readonly number[]> {
  const lengths = QUEUES.map((queue) => redis.command('llen', `millrace:{${queue}}:normal`))
  return (await Promise.all(lengths)).map(Number)
}

const sum = (numbers: readonly number[]): number => numbers.reduce((one, other) => one + other, 0)

/** Each queue has a take's worth: less than what it may have in any case. */
async function isFilled(): Promise<boolean> {
  return (await tokens()).every((count) => count >= TAKEN)
}

const TIMEOUT_MS = 60_000 + JOBS / 5

test(
  `H1 ${JOBS} jobs wait in 50 queues: Redis holds its window of them in less than 100 MB, and a take costs what it did`,
  async () => {
    const never = gate()
    const jobs = QUEUES.map((queue) => jobOf(queue, never.opened))
    const backend = hybrid({ postgres: { url: database.url }, redis: { url: redis.url }, windowTotal: WINDOW_TOTAL })
    mill = await createMillrace({ jobs, backend })
    await mill.work({ concurrency: jobs.length })
    for (const job of jobs) await mill.enqueue(job, PAYLOAD)
    const isOpen = async (queue: string): Promise<boolean> =>
      (await redis.command('exists', `millrace:{${queue}}:state`)) === 1
    await until('tokens of all queues', async () => (await Promise.all(QUEUES.map(isOpen))).every(Boolean))

    const isReady = (): Promise<void> => until('tokens in every queue', isFilled, { withinMs: TIMEOUT_MS })
    // The worker takes one per slot, from whichever queue.
    for (const job of jobs) await enqueue(job, QUEUES.length + 3 * TAKEN)
    await isReady()
    const before = await takeCostUs()
    for (const job of jobs) await enqueue(job, JOBS / QUEUES.length)
    await isReady()
    const after = await takeCostUs()
    const bytes = Number(/^used_memory:(\d+)/m.exec(String(await redis.command('info', 'memory')))?.[1])
    const waiting = sum(await tokens())
    const seen = { jobs: JOBS, waiting, redisMB: bytes / 1e6, takeUs: { before, after } }
    if (process.env.BACKLOG !== undefined) process.stdout.write(`${JSON.stringify(seen)}\n`)

    expect(waiting).toBeLessThanOrEqual(WINDOW_TOTAL)
    expect(bytes).toBeLessThan(BYTES_MAX)
    // A script that walked the backlog would take many times as long.
    expect(after).toBeLessThan(before * 2 + 100)
    never.open()
  },
  TIMEOUT_MS,
)
