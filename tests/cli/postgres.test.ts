// Operators need a URL and nothing else: every command that looks or acts works on PostgreSQL without a
// configuration file, and none of them touches the schema unless it is asked to.
import { describe, expect, onTestFinished, test } from 'vitest'
import { createMillrace, postgres } from '../../src/index.ts'
import { freshDatabase, sharedPostgres } from '../support/postgres-server.ts'
import { JOBS, boom, mail, noop, start, temporaryFolder, workOff } from './harness.ts'
import type { RunOptions } from './harness.ts'

const TEST_MAX_MS = 120_000

async function database() {
  const fresh = await freshDatabase(await sharedPostgres(18))
  onTestFinished(() => fresh.drop())
  const cwd = temporaryFolder()
  const run = (line: string | readonly string[], options: RunOptions = {}) => {
    const words = typeof line === 'string' ? line.split(' ') : line
    return start([...words, '--postgres', fresh.url], { cwd, ...options }).done
  }
  return { url: fresh.url, run }
}

describe('on PostgreSQL, with a URL alone', { timeout: TEST_MAX_MS }, () => {
  test('O5 an empty database is not migrated by looking at it, only by migrate up', async () => {
    const { run } = await database()
    const looked = await run('status')
    expect(looked).toMatchObject({ code: 4, err: expect.stringContaining('millrace migrate up') as string })
    expect(await run('migrate status')).toMatchObject({
      code: 4,
      out: expect.stringContaining('at version 0 of') as string,
    })
    expect((await run('migrate up --dry-run')).out).toContain('would apply 1 ')
    expect(await run('migrate up')).toMatchObject({ code: 0 })
    expect(await run('migrate status')).toMatchObject({ code: 0 })
    expect(await run('status')).toMatchObject({ code: 0, out: expect.stringContaining('no queues yet') as string })
    expect(await run('migrate down --to 0')).toMatchObject({ code: 2 })
    expect(await run('migrate down --to 0 --yes')).toMatchObject({ code: 0 })
    expect(await run('status')).toMatchObject({ code: 4 })
  })

  test('O5 looking and acting', async () => {
    const { url, run } = await database()
    const mill = await createMillrace({ jobs: JOBS, backend: postgres({ url, poolMax: 4 }) })
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
    expect(status.json, status.err).toMatchObject({ health: 'ok', workers: { alive: 1 }, deadLetters: 1 })
    expect(status.out).not.toContain(new URL(url).password)
    expect((await run('jobs ls --queue mail --json')).json).toMatchObject({ jobs: { length: 2 } })
    expect((await run('jobs ls --payload to=grace --json')).json).toMatchObject({ jobs: [{ id: second.id }] })
    expect((await run(['jobs', 'get', failed.id])).out).toContain('Error: disk full')
    expect((await run(['why', first.id])).out).toContain('queue mail is paused')
    expect((await run(['why', second.id])).out).toContain(
      'it waits for a slot of queue mail: 1 of 1 are in use, and 1 job waits',
    )
    expect((await run(['why', later.id])).out).toContain('it is scheduled until')
    expect((await run(['why', failed.id])).out).toContain('disk full')
    expect((await run('queues ls')).out).toMatch(/^mail +paused/m)
    expect((await run('dead ls')).out).toContain('disk full')
    expect((await run('schedules ls')).out).toContain('nightly')
    expect((await run('batches ls')).out).toContain('campaign')
    const { verdict, checks } = (await run('doctor --json')).json as { verdict: string; checks: { name: string }[] }
    expect(verdict).toBe('warn')
    const names = checks.map(({ name }) => name)
    expect(names).toEqual(expect.arrayContaining(['store', 'workers', 'schema', 'orphans', 'clock']))
    expect(new Set(names).size, 'each name once').toBe(names.length)

    expect(await run('jobs cancel --queue mail --yes')).toMatchObject({ code: 0, out: '2 jobs: 2 cancelled\n' })
    expect(await run(['jobs', 'rm', later.id])).toMatchObject({ code: 0 })
    expect(await run(['batches', 'cancel', batch.id, '--yes'])).toMatchObject({ code: 0 })
    expect(await run('schedules pause nightly')).toMatchObject({ code: 0 })
    expect(await run('queues set mail --concurrency none --rate 10/s')).toMatchObject({ code: 0 })
    await run('queues pause fragile')
    expect(await run(['dead', 'replay', failed.id, '--as-new', '--yes'])).toMatchObject({
      code: 0,
      out: '1 dead letter: 1 replayed\n',
    })
    expect((await mill.jobs.list({ queue: 'fragile', status: 'queued' })).items).toMatchObject([
      { replayOf: failed.id },
    ])
    expect(await run('dead rm --all --yes')).toMatchObject({ code: 0, out: '1 dead letter: 1 removed\n' })
  })

  test('a wrong password, and a server that is not there, are told without the password', async () => {
    const { url } = await database()
    const cwd = temporaryFolder()
    const wrong = new URL(url)
    wrong.password = 'not-the-word'
    const refused = await start(['status', '--postgres', wrong.href], { cwd }).done
    expect(refused.code).toBe(1)
    const nobody = await start(['status', '--json'], {
      cwd,
      env: { DATABASE_URL: 'postgres://ada:not-the-word@127.0.0.1:1/x' },
    }).done
    expect(JSON.parse(nobody.err)).toMatchObject({
      error: {
        code: 'STORE_UNAVAILABLE',
        message: expect.stringContaining('postgres://ada:***@127.0.0.1:1/x (DATABASE_URL)') as string,
      },
    })
    expect(nobody.code).toBe(69)
    expect(refused.err + nobody.err).not.toContain('not-the-word')
  })
})
