// Redis at its limit of memory: writes are refused and told, what was acknowledged stays, and work goes on, so that room
// comes back.
import { expect, test } from 'vitest'
import { createMillrace, defineJob, redis as redisBackend } from '../../../src/index.ts'
import { isMillraceError } from '../../../src/core/errors.ts'
import type { RunContext } from '../../../src/index.ts'
import { until } from '../../postgres/faults/until.ts'
import { withoutThread } from '../../stores/place.ts'
import { useRedis } from '../support.ts'

const redis = useRedis()

test(
  'D1 at the limit of memory enqueueing is refused, what was acknowledged runs, and then there is room again',
  { timeout: 60_000 },
  async () => {
    const server = await redis.server({ config: { maxmemory: '12mb', 'maxmemory-policy': 'noeviction' } })
    const ran = new Set<number>()
    const job = defineJob({
      name: 'job',
      run: ({ input }: RunContext<{ readonly no: number; readonly text: string }>) => void ran.add(input.no),
    })
    const open = () =>
      createMillrace({
        jobs: [job],
        storeTimeout: '1s',
        retention: { completed: '1ms' },
        backend: withoutThread(redisBackend({ url: server.url })),
      })
    const producer = await open()
    const worker = await open()
    const acked: number[] = []
    let refusal: unknown
    for (let no = 0; refusal === undefined && no < 100_000; no += 100) {
      const numbers = Array.from({ length: 100 }, (_, at) => no + at)
      const text = 'x'.repeat(400)
      await producer.enqueueMany(numbers.map((one) => [job, { no: one, text }] as const)).then(
        () => acked.push(...numbers),
        (error: unknown) => (refusal = error),
      )
    }
    expect(isMillraceError(refusal, 'STORE_UNAVAILABLE') || isMillraceError(refusal, 'STORE_TIMEOUT')).toBe(true)
    expect(String(refusal)).toMatch(/memory/)
    expect(acked.length).toBeGreaterThan(1_000)
    await worker.work({ concurrency: 20 })
    await until(() => acked.every((no) => ran.has(no)), 'everything acknowledged to run', { limitMs: 40_000 })
    await until(async () => (await producer.jobs.counts('default'))[0]!.counts.running === 0, 'their ends to be stored')
    const keeper = redisBackend({ url: server.url })
    await keeper.start()
    while ((await keeper.jobs.prune([{ status: 'completed', olderThanMs: 0 }], 1_000)) > 0);
    await keeper.stop()
    await producer.enqueueAndWait(job, { no: -1, text: 'x'.repeat(400) })
    await producer.stop()
    await worker.stop()
  },
)
