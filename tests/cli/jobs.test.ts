// `millrace jobs`: looking is open to all, ending many asks first.
import { stripVTControlCharacters } from 'node:util'
import { describe, expect, test } from 'vitest'
import { UNKNOWN_ID, mail, noop, setup, workOff } from './harness.ts'

describe('jobs ls', () => {
  test('lists jobs as an aligned table without a terminal, nothing cut', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(mail, { to: 'ada' })
    await mill.enqueue(noop, undefined, { delay: '1h' })
    const { code, out } = await run('jobs ls', { columns: 40 })
    expect(out).toMatch(new RegExp(`^${id}  mail     send-mail  queued      100    0/3  20\\S+Z`, 'm'))
    expect(out).toMatch(/noop {7}scheduled {3}100 {4}0\/3 {2}20\S+Z {2}waits for delay$/m)
    expect(out).not.toContain('\u001b')
    expect(code).toBe(0)
  })

  test('fits the terminal, with colours and times that people read', async () => {
    const { mill, run } = await setup()
    await mill.enqueue(mail, { to: 'ada' })
    const { out } = await run('jobs ls', { tty: true, columns: 70 })
    const plain = stripVTControlCharacters(out)
    for (const line of plain.split('\n')) expect(line.length).toBeLessThanOrEqual(70)
    expect(out).toContain('\u001b[')
    expect(plain).toContain('now')
    expect((await run('jobs ls', { tty: true, env: { NO_COLOR: '1' } })).out).not.toContain('\u001b')
    expect((await run('jobs ls --no-color', { tty: true })).out).not.toContain('\u001b')
  })

  test('filters, and hands out a page and the way to the next', async () => {
    const { mill, run } = await setup()
    for (const to of ['ada', 'grace', 'edsger']) await mill.enqueue(mail, { to })
    await mill.enqueue(noop)
    const first = await run('jobs ls --queue mail --status queued,running --limit 2 --json')
    const { jobs, nextCursor, schemaVersion } = first.json as {
      jobs: { payload: unknown }[]
      nextCursor: string
      schemaVersion: number
    }
    expect(jobs.map(({ payload }) => payload)).toEqual([{ to: 'edsger' }, { to: 'grace' }])
    expect(schemaVersion).toBe(1)
    const second = await run(['jobs', 'ls', '-q', 'mail', '--limit', '2', '--cursor', nextCursor, '--json'])
    expect(second.json).toMatchObject({ jobs: [{ payload: { to: 'ada' } }] })
    expect(second.json).not.toHaveProperty('nextCursor')
    expect((await run('jobs ls --payload to=grace --json')).json).toMatchObject({
      jobs: [{ payload: { to: 'grace' } }],
    })
    expect((await run('jobs ls --since 1h --json')).json).toMatchObject({ jobs: { length: 4 } })
    expect((await run('jobs ls --until 1h --json')).json).toMatchObject({ jobs: [] })
    expect((await run('jobs ls --queue mail --limit 2')).err).toContain('there are more: add --cursor')
  })

  test('says so when there are none', async () => {
    const { run } = await setup()
    expect(await run('jobs ls')).toMatchObject({ code: 0, out: 'no jobs\n' })
  })
})

describe('jobs get', () => {
  test('shows a job with its attempts', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(mail, { to: 'ada' })
    await workOff(mill, [id])
    const { out } = await run(['jobs', 'get', id])
    expect(out).toMatch(/^status +completed$/m)
    expect(out).toMatch(/^payload +\{"to":"ada"\}$/m)
    expect(out).toMatch(/^result +\{"sentTo":"ada"\}$/m)
    expect(out).toMatch(/^ +1 {2}success/m)
    const { json } = await run(['jobs', 'get', id, '--json'])
    expect(json).toMatchObject({ job: { id, status: 'completed' }, attempts: [{ status: 'success' }], logs: [] })
  })

  test('what people put into jobs cannot act on a terminal, and shows no password', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(mail, { to: '\u001b[2J\u009b31m\u202e https://ada:secret@example.com x@y' })
    const { out } = await run(['jobs', 'get', id])
    expect(out).toMatch(/^payload +\{"to":"\\u001b\[2J\\u009b31m\\u202e https:\/\/ada:\*\*\*@example\.com x@y"\}$/m)
    const { out: text, json } = await run(['jobs', 'get', id, '--json'])
    expect(text).not.toMatch(/[\u009b\u202e]/)
    expect(json, 'data is data').toMatchObject({ job: { payload: (await mill.jobs.get(id))?.payload } })
  })

  test('ends with 3 when there is none', async () => {
    const { run } = await setup()
    const { code, err } = await run(`jobs get ${UNKNOWN_ID} --json`)
    expect(JSON.parse(err)).toMatchObject({ error: { code: 'JOB_NOT_FOUND' } })
    expect(code).toBe(3)
  })
})

describe('jobs add', () => {
  test('enqueues with all that was said', async () => {
    const { mill, run } = await setup()
    const options = '--priority high --delay 5m --attempts 7 --timeout 10s --tag a,b --unique k --group g --limit-key l'
    const { code, out } = await run(['jobs', 'add', 'send-mail', '{"to":"ada"}', ...options.split(' ')])
    expect(code).toBe(0)
    expect(await mill.jobs.get(out.trim())).toMatchObject({
      payload: { to: 'ada' },
      priority: 50,
      status: 'scheduled',
      maxAttempts: 7,
      timeoutMs: 10_000,
      tags: ['post', 'a', 'b'],
      group: 'g',
      limitKey: 'l',
      uniqueKey: 'k',
    })
  })

  test('reads the payload from a pipe, and says when a job was there before', async () => {
    const { mill, run } = await setup()
    const first = await run('jobs add send-mail - --unique k --json', { stdin: '{"to":"ada"}\n' })
    expect(first.json).toMatchObject({ outcome: 'inserted', duplicate: false })
    const second = await run('jobs add send-mail - --unique k', { stdin: '{"to":"ada"}\n' })
    expect(second.err).toContain('was there before')
    expect(second.out.trim()).toBe(first.json['id'])
    expect((await mill.jobs.list()).items).toHaveLength(1)
  })

  test('waits for the result, or ends with 124', async () => {
    const { mill, run } = await setup()
    const late = await run(['jobs', 'add', 'noop', '--wait', '20ms'])
    expect(late).toMatchObject({ code: 124, out: '' })
    await mill.work()
    expect(await run(['jobs', 'add', 'send-mail', '{"to":"ada"}', '--wait', '10s'])).toMatchObject({
      code: 0,
      out: '{"sentTo":"ada"}\n',
    })
    expect((await run(['jobs', 'add', 'noop', '--wait', '10s', '--json'])).json).toMatchObject({ result: null })
    const failed = await run(['jobs', 'add', 'boom', '"it broke"', '--wait', '10s'])
    expect(failed).toMatchObject({ code: 1, err: expect.stringContaining('it broke') as string })
  })

  test.each([
    [['send-mail', '{"to":42}'], 2, 'does not fit its schema'],
    [['send-mail', 'ada'], 2, 'not JSON'],
    [['sendmail', '{}'], 3, 'did you mean send-mail'],
    [['noop', '--at', 'tomorrow'], 2, '2030-01-31T09:00:00Z'],
    [['noop', '--priority', 'urgent'], 2, 'critical, high, normal, low'],
  ])('refuses %j', async (args, exit, says) => {
    const { mill, run } = await setup()
    const { code, err } = await run(['jobs', 'add', ...args])
    expect(err).toContain(says)
    expect(code).toBe(exit)
    expect((await mill.jobs.list()).items).toEqual([])
  })

  test('needs a configuration, and says how to get one', async () => {
    const { run } = await setup()
    const { code, err } = await run('jobs add noop --postgres postgres://localhost/x', { cwd: '/' })
    expect(err).toContain('millrace init')
    expect(code).toBe(2)
  })
})

describe('jobs cancel and rm', () => {
  test('end named jobs at once', async () => {
    const { mill, run } = await setup()
    const [a, b] = await mill.enqueueMany([[noop], [noop]] as const)
    expect(await run(['jobs', 'cancel', a.id, '--reason', 'not wanted'])).toMatchObject({
      code: 0,
      out: '1 job: 1 cancelled\n',
    })
    expect((await run(['jobs', 'cancel', a.id, '--json'])).json).toMatchObject({
      jobs: [{ id: a.id, answer: 'cancelled' }],
    })
    expect(await run(['jobs', 'rm', b.id])).toMatchObject({ code: 0, out: '1 job: 1 removed\n' })
    expect(await mill.jobs.get(b)).toBeNull()
  })

  test('a wrong id among several touches none of them', async () => {
    const { mill, run } = await setup()
    const { id } = await mill.enqueue(noop)
    expect(await run(['jobs', 'cancel', id, UNKNOWN_ID])).toMatchObject({ code: 3 })
    expect(await run(['jobs', 'rm', id, UNKNOWN_ID])).toMatchObject({ code: 3 })
    expect(await mill.jobs.get(id)).toMatchObject({ status: 'queued' })
  })

  test('by filter they count, ask, and do what was counted', async () => {
    const { mill, run } = await setup()
    for (let index = 0; index < 7; index++) await mill.enqueue(mail, { to: `${index}` })
    const { id } = await mill.enqueue(noop)
    const declined = await run('jobs cancel --queue mail', { tty: true, answer: 'n' })
    expect(declined).toMatchObject({
      code: 1,
      err: expect.stringContaining('This will cancel 7 jobs. Go on? [y/N]') as string,
    })
    expect(declined.err).toContain('and 2 more')
    expect(await queued(mill, 'mail')).toBe(7)
    expect(await run('jobs cancel --queue mail', { tty: true, answer: 'y' })).toMatchObject({
      code: 0,
      out: '7 jobs: 7 cancelled\n',
    })
    expect(await mill.jobs.get(id)).toMatchObject({ status: 'queued' })
    expect(await run('jobs rm --queue mail --status cancelled --limit 3 --yes')).toMatchObject({
      code: 0,
      out: '3 jobs: 3 removed\n',
    })
    expect((await mill.jobs.list({ queue: 'mail' })).items).toHaveLength(4)
  })

  test.each(['jobs cancel', 'jobs rm'])(
    '%s by filter is refused without a terminal and without --yes',
    async (line) => {
      const { mill, run } = await setup()
      await mill.enqueue(mail, { to: 'ada' })
      const { code, err } = await run(`${line} --queue mail`)
      expect(err).toContain('add --yes to do it, or --dry-run')
      expect(code).toBe(2)
      expect((await run(`${line} --queue empty --json`)).err).toContain('NEEDS_YES')
      expect(await queued(mill, 'mail')).toBe(1)
    },
  )

  test.each(['jobs cancel', 'jobs rm'])('%s --dry-run writes nothing', async (line) => {
    const { mill, run } = await setup()
    await mill.enqueue(mail, { to: 'ada' })
    expect((await run(`${line} --queue mail --dry-run --json`)).json).toMatchObject({
      dryRun: true,
      matched: 1,
      jobs: [{ answer: null }],
    })
    expect((await run(`${line} --all --dry-run`)).out).toMatch(/^would (cancel|remove) 1 job\n$/)
    expect(await queued(mill, 'mail')).toBe(1)
  })

  test.each(['jobs cancel', 'jobs rm', 'dead replay', 'dead rm'])(
    '%s without ids or a filter is refused',
    async (line) => {
      const { run } = await setup()
      const { code, err } = await run(`${line} --connection default --yes`)
      expect(err).toMatch(/say which jobs to \w+: ids, a filter such as --queue mail, or --all/)
      expect(code).toBe(2)
    },
  )
})

async function queued(mill: Awaited<ReturnType<typeof setup>>['mill'], queue: string): Promise<number> {
  return (await mill.jobs.list({ queue, status: 'queued' })).items.length
}
