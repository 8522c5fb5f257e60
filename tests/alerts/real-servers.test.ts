// Alerts on real servers, PostgreSQL alone, Redis alone and both: what the facts say there, and a server that is stopped while
// everybody looks.
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createAlerting } from '../../src/alerts/alerting.ts'
import { createAlertNotes } from '../../src/alerts/alert-notes.ts'
import { createNotifyJob, notifyOptions } from '../../src/alerts/notify-job.ts'
import { checkAlerts } from '../../src/alerts/options.ts'
import type { RulesOptions } from '../../src/core/alert-options.ts'
import { createMillrace, defineJob, fail, hybrid, postgres, redis } from '../../src/index.ts'
import type { Backend } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { withoutThread } from '../stores/place.ts'
import { freshDatabase, sharedPostgres, startTestPostgres } from '../support/postgres-server.ts'
import type { TestPostgres } from '../support/postgres-server.ts'
import { startRedis } from '../support/redis-server.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { until } from '../support/until.ts'

const TEST_MAX_MS = 60_000
const mail = defineJob({ name: 'send-mail', queue: 'mail', run: () => undefined })
const boom = defineJob({ name: 'boom', queue: 'fragile', run: () => fail('broken') })

const RULES: RulesOptions = {
  depth: { max: 3, recover: 0 },
  'dead-letters': { max: 2, recover: 0 },
  'nothing-processing': { for: '1s', recover: 0 },
  'kind-failed': { kinds: { boom: {} }, recover: 0 },
  'redis-memory': { max: 0.001, for: 0, recover: 0 },
  'postgres-down': { for: '1s', recover: 0 },
  'redis-down': { for: '1s', recover: 0 },
}

let ownPostgres: TestPostgres
let ownRedis: RedisProcess

beforeAll(async () => {
  ;[ownPostgres, ownRedis] = await Promise.all([
    startTestPostgres({ version: 18 }),
    startRedis({ appendOnly: false, config: { maxmemory: '1gb' } }),
  ])
}, TEST_MAX_MS)

afterAll(async () => {
  await ownPostgres.stop('immediate')
  await ownRedis.stop()
})

let stores = 0

const STORES: Readonly<Record<string, () => Promise<Backend>>> = {
  async postgres() {
    return withoutThread(postgres({ url: await database() }))
  },
  redis: () => Promise.resolve(withoutThread(redis({ url: ownRedis.url, prefix: `alerts${stores++}` }))),
  async hybrid() {
    const url = await database()
    return withoutThread(hybrid({ postgres: { url }, redis: { url: ownRedis.url }, prefix: `alerts${stores++}` }))
  },
}

async function database(): Promise<string> {
  const fresh = await freshDatabase(await sharedPostgres(18))
  onTestFinished(() => fresh.drop())
  return fresh.url
}

/** A supervisor and what its one sink is told. */
async function supervisor(backend: Backend, rules: RulesOptions = RULES) {
  const told: string[] = []
  const send = ({ kind, key }: { readonly kind: string; readonly key: string }): void =>
    void told.push(`${kind} ${key}`)
  const plan = checkAlerts({ every: '1s', rules, sinks: { all: { type: 'custom', send } } })
  const runtime = createRuntime()
  const notify = createNotifyJob(plan, { runtime })
  const mill = await createMillrace({ jobs: [notify, mail, boom], backend })
  await mill.work({ queues: ['millrace.alerts'], concurrency: 2 })
  const service = createAlerting({
    runtime,
    plan,
    connections: { default: backend },
    host: 'here',
    enqueue: (input) => mill.enqueue(notify, input, notifyOptions(input)),
  })
  await service.start()
  onTestFinished(async () => {
    await service.stop()
    await mill.stop({ deadline: 0 })
  })
  return { mill, told, notes: createAlertNotes(backend.notes) }
}

const has = (told: readonly string[], ...words: readonly string[]) =>
  until(`${words.join(', ')} among what was told`, () => words.every((word) => told.includes(word)), {
    withinMs: 30_000,
  })

describe.each(Object.keys(STORES))('O2 on %s', (name) => {
  test(
    'O2 depth, nothing processing, dead letters and a failed kind fire and recover',
    async () => {
      const { mill, told, notes } = await supervisor(await STORES[name]!())
      await mill.enqueueMany(Array.from({ length: 5 }, () => [mail, undefined] as const))
      await has(told, 'firing depth:mail', 'firing nothing-processing:mail')
      await mill.enqueueMany(Array.from({ length: 3 }, () => [boom, undefined] as const))
      const worker = await mill.work({ queues: ['fragile', 'mail'] })
      await has(
        told,
        'recovered depth:mail',
        'recovered nothing-processing:mail',
        'firing dead-letters:fragile',
        'firing kind-failed:boom',
      )
      const { items } = await mill.deadLetters.list()
      for (const { id } of items) await mill.jobs.remove(id)
      await has(told, 'recovered dead-letters:fragile', 'recovered kind-failed:boom')
      const counts = new Map(told.map((one) => [one, told.filter((other) => other === one).length]))
      expect(counts.get('firing depth:mail')).toBe(1)
      expect(counts.get('firing dead-letters:fragile')).toBe(1)
      const memory = told.filter((one) => one.includes('redis-memory'))
      expect(memory).toEqual(name === 'postgres' ? [] : ['firing redis-memory:redis'])
      expect((await notes.log(0, 100)).length).toBeGreaterThanOrEqual(8)
      await worker.stop()
    },
    TEST_MAX_MS,
  )
})

test(
  'O2 PostgreSQL that is stopped is told without it, and told to be back',
  async () => {
    const { told } = await supervisor(withoutThread(postgres({ url: ownPostgres.url })))
    await ownPostgres.stop('immediate')
    await has(told, 'firing postgres-down:postgres')
    await ownPostgres.start()
    await has(told, 'recovered postgres-down:postgres')
    expect(told.filter((one) => one.includes('down'))).toEqual([
      'firing postgres-down:postgres',
      'recovered postgres-down:postgres',
    ])
  },
  TEST_MAX_MS,
)

test(
  'O2 of the hybrid each server is told by itself: Redis that is killed, PostgreSQL that is stopped',
  async () => {
    const redisServer = await startRedis({ appendOnly: false })
    onTestFinished(() => redisServer.stop())
    const backend = hybrid({ postgres: { url: ownPostgres.url, schema: 'both' }, redis: { url: redisServer.url } })
    const { told } = await supervisor(withoutThread(backend))
    await redisServer.kill()
    await has(told, 'firing redis-down:redis')
    expect(told).not.toContain('firing postgres-down:postgres')
    await redisServer.restart()
    await has(told, 'recovered redis-down:redis')
    await ownPostgres.stop('immediate')
    await has(told, 'firing postgres-down:postgres')
    expect(told.filter((one) => one === 'firing redis-down:redis')).toHaveLength(1)
    await ownPostgres.start()
    await has(told, 'recovered postgres-down:postgres')
  },
  TEST_MAX_MS,
)
