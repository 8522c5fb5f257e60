// Another server takes over: a promoted standby has a new timeline, and nothing is minted there before it is known.
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import pg from 'pg'
import { expect, test } from 'vitest'
import { postgresWithLedger } from '../../src/backends/postgres/backend.ts'
import { startTestPostgres } from '../support/postgres-server.ts'
import { newJob } from './ledger-world.ts'

test('a promoted server mints nothing until it is known, and no lease of before comes again', async () => {
  const server = await startTestPostgres({ version: 18 })
  const before = await withLedger(server.url, async ({ ledger }) => {
    await ledger.renewServer()
    const request = { mode: 'token', redisId: 'r', unlessHealthy: false } as const
    const [row] = await ledger.flip({ ...request, queues: [{ queue: 'q', expected: 0 }] })
    await ledger.born('q', row!.epoch, 'b')
    const tag = `${row!.epoch}.b`
    const { leases } = await ledger.insert([newJob('q')], new Map([['q', tag]]))
    expect(leases[0]).toBeGreaterThan(0)
    return { tag, lease: leases[0]!, epoch: row!.epoch, ...(await ledger.leaseMark()) }
  })
  await server.stop()
  writeFileSync(join(server.dataDir, 'standby.signal'), '')
  await server.start()

  const client = new pg.Client({ connectionString: server.url })
  await client.connect()
  await client.query('select pg_promote()')
  await client.end()

  await withLedger(server.url, async ({ ledger }) => {
    const offers = new Map([['q', before.tag]])
    expect(await ledger.insert([newJob('q')], offers)).toMatchObject({ leases: [0], news: { serverChanged: true } })
    expect((await ledger.relay('q', before.tag, [1, 1, 1])).refused).toMatchObject({ serverChanged: true })
    const { server: now } = await ledger.leaseMark()
    expect(now.split('.')[0]).toBe(before.server.split('.')[0])
    expect(now).not.toBe(before.server)
    await ledger.renewServer()
    const news = await ledger.dispatch(['q'])
    expect(news).toMatchObject({ serverChanged: false, rows: [{ mode: 'ledger', birth: null }] })
    expect(news.rows[0]!.epoch).toBeGreaterThan(before.epoch + 2 ** 20)
    expect((await ledger.leaseMark()).next).toBeGreaterThan(before.lease + 2 ** 32)
  })
  await server.stop()
}, 60_000)

async function withLedger<Result>(
  url: string,
  work: (store: ReturnType<typeof postgresWithLedger>) => Promise<Result>,
): Promise<Result> {
  const store = postgresWithLedger({ url, poolMax: 2 })
  await store.backend.start()
  try {
    return await work(store)
  } finally {
    await store.backend.stop()
  }
}
