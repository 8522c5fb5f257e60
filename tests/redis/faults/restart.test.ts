// The server goes away under load and comes back, or throws everybody out: a producer with books of its own and two
// worker processes go on by themselves. With AOF the end of the process of Redis loses nothing that it acknowledged.
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { expect, test } from 'vitest'
import { createMillrace, defineJob, redis as redisBackend } from '../../../src/index.ts'
import type { RunContext } from '../../../src/core/definition.ts'
import { gate } from '../../features/support.ts'
import { createJobs } from '../../postgres/faults/fixtures/jobs.ts'
import { BALANCED, ackedIn, balanceOf } from '../../postgres/faults/ledger.ts'
import { useProcesses } from '../../postgres/faults/processes.ts'
import { until } from '../../postgres/faults/until.ts'
import { withoutThread } from '../../stores/place.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useRedis } from '../support.ts'
import { booksOf, liveIn } from './books.ts'

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
    await until(async () => (await liveIn(mill)) === 0, 'everything to drain')
    expect(balanceOf(await booksOf(mill), files)).toMatchObject({ ...BALANCED, repeated: [] })
    await mill.stop()
    expect(workers.map(({ isAlive }) => isAlive)).toEqual([true, true])
    expect(workers.map((worker) => worker.count('workerLost'))).toEqual([0, 0])
    for (const worker of workers) expect(await worker.stop()).toBe(0)
  },
)

test('D1 a server that has forgotten the end of a run gets the job back from the worker that it says runs it', async () => {
  const server = await redis.server()
  const gates = { first: gate(), second: gate() }
  const started: string[] = []
  const job = defineJob({
    name: 'job',
    run: async ({ input }: RunContext<keyof typeof gates>) => {
      started.push(input)
      await gates[input].opened
    },
  })
  const mill = await createMillrace({ jobs: [job], backend: withoutThread(redisBackend({ url: server.url })) })
  await mill.work({ concurrency: 1 })
  const handle = await mill.enqueue(job, 'first')
  await until(() => started.length === 1, 'the job to run')
  const [data, copy] = [join(server.dir, 'appendonlydir'), join(server.dir, 'before')]
  cpSync(data, copy, { recursive: true })
  // Longer than runs for which jobs are taken ahead: while the second one runs the worker asks for nothing.
  await new Promise((resolve) => setTimeout(resolve, 300))
  gates.first.open()
  await handle.result()
  await mill.enqueue(job, 'second')
  await until(() => started.length === 2, 'the second job to run')

  await server.kill()
  rmSync(data, { recursive: true })
  cpSync(copy, data, { recursive: true })
  await server.restart()
  const isBack = async (): Promise<boolean> => (await mill.jobs.get(handle).catch(() => null))?.status === 'queued'
  await until(isBack, 'the job to be given back')
  gates.second.open()
  await handle.result()
  expect(started).toEqual(['first', 'second', 'first'])
  await mill.stop()
})
