// Operators need a URL and nothing else: every command that looks or acts works on Redis without a configuration file.
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { createMillrace, redis as redisBackend } from '../../src/index.ts'
import { JOBS, boom, mail, noop, start, temporaryFolder, workOff } from '../cli/harness.ts'
import type { RunOptions } from '../cli/harness.ts'
import type { RedisProcess } from '../support/redis-server.ts'
import { useRedis } from './support.ts'

const SECRET = 'open-sesame'
const redis = useRedis()
let server: RedisProcess
let url: string

beforeAll(async () => {
  server = await redis.server({ config: { requirepass: SECRET, maxmemory: '200mb' } })
  url = server.url.replace('//', `//:${SECRET}@`)
})

async function run(line: string | readonly string[], options: RunOptions = {}) {
  const cwd = temporaryFolder()
  const words = typeof line === 'string' ? line.split(' ') : line
  const ran = await start([...words, '--redis', url], { cwd, ...options }).done
  expect(ran.out + ran.err).not.toContain(SECRET)
  return ran
}

describe('on Redis, with a URL alone', () => {
  test('O5 looking and acting', async () => {
    expect(await run('status')).toMatchObject({ code: 0, out: expect.stringContaining('no queues yet') as string })
    const mill = await createMillrace({ jobs: JOBS, backend: redisBackend({ url }) })
    onTestFinished(() => mill.stop({ deadline: 0 }))
    const failed = await mill.enqueue(boom, 'disk full')
    await workOff(mill, [failed.id])
    await mill.queues.configure('mail', { concurrency: 1 })
    await run('queues pause mail')
    const [first, second] = await mill.enqueueMany([
      [mail, { to: 'ada' }],
      [mail, { to: 'grace' }],
    ] as const)
    const later = await mill.enqueue(noop, undefined, { delay: '1h' })
    await mill.schedules.upsert('nightly', { job: noop, cron: '0 3 * * *' })
    const batch = await mill.enqueueBatch('campaign', [[noop, undefined, { delay: '1h' }]])

    const status = await run('status --json')
    expect(status.json, status.err).toMatchObject({ health: 'ok', deadLetters: 1 })
    expect((await run('jobs ls --queue mail --json')).json).toMatchObject({ jobs: { length: 2 } })
    expect((await run('jobs ls --payload to=grace')).err).toContain('cannot search by payload')
    expect((await run(['jobs', 'get', failed.id])).out).toContain('Error: disk full')
    expect((await run(['why', first.id])).out).toContain('queue mail is paused')
    expect((await run(['why', second.id])).out).toContain('it waits for a slot of queue mail')
    expect((await run(['why', later.id])).out).toContain('it is scheduled until')
    expect((await run('queues ls')).out).toMatch(/^mail +paused/m)
    expect((await run('dead ls')).out).toContain('disk full')
    expect((await run('schedules ls')).out).toContain('nightly')
    expect((await run('batches ls')).out).toContain('campaign')
    expect(await run('jobs cancel --queue mail --yes')).toMatchObject({ code: 0, out: '2 jobs: 2 cancelled\n' })
    expect(await run(['jobs', 'rm', later.id])).toMatchObject({ code: 0 })
    expect(await run(['batches', 'cancel', batch.id, '--yes'])).toMatchObject({ code: 0 })
  })

  test('O5 doctor examines the server', async () => {
    const { json, code } = await run('doctor --json')
    const { checks } = json as { checks: { name: string; level: string }[] }
    const names = checks.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['store', 'clock', 'memory', 'eviction', 'durability', 'replication']))
    expect(new Set(names).size, 'each name once').toBe(names.length)
    expect(checks.filter(({ level }) => level === 'fail')).toEqual([])
    expect([0, 4]).toContain(code)
  })

  test('O5 a server that is not there ends with 69 and says who named it', async () => {
    const { code, err } = await start(['status', '--redis', `redis://:${SECRET}@127.0.0.1:1`], {
      cwd: temporaryFolder(),
    }).done
    expect(code).toBe(69)
    expect(err).toContain('(--redis)')
    expect(err).not.toContain(SECRET)
  })

  test('O5 there is nothing to migrate', async () => {
    expect(await run('migrate status')).toMatchObject({
      code: 2,
      err: expect.stringContaining('no migrations') as string,
    })
  })
})

describe('createMillrace', () => {
  test('takes a URL or options', async () => {
    for (const one of [url, { url, prefix: 'other' }]) {
      const mill = await createMillrace({ jobs: JOBS, redis: one })
      const { id } = await mill.enqueue(noop)
      expect((await mill.jobs.get(id))?.status).toBe('queued')
      await mill.stop()
    }
    expect(Number(await server.command('EXISTS', 'other:queues'))).toBe(1)
  })

  test('refuses what it cannot understand', async () => {
    const schema = createMillrace({ jobs: JOBS, redis: url, schema: 'jobs' })
    await expect(schema).rejects.toMatchObject({ code: 'INVALID_OPTION', message: /PostgreSQL/ })
    const wrong = createMillrace({ jobs: JOBS, redis: `http://:${SECRET}@host` })
    const error = await wrong.catch((thrown: unknown) => thrown)
    expect(error).toMatchObject({ code: 'INVALID_OPTION' })
    expect(String(error)).not.toContain(SECRET)
  })
})
