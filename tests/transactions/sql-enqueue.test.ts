// The SQL function `enqueue`: from psql, from a trigger, by somebody who may do nothing else; and what it refuses.
import { execFile } from 'node:child_process'
import { promisify } from 'node:util'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { DEFAULTS, LIMITS } from '../../src/core/limits.ts'
import { checkKey, checkName } from '../../src/core/names.ts'
import { defineJob } from '../../src/index.ts'
import type { RunContext } from '../../src/index.ts'
import { ensureDebianPackage } from '../support/debian-package.ts'
import { createMillDatabase } from './mill-database.ts'
import type { MillDatabase } from './mill-database.ts'
import { START_MAX_MS, caught } from './probe.ts'

const PSQL = '/usr/bin/psql'
const run = promisify(execFile)

const welcome = defineJob({
  name: 'welcome',
  queue: 'mail',
  run: ({ input }: RunContext<{ order: string }>) => `welcomed ${input.order}`,
})
const jobs = [welcome] as const

describe.each([15, 18] as const)('PostgreSQL %i', (version) => {
  let database: MillDatabase<typeof jobs>
  beforeAll(async () => {
    ensureDebianPackage({ name: 'postgresql-client', program: PSQL })
    database = await createMillDatabase({ jobs }, version)
    await database.mill.work()
  }, START_MAX_MS)
  afterAll(() => database.drop())

  async function psql(...commands: readonly string[]): Promise<string> {
    const flags = ['-X', '-q', '-A', '-t', '-v', 'ON_ERROR_STOP=1', '-v', 'VERBOSITY=verbose']
    const { stdout } = await run(PSQL, [...flags, ...commands.flatMap((text) => ['-c', text]), database.url])
    return stdout.trim()
  }

  test('D11 psql enqueues a job by named arguments, and a worker runs it', async () => {
    const id = await psql(`select millrace.enqueue(queue => 'mail', name => 'welcome', payload => '{"order": "psql"}')`)
    expect(await database.mill.result(id, { timeout: '10s' })).toBe('welcomed psql')
  })

  test('D11 psql is told what is wrong and what to do', async () => {
    const error = await caught(() => psql(`select millrace.enqueue('ma il', 'welcome')`))
    const { stderr } = error as { stderr: string }
    expect(stderr).toContain("ERROR:  22023: 'ma il' cannot be the name of a queue")
    expect(stderr).toContain('HINT:  use 1-100 letters, digits and _ . : - that start with a letter or digit')
  })

  test('D11 a trigger on a table of the user enqueues with each row, and a rollback takes the job with it', async () => {
    await psql(
      `create function welcome() returns trigger language plpgsql as $$
       begin
         perform millrace.enqueue('mail', 'welcome', json_build_object('order', new.id), unique_key => new.id);
         return new;
       end $$;
       create trigger welcome after insert on orders for each row execute function welcome();`,
    )
    await psql('begin', "insert into orders values ('lost')", 'rollback')
    await psql("insert into orders values ('first'), ('second')")
    const waiting = async () =>
      (await database.mill.jobs.list({ name: 'welcome', status: 'completed' })).items.map(({ result }) => result)
    await expect
      .poll(waiting, { timeout: 10_000 })
      .toEqual(expect.arrayContaining(['welcomed first', 'welcomed second']))
    expect(await waiting()).not.toContain('welcomed lost')
    await psql('drop trigger welcome on orders; drop function welcome')
  })

  test('D11 every argument arrives', async () => {
    const batch = await database.mill.batch('sql')
    const id = await psql(
      `select millrace.enqueue('elsewhere', 'other', '{"a": [1, "\\u00fc"]}', 5, '90 minutes', max_attempts => 7,
         timeout => '1.5 seconds', tags => '{b,a,b}', group_key => 'g', limit_key => 'l', batch => '${batch.id}',
         meta => '{"trace": "t"}', unique_key => 'u')`,
    )
    const job = await database.mill.jobs.get(id)
    expect(job).toMatchObject({
      queue: 'elsewhere',
      name: 'other',
      payload: { a: [1, 'ü'] },
      priority: 5,
      status: 'scheduled',
      maxAttempts: 7,
      timeoutMs: 1_500,
      tags: ['b', 'a'],
      group: 'g',
      limitKey: 'l',
      batch: batch.id,
      meta: { trace: 't' },
    })
    expect(job!.runAt.getTime() - job!.enqueuedAt.getTime()).toBe(90 * 60_000)
    // The holder stands for a duplicate; ids carry the time, as those of the client do.
    expect(await psql(`select millrace.enqueue('elsewhere', 'other', unique_key => 'u')`)).toBe(id)
    expect(id).toMatch(/^[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/)
    expect(Math.abs(Number.parseInt(id.replaceAll('-', '').slice(0, 12), 16) - job!.enqueuedAt.getTime())).toBeLessThan(
      1_000,
    )
  })

  test('D11 what is left out is as everywhere', async () => {
    const id = await psql(`select millrace.enqueue('elsewhere', 'plain', payload => null, run_at => now() + '1 day')`)
    const job = await database.mill.jobs.get(id)
    expect(job).toMatchObject({ payload: null, timeoutMs: DEFAULTS.jobTimeoutMs, tags: [], meta: null, batch: null })
    expect(job).toMatchObject({ priority: DEFAULTS.priority, maxAttempts: DEFAULTS.attempts, status: 'scheduled' })
    const past = await psql(`select millrace.enqueue('elsewhere', 'plain', run_at => '-infinity')`)
    expect(await database.mill.jobs.get(past)).toMatchObject({ status: 'queued' })
  })

  test('D11 a key for a time is free when the time is over', async () => {
    const [first, second] = await Promise.all(
      ['1 millisecond', '1 hour'].map((window, index) =>
        psql(`select millrace.enqueue('elsewhere', 'timed', unique_key => 'k${index}', unique_for => '${window}')`),
      ),
    )
    expect(await psql(`select millrace.enqueue('elsewhere', 'timed', unique_key => 'k0')`)).not.toBe(first)
    expect(await psql(`select millrace.enqueue('elsewhere', 'timed', unique_key => 'k1')`)).toBe(second)
  })

  test('D11 who may execute it and nothing else can enqueue', async () => {
    const role = `only_enqueue_${version}`
    await psql(
      `create role ${role}; grant usage on schema millrace to ${role};
       revoke execute on all routines in schema millrace from public;
       grant execute on function millrace.enqueue to ${role}`,
    )
    try {
      const id = await psql(`set role ${role}`, `select millrace.enqueue('mail', 'welcome', '{"order": "least"}')`)
      expect(await database.mill.result(id, { timeout: '10s' })).toBe('welcomed least')
      await expect(psql(`set role ${role}`, 'select * from millrace.job_bodies')).rejects.toThrow('permission denied')
    } finally {
      await psql(`grant execute on all routines in schema millrace to public; drop owned by ${role}; drop role ${role}`)
    }
  })

  const sealed = '01890000-0000-7000-8000-000000000001'
  test.each([
    ['queue', "null, 'n'", '22023', 'NULL cannot be the name of a queue'],
    ['name', "'q', '-n'", '22023', "'-n' cannot be the name of a job"],
    ['payload', `'q', 'n', to_json(repeat('x', ${LIMITS.payloadBytesMax}))`, '54000', 'payload has 262146 bytes'],
    ['payload', String.raw`'q', 'n', '"\u0000"'`, '22023', 'payload has a NUL character'],
    ['payload', String.raw`'q', 'n', '"\ud800"'`, '22023', 'half of a surrogate pair'],
    ['priority', "'q', 'n', priority => -1", '22023', 'priority is -1'],
    ['priority', `'q', 'n', priority => ${LIMITS.priorityMax + 1}`, '22023', 'priority is 32768'],
    ['delay', "'q', 'n', delay => '-1 second'", '22023', 'delay is -00:00:01'],
    ['delay', `'q', 'n', delay => '${LIMITS.delayMaxMs + 1} milliseconds'`, '22023', 'delay is'],
    ['run_at', "'q', 'n', run_at => 'infinity'", '22023', 'run_at is infinity'],
    ['both times', "'q', 'n', delay => '1s', run_at => now()", '22023', 'delay and run_at exclude each other'],
    ['unique_key', "'q', 'n', unique_key => ''", '22023', "'' cannot be a unique_key"],
    ['unique_for', "'q', 'n', unique_key => 'k', unique_for => '0'", '22023', 'unique_for is 00:00:00'],
    ['unique_for alone', "'q', 'n', unique_for => '1s'", '22023', 'unique_for has no unique_key'],
    ['max_attempts', "'q', 'n', max_attempts => 0", '22023', 'max_attempts is 0'],
    ['max_attempts', `'q', 'n', max_attempts => ${LIMITS.attemptsMax + 1}`, '22023', 'max_attempts is 1001'],
    ['timeout', "'q', 'n', timeout => '0'", '22023', 'timeout is 00:00:00'],
    ['timeout', `'q', 'n', timeout => '${LIMITS.timeoutMaxMs + 1} milliseconds'`, '22023', 'timeout is'],
    ['tags', "'q', 'n', tags => array[null]", '22023', 'NULL cannot be a tag'],
    [
      'tags',
      `'q', 'n', tags => array(select i::text from generate_series(0, ${LIMITS.tagsMax}) i)`,
      '22023',
      '21 tags',
    ],
    ['group_key', String.raw`'q', 'n', group_key => E'a\tb'`, '22023', 'cannot be a group_key'],
    ['limit_key', "'q', 'n', limit_key => repeat('k', 201)", '22023', 'cannot be a limit_key'],
    ['batch', `'q', 'n', batch => '${sealed}'`, '23503', `there is no batch ${sealed}`],
    ['meta', "'q', 'n', meta => '[]'", '22023', 'meta is of type array'],
    ['meta', `'q', 'n', meta => json_build_object('a', repeat('x', ${LIMITS.metaBytesMax}))`, '54000', 'meta has'],
  ])('D11 refused with a hint is a wrong %s', async (_, args, code, message) => {
    const error = await caught(() => database.query(`select millrace.enqueue(${args})`))
    expect(error).toMatchObject({ code, message: expect.stringContaining(message), hint: expect.stringMatching(/\S/) })
  })

  test('D11 a batch that takes no more jobs refuses', async () => {
    const batch = await database.mill.enqueueBatch('closed', [])
    const error = await caught(() => database.query(`select millrace.enqueue('q', 'n', batch => '${batch.id}')`))
    expect(error).toMatchObject({ code: '55000', message: expect.stringContaining('takes no more jobs') })
  })

  test('D11 names and keys are those of the client', async () => {
    const accepts = (check: (value: string) => unknown) => (value: string) => {
      try {
        check(value)
        return true
      } catch {
        return false
      }
    }
    const values = [...candidates()]
    const rows = await database.query(
      'select millrace.is_name(v) as name, millrace.is_key(v) as key from unnest($1::text[]) with ordinality as c(v, i) order by i',
      [values],
    )
    expect(rows.map(({ name }) => name)).toEqual(values.map(accepts((value) => checkName(value, 'queue'))))
    expect(rows.map(({ key }) => key)).toEqual(values.map(accepts((value) => checkKey(value, 'key'))))
  })
})

/** Every character up to U+0250 first, last and alone; lengths around the bounds; odd ends of lines. */
function* candidates(): Iterable<string> {
  for (let code = 1; code < 0x250; code++) {
    const character = String.fromCharCode(code)
    yield character
    yield `a${character}`
    yield `${character}a`
  }
  for (const length of [0, 1, 99, 100, 101, 199, 200, 201]) yield 'n'.repeat(length)
  yield* ['a\n', 'a\r\nb', 'K', 'ſ', 'a‘b', '日本', 'a😀', '\u2028', '\ufeff', '１', 'é'.repeat(200), 'é'.repeat(201)]
}
