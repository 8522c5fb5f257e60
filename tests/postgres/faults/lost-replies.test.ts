// The connection breaks between a commit and its answer. The caller cannot know; whatever it sends again has no
// second effect.
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob } from '../../../src/index.ts'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import type { FaultProxy, Loss } from '../../support/fault-proxy.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { useClient, useDatabase } from './databases.ts'
import { BALANCED, balance, liveJobs } from './ledger.ts'
import { until } from './until.ts'

const NO_FILES = { ledger: '', runs: '' }
let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

async function useProxy(): Promise<FaultProxy> {
  const proxy = await startFaultProxy(server.port)
  onTestFinished(() => proxy.close())
  return proxy
}

const RESETS: readonly (readonly [when: string, lose: Loss['lose']])[] = [
  ['after the commit, with its answer swallowed', 'reply'],
  ['right after the statement was sent', 'sent'],
]

test.each(RESETS)('J2 an enqueue reset %s is sent again with the same id and makes one row', async (_, lose) => {
  const { url } = await useDatabase(server)
  const proxy = await useProxy()
  const job = defineJob({ name: 'job', run: () => null })
  await using mill = await createMillrace({ jobs: [job], postgres: { url: proxy.urlOf(url), poolMax: 2 } })
  const client = await useClient(url)
  const ids: string[] = []
  for (let round = 0; round < 20; round++) {
    const loss = proxy.lose({ statement: /insert_(one|plain|jobs)\(/, lose })
    const isBulk = round % 4 === 0
    const handles = isBulk ? await mill.enqueueMany([[job], [job], [job]]) : [await mill.enqueue(job)]
    ids.push(...handles.map(({ id }) => id))
    expect(loss.count).toBe(1)
  }
  const { rows } = await client.query<{ id: string }>('select id::text from millrace.jobs order by id')
  expect(rows.map(({ id }) => id)).toEqual([...ids].sort())
})

test(
  'D1 claims and completions whose answers are lost run no job twice and complete each once',
  { timeout: 60_000 },
  async () => {
    const { url } = await useDatabase(server)
    const proxy = await useProxy()
    const runs = new Map<string, number>()
    const count = defineJob({
      name: 'count',
      run: ({ job }) => {
        runs.set(job.id, (runs.get(job.id) ?? 0) + 1)
      },
    })
    await using mill = await createMillrace({ jobs: [count], postgres: { url: proxy.urlOf(url), poolMax: 4 } })
    await mill.enqueueMany(Array.from({ length: 300 }, () => [count] as const))
    const losses = [
      proxy.lose({ statement: /cycle\(/, lose: 'reply', after: 2, times: 3 }),
      proxy.lose({ statement: /cycle\(/, lose: 'sent', after: 8, times: 3 }),
    ]
    await mill.work({ concurrency: 20 })
    const client = await useClient(url)
    await until(async () => (await liveJobs(client)) === 0 && losses.every((loss) => loss.count === 3), 'all to end')
    expect(await balance(client, NO_FILES)).toMatchObject(BALANCED)
    expect(runs.size).toBe(300)
    expect([...runs.values()].filter((times) => times !== 1)).toEqual([])
  },
)
