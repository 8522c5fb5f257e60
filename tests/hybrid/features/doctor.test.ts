// `millrace doctor` and `millrace status` on the hybrid: what both servers say of themselves, and what only the two together say.
import { afterAll, beforeAll, beforeEach, describe, expect, onTestFinished, test } from 'vitest'
import { postgresWithLedger } from '../../../src/backends/postgres/backend.ts'
import type { WorkerId } from '../../../src/core/job.ts'
import { defineJob, hybrid } from '../../../src/index.ts'
import type { Place } from '../../stores/place.ts'
import { start, temporaryFolder } from '../../cli/harness.ts'
import type { Ran } from '../../cli/harness.ts'
import { until } from '../../postgres/faults/until.ts'
import { startRedis } from '../../support/redis-server.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useHybrid } from './support.ts'

const TEST_MAX_MS = 60_000
const noop = defineJob({ name: 'noop', run: () => undefined })

let redis: RedisProcess

beforeAll(async () => {
  redis = await startRedis({ appendOnly: false, config: { maxmemory: '100mb' } })
})
beforeEach(() => redis.command('flushall'))
afterAll(() => redis.stop())

const place = useHybrid({ redisUrl: () => redis.url, prefix: 'millrace' })

interface Examined {
  readonly name: string
  readonly level: string
  readonly message: string
}

function run({ address }: Place, line: string): Promise<Ran> {
  const servers = ['--postgres', address.url, '--redis', redis.url]
  return start([...line.split(' '), ...servers], { cwd: temporaryFolder() }).done
}

async function doctor(at: Place): Promise<ReadonlyMap<string, Examined>> {
  const { json, code } = await run(at, 'doctor --json')
  const { checks, verdict } = json as unknown as { checks: readonly Examined[]; verdict: string }
  expect(code).toBe(verdict === 'fail' ? 4 : 0)
  const byName = new Map(checks.map((one) => [one.name, one]))
  expect(byName.size, 'each name once').toBe(checks.length)
  return byName
}

/** Queues with tokens, and nobody who works any more. */
async function workedOnce(at: Place, jobs = 20) {
  const worker = await at.process([noop])
  await worker.work()
  // The first job makes the queue, and with it its epoch.
  await worker.result((await worker.enqueue(noop, undefined)).id)
  const hasTokens = async () => (await redis.command('exists', 'millrace:{default}:state')) === 1
  await until(hasTokens, 'tokens of the queue')
  const handles = await worker.enqueueMany(Array.from({ length: jobs }, () => [noop, undefined] as const))
  await Promise.all(handles.map(({ id }) => worker.result(id)))
  await worker.stop()
  return at.process([noop])
}

describe('O3 doctor on the hybrid', { timeout: TEST_MAX_MS }, () => {
  test('O3 both servers and the way between them are examined, and a Redis without AOF is no finding', async () => {
    await using at = await place()
    const mill = await at.process([noop])
    await mill.work()
    await mill.result((await mill.enqueue(noop, undefined)).id)
    const found = await doctor(at)
    const own = ['redis', 'redis round trip', 'redis version', 'redis memory', 'redis eviction', 'redis replication']
    const shared = [
      'redis clock',
      'dispatch',
      'relay',
      'window',
      'tokens',
      'barrier',
      'failing workers',
      'token counts',
    ]
    expect([...found.keys()]).toEqual(expect.arrayContaining(['schema', 'orphans', 'durability', ...own, ...shared]))
    for (const name of [...own, ...shared]) expect(found.get(name), name).toMatchObject({ level: 'ok' })
    expect([...found.values()].filter(({ message }) => message.includes('AOF'))).toEqual([])
    expect(found.get('dispatch')?.message).toMatch(/1 of 1 queues with tokens: default token \d+/)
    expect(found.get('redis memory')?.message).toContain('of 100 MB in use')
  })

  test('O3 tokens that are lost while nobody works, and an epoch that Redis has forgotten', async () => {
    await using at = await place()
    const mill = await workedOnce(at)
    const hasToken = async (): Promise<boolean> => {
      await mill.enqueue(noop, undefined)
      return (await redis.command('llen', 'millrace:{default}:normal')) !== 0
    }
    await until(hasToken, 'a token in its lane')
    const before = await doctor(at)
    expect(before.get('tokens')).toMatchObject({
      level: 'ok',
      message: expect.stringMatching(/^[1-9]\d* wait/) as string,
    })
    expect(before.get('window')?.message).toMatch(/default\/normal [1-9]\d*$/)
    await redis.command('flushall')
    const after = await doctor(at)
    expect(after.get('dispatch')).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('and Redis has none') as string,
    })
    expect(after.get('tokens')).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('of the oldest have no token') as string,
    })
  })

  test('O3 a worker behind the epoch, and one that cannot use Redis, are named', async () => {
    await using at = await place()
    await workedOnce(at)
    const { backend, ledger } = postgresWithLedger({ url: at.address.url, poolMax: 2 })
    await backend.start()
    onTestFinished(() => backend.stop())
    const id = 'worker-that-hangs' as WorkerId
    await ledger.register({ id, host: 'far', pid: 7, queues: ['default'], concurrency: 1 })
    await ledger.beat({ id, running: 0, commandsSeen: 0, blockedMs: 0, failing: ['default'] })
    const found = await doctor(at)
    expect(found.get('barrier')).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('worker-that-hangs (process 7 on far) at epoch 0') as string,
    })
    expect(found.get('failing workers')).toMatchObject({
      level: 'warn',
      message: expect.stringContaining('worker-that-hangs (process 7 on far): default') as string,
    })
  })

  test('H1 jobs that wait for their token although there is room are relay lag', async () => {
    await using at = await place()
    const mill = await workedOnce(at)
    await mill.enqueue(noop, undefined, { group: 'through the ledger' })
    await until(async () => relayLag(await run(at, 'status --json')) > 0, 'a lag')
    expect((await doctor(at)).get('relay')?.message).toContain('a ready job of default has waited')
  })

  test('O3 what became of tokens is told by those who took them', async () => {
    await using at = await place()
    await workedOnce(at, 30)
    expect((await doctor(at)).get('token counts')?.message).toMatch(/^taken [1-9]\d*, refused \d+, torn 0/)
  })

  test('O3 a Redis that is gone is one finding, and what PostgreSQL knows is told', async () => {
    await using at = await place()
    await workedOnce(at)
    await redis.kill()
    try {
      const found = await doctor(at)
      expect(found.get('redis')).toMatchObject({ level: 'fail' })
      expect(found.has('redis memory')).toBe(false)
      expect(found.get('barrier')).toMatchObject({ level: 'ok' })
      const status = await run(at, 'status')
      expect(status.out).toMatch(/^dispatch: tokens; Redis does not answer, 0 in PostgreSQL$/m)
    } finally {
      await redis.restart({ keepData: false })
    }
  })
})

function relayLag({ json }: Ran): number {
  const [first] = json['dispatch'] as readonly { readonly relayLagMs: number | null }[]
  return first?.relayLagMs ?? 0
}

describe('O5 status on the hybrid', { timeout: TEST_MAX_MS }, () => {
  test('O5 mode, tokens, backlog and lag, as a line and as JSON', async () => {
    await using at = await place()
    await workedOnce(at)
    const { out } = await run(at, 'status')
    expect(out).toMatch(/^dispatch: tokens; 0 waiting, \d+ in flight, 0 in PostgreSQL, relay lag 0ms$/m)
    const { json } = await run(at, 'status --json')
    expect(json['dispatch']).toEqual([
      {
        queue: 'default',
        connection: 'default',
        mode: 'token',
        epoch: expect.any(Number) as number,
        waiting: 0,
        // Redis hears with the next take that a job has ended.
        inFlight: expect.any(Number) as number,
        backlog: 0,
        relayLagMs: 0,
        windowFill: 0,
      },
    ])
  })

  test('O5 numbers are those of the primary, however far the replica for reports is behind', async () => {
    await using at = await place()
    await using behind = await place()
    const mill = await workedOnce(at)
    await mill.enqueue(noop, undefined, { group: 'through the ledger' })
    const postgres = { url: at.address.url, replicaUrl: behind.address.url, poolMax: 2 }
    const backend = hybrid({ postgres, redis: { url: redis.url }, prefix: 'millrace' })
    await backend.start()
    onTestFinished(() => backend.stop())
    expect(await backend.dispatching()).toMatchObject([{ queue: 'default', backlog: 1 }])
  })
})
