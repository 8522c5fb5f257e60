// What the hybrid keeps in Redis for people ends by itself: the task finds nothing to remove, gives back an end that was lost,
// and leaves alone what it does not know.
import { Redis } from 'ioredis'
import { expect, onTestFinished, test } from 'vitest'
import { createMillrace, defineJob, fixed } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { createRuntime } from '../../src/runtime/runtime.ts'
import { cleanTracking } from '../../src/tasks/tracking.ts'
import { useHybrid } from './features/support.ts'

const place = useHybrid()
const work = defineJob({
  name: 'work',
  queue: 'mail',
  retry: fixed({ attempts: 1, delay: 1 }),
  run({ input }: RunContext<string>) {
    if (input === 'fail') throw new Error('broken')
    return input
  },
})

test('P4 keys that lost their end get one again; tokens and what is not ours stay', async () => {
  await using at = await place()
  const { redis: url = '', prefix = '' } = at.address
  const client = new Redis(url)
  onTestFinished(() => client.disconnect())
  const backend = at.backend()
  const mill = await createMillrace({ jobs: [work], backend })
  const worker = await mill.work()
  const failed = await mill.enqueue(work, 'fail')
  await failed.result().catch(() => undefined)
  const key = `${prefix}:{mail}:job:${failed.id}`
  await expect.poll(() => client.exists(key), { timeout: 10_000 }).toBe(1)
  expect(await client.ttl(key)).toBeGreaterThan(0)
  await worker.stop()
  const waiting = await mill.enqueue(work, 'waits')

  const context = { runtime: createRuntime(), backend, signal: new AbortController().signal }
  const clean = await cleanTracking(context)
  expect(clean).toMatchObject({ outcome: 'done', counts: { dead: 0, endless: 0, foreign: 0 }, warnings: [] })
  expect(clean.counts['seen']).toBeGreaterThan(1)

  await client.persist(key)
  await client.hset(`${prefix}:{mail}:jobs`, 'a', 'of a store that was kept in Redis alone')
  expect(await cleanTracking(context, { dryRun: true })).toMatchObject({ counts: { endless: 1, foreign: 1 } })
  expect(await client.ttl(key)).toBe(-1)
  const result = await cleanTracking(context)
  expect(result).toMatchObject({
    counts: { endless: 1, foreign: 1 },
    warnings: [expect.stringContaining('left alone')],
  })
  expect(await client.ttl(key)).toBeGreaterThan(0)
  expect(await client.exists(`${prefix}:{mail}:jobs`)).toBe(1)
  await client.del(`${prefix}:{mail}:jobs`)
  await mill.work()
  expect(await waiting.result()).toBe('waits')
  await mill.stop({ deadline: 0 })
})
