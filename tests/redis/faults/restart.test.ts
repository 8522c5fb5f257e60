// The server goes away under load and comes back, or throws everybody out: a producer with books of its own and two
// worker processes go on by themselves. With AOF the end of the process of Redis loses nothing that it acknowledged.
import { expect, test } from 'vitest'
import { createMillrace, redis as redisBackend } from '../../../src/index.ts'
import type { Millrace } from '../../../src/index.ts'
import { createJobs } from '../../postgres/faults/fixtures/jobs.ts'
import { BALANCED, ackedIn, balanceOf } from '../../postgres/faults/ledger.ts'
import type { Booked } from '../../postgres/faults/ledger.ts'
import { useProcesses } from '../../postgres/faults/processes.ts'
import { until } from '../../postgres/faults/until.ts'
import { withoutThread } from '../../stores/place.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useRedis } from '../support.ts'

const processes = useProcesses()
const redis = useRedis()
const jobs = createJobs({ onRun: () => undefined, held: () => Promise.resolve() })

const TROUBLE: Readonly<Record<string, (server: RedisProcess) => Promise<unknown>>> = {
  'a crash of the server': (server) => server.restart(),
  'a shutdown of the server': async (server) => {
    await server.kill('SIGTERM')
    await server.restart()
  },
  'the end of every connection': async (server) => {
    for (let round = 0; round < 5; round++) {
      for (const type of ['normal', 'pubsub']) await server.command('CLIENT', 'KILL', 'TYPE', type)
      await new Promise((resolve) => setTimeout(resolve, 100))
    }
  },
  'a server that forgets its scripts': async (server) => {
    for (let round = 0; round < 20; round++) await server.command('SCRIPT', 'FLUSH')
  },
}

test.each(Object.entries(TROUBLE))(
  'D1 %s under load loses nothing, repeats nothing, and ends no process',
  { timeout: 90_000 },
  async (_, strike) => {
    const server = await redis.server()
    const { url } = server
    const workers = [await processes.worker({ url }), await processes.worker({ url })]
    const producer = await processes.producer({ url })
    const { files } = processes
    const acked = () => ackedIn(files.ledger).length
    await until(() => acked() >= 300, 'the first jobs')
    await strike(server)
    const before = acked()
    await until(() => acked() >= before + 300, 'jobs afterwards')
    expect(await producer.stop()).toBe(0)

    const mill = await createMillrace({ jobs, backend: withoutThread(redisBackend({ url })) })
    await until(async () => (await live(mill)) === 0, 'everything to drain')
    expect(balanceOf(await books(mill), files)).toMatchObject({ ...BALANCED, repeated: [] })
    await mill.stop()
    expect(workers.map(({ isAlive }) => isAlive)).toEqual([true, true])
    expect(workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
    for (const worker of workers) expect(await worker.stop()).toBe(0)
  },
)

async function live(mill: Millrace): Promise<number> {
  const counts = (await mill.jobs.counts()).map((one) => one.counts)
  return counts.reduce((sum, one) => sum + one.queued + one.running + one.scheduled + one.blocked, 0)
}

async function books(mill: Millrace): Promise<readonly Booked[]> {
  const found: Booked[] = []
  let cursor: string | undefined
  do {
    const page = await mill.jobs.list({}, { limit: 200, ...(cursor !== undefined && { cursor }) })
    const booked = page.items.map(async ({ id, status }): Promise<Booked> => {
      const rows = await mill.jobs.attempts(id)
      return { id, status, rows: rows.length, successes: rows.filter((row) => row.status === 'success').length }
    })
    found.push(...(await Promise.all(booked)))
    cursor = page.nextCursor
  } while (cursor !== undefined)
  return found
}
