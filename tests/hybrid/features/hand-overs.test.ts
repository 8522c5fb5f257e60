// Hand-overs on the hybrid: by the push that brings the token.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob, hybrid } from '../../../src/index.ts'
import type { RunContext } from '../../../src/index.ts'
import { until, useRedis } from '../../redis/support.ts'
import { handingOver } from '../../stores/hand-overs.ts'
import type { RedisProcess } from '../../support/redis-server.ts'
import { useHybrid } from './support.ts'

const redis = useRedis()
let server: RedisProcess

beforeAll(async () => {
  server = await redis.server()
})

const place = useHybrid({ redisUrl: () => server.url })
const ROUNDS = 5
const ROUNDS_MAX = 50
/** A poll of an idle worker, the time a message may take, a look, the relay and the take. */
const FOUND_MAX_MS = 4_000

describe('hybrid', () => {
  handingOver(place, () => server.command('CLIENT', 'KILL', 'TYPE', 'pubsub'))

  test('D3 what a push has handed over and could not tell is found, runs once, and leaves nothing in Redis', async () => {
    await using at = await place()
    const { url, prefix = '' } = at.address
    const runs: number[] = []
    const job = defineJob({ name: 'job', run: ({ input }: RunContext<number>) => void runs.push(input) })
    const mill = await at.process([job])
    await mill.work({ concurrency: 5 })
    await mill.enqueueAndWait(job, -1)
    // It may ring, and tell nobody else anything.
    await server.command('ACL', 'SETUSER', 'mute', 'on', '>secret', '~*', '+@all', 'resetchannels', `&${prefix}:bell`)
    const producer = await createMillrace({
      jobs: [job],
      backend: hybrid({
        postgres: { url, poolMax: 2 },
        redis: { url: `redis://mute:secret@127.0.0.1:${server.port}` },
        prefix,
      }),
    })
    onTestFinished(() => producer.stop())
    const state = async (): Promise<string> => String(await server.command('HGETALL', `${prefix}:{default}:state`))
    let unheard = 0
    let no = 0
    // A producer that does not know its way yet leaves them to the relay, which tells.
    for (; no < ROUNDS || (unheard === 0 && no < ROUNDS_MAX); no++) {
      const handle = await producer.enqueue(job, no)
      await until(
        async () => {
          if (/,s:[^,]+,\d+\.5,/.test(await state())) unheard += 1
          return runs.includes(no)
        },
        'the job',
        FOUND_MAX_MS,
      )
      await handle.result()
    }
    expect(unheard).toBeGreaterThan(0)
    expect(runs).toHaveLength(no + 1)
    const { items } = await mill.jobs.list({ status: 'completed' })
    expect(items.map(({ attemptCount, crashCount }) => [attemptCount, crashCount])).toEqual(items.map(() => [1, 0]))
    // Only its mark is left.
    await until(async () => Number(await server.command('HLEN', `${prefix}:{default}:held`)) === 1, 'an empty Redis')
  })
})
