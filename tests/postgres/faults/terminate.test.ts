// An operator, a proxy or a firewall ends our connections, all of them and again and again, while jobs flow.
import type pg from 'pg'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { postgres } from '../../../src/index.ts'
import type { Backend } from '../../../src/index.ts'
import { sharedPostgres } from '../../support/postgres-server.ts'
import type { PostgresServer } from '../../support/postgres-server.ts'
import { connectionsOf, useClient, useDatabase } from './databases.ts'
import { BALANCED, ackedIn, balance, liveJobs } from './ledger.ts'
import { useProcesses } from './processes.ts'
import { until } from './until.ts'

const STORMS = 8
const processes = useProcesses()
let server: PostgresServer

beforeAll(async () => {
  server = await sharedPostgres(18)
}, 60_000)

/** Answers how many it ended. */
async function terminateAll(client: pg.Client, database: string): Promise<number> {
  const { rowCount } = await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity where datname = $1 and application_name like 'millrace%'`,
    [database],
  )
  return rowCount ?? 0
}

test(
  'D1 storms that end every connection under load lose nothing, repeat nothing, and end no process',
  { timeout: 90_000 },
  async () => {
    const { url, name } = await useDatabase(server)
    const workers = [await processes.worker({ url }), await processes.worker({ url })]
    const producer = await processes.producer({ url })
    const { files } = processes
    const client = await useClient(server.url)
    for (let storm = 0; storm < STORMS; storm++) {
      const before = ackedIn(files.ledger).length
      await until(() => ackedIn(files.ledger).length >= before + 50, `jobs before storm ${storm}`)
      expect(await terminateAll(client, name)).toBeGreaterThan(0)
    }
    expect(await producer.stop()).toBe(0)

    const inside = await useClient(url)
    await until(async () => (await liveJobs(inside)) === 0, 'everything to drain')
    expect(await balance(inside, files)).toMatchObject({ ...BALANCED, repeated: [] })
    expect(workers.map((worker) => [worker.isAlive, worker.count('workerLost')])).toEqual([
      [true, 0],
      [true, 0],
    ])
    await until(async () => (await connectionsOf(client, name))['millrace listen'] === 2, 'both to listen again')
    for (const worker of workers) expect(await worker.stop()).toBe(0)
  },
)

test(
  'D3 a listener whose connection was ended is back soon, says that it may have missed something, and hears again',
  { timeout: 60_000 },
  async () => {
    const { url, name } = await useDatabase(server)
    const client = await useClient(server.url)
    const start = async (): Promise<Backend> => {
      const backend = postgres({ url, poolMax: 2 })
      await backend.start()
      onTestFinished(() => backend.stop())
      return backend
    }
    const [here, there] = [await start(), await start()]
    let rings = 0
    onTestFinished(here.wakeups.listen(['config'], () => (rings += 1)))
    const isListening = async () => (await connectionsOf(client, name))['millrace listen'] === 1
    const heard = async (what: string): Promise<void> => {
      const before = rings
      await there.queues.configure('mail', { paused: false })
      await until(() => rings > before, what)
    }
    await until(isListening, 'the listener')
    await until(() => heard('a hint').then(() => true), 'hints')

    for (let round = 0; round < 3; round++) {
      const before = rings
      await terminateAll(client, name)
      await until(() => rings > before, 'the word that hints may be missing')
      await heard('a hint on the new connection')
    }
  },
)
