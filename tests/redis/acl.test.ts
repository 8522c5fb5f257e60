// The user that docs/redis.md describes is enough for everything, and for nothing else.
import { readFileSync } from 'node:fs'
import { expect, test } from 'vitest'
import { createMillrace, defineJob, redis as redisBackend } from '../../src/index.ts'
import { useRedis } from './support.ts'

const redis = useRedis()

test('a user with the permissions of docs/redis.md can do everything that Millrace does', async () => {
  const text = readFileSync(new URL('../../docs/redis.md', import.meta.url), 'utf8')
  const line = /```acl\n(.*)\n```/.exec(text)?.[1] ?? ''
  const server = await redis.server({ config: { maxmemory: '100mb' } })
  await server.command(...(line.split(' ') as [string, ...string[]]))
  const job = defineJob({ name: 'job', run: () => 'done' })
  const backend = redisBackend({ url: server.url.replace('//', '//millrace:password@') })
  const mill = await createMillrace({ jobs: [job], backend })
  await mill.work()
  await mill.schedules.upsert('often', { job, every: '1s' })
  const batch = await mill.enqueueBatch('some', [[job], [job, undefined, { delay: 20, unique: 'key' }]])
  expect(await mill.enqueueAndWait(job, undefined, { group: 'g', priority: 'low' })).toBe('done')
  await batch.wait()
  await mill.queues.configure('default', { concurrency: 5, rate: { limit: 100, per: '1s' } })
  expect(await mill.enqueueAndWait(job, undefined)).toBe('done')
  await mill.metadata(job).increment('runs')
  await mill.jobs.list({ status: 'completed' })
  await mill.deadLetters.prune({ olderThan: 0 })
  for (const { run, name } of await backend.diagnose()) expect(await run(), name).toMatchObject({ level: 'ok' })
  await mill.stop()
  const elsewhere = redis.link({ url: server.url.replace('//', '//millrace:password@') })
  await elsewhere.connect()
  for (const command of ['FLUSHALL', 'KEYS', 'SHUTDOWN']) {
    await expect(elsewhere.command(command, '*')).rejects.toMatchObject({ code: 'STORE_REFUSED' })
  }
  await expect(elsewhere.command('GET', 'session:1')).rejects.toMatchObject({ message: /permission/ })
})
