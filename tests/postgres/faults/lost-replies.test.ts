import { test, expect } from 'vitest'
import { randomUUID } from 'node:crypto'
import pg from 'pg'
import { createMillrace, defineJob, postgres } from '../../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../../support/postgres-server.ts'
import { startFaultProxy } from '../../support/fault-proxy.ts'
import { until } from './until.ts'

test('x', async () => {
  const server = await sharedPostgres(18)
  const db = await freshDatabase(server)
  const proxy = await startFaultProxy(server.port)
  const job = defineJob({ name: 'a', run: () => ({ ok: true }) })
  const mill = await createMillrace({ jobs: [job], postgres: { url: proxy.urlOf(db.url) } })
  for (const how of ['reply', 'sent'] as const) {
    const lost = proxy.lose({ statement: /insert_plain/, lose: how })
    const h = await mill.enqueue(job)
    console.log(how, lost.count, h.id)
    const all = await mill.jobs.list()
    console.log(all.jobs.length)
  }
  await mill.stop()
  await proxy.close()
})
