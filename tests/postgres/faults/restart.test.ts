// The server goes away under load and comes back: a producer with books of its own and two worker processes go on by
// themselves. A restart takes less than the ttl of a worker, so no life ends and no job runs twice.
import pg from 'pg'
import { afterAll, beforeAll, expect, test } from 'vitest'
import { freshDatabase, startTestPostgres } from '../../support/postgres-server.ts'
import type { TestPostgres } from '../../support/postgres-server.ts'
import { BALANCED, ackedIn, balance, liveJobs } from './ledger.ts'
import { useProcesses } from './processes.ts'
import { until } from './until.ts'

const processes = useProcesses()
let server: TestPostgres

beforeAll(async () => {
  server = await startTestPostgres({ version: 18 })
}, 60_000)
afterAll(() => server.stop('immediate'))

test.each(['fast', 'immediate'] as const)(
  'D1 a restart of the server (%s) under load loses nothing, repeats nothing, and ends no process',
  { timeout: 90_000 },
  async (mode) => {
    const { url } = await freshDatabase(server)
    const workers = [await processes.worker({ url }), await processes.worker({ url })]
    const producer = await processes.producer({ url })
    const { files } = processes
    const acked = () => ackedIn(files.ledger).length
    await until(() => acked() >= 300, 'the first jobs')

    await server.restart(mode)
    const atRestart = acked()
    await until(() => acked() >= atRestart + 300, 'jobs after the restart')
    expect(await producer.stop()).toBe(0)

    const client = new pg.Client(url)
    await client.connect()
    try {
      await until(async () => (await liveJobs(client)) === 0, 'everything to drain')
      expect(await balance(client, files)).toMatchObject({ ...BALANCED, repeated: [] })
    } finally {
      await client.end()
    }
    expect(workers.map(({ isAlive }) => isAlive)).toEqual([true, true])
    expect(workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
    for (const worker of workers) expect(await worker.stop()).toBe(0)
  },
)
