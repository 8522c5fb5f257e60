// `millrace migrate`, over a migrator that only remembers what it was asked.
import { describe, expect, test } from 'vitest'
import type { Migrator } from '../../src/backends/postgres/migrate.ts'
import type { MigrationStatus } from '../../src/backends/postgres/migrate-status.ts'
import { start, setup, temporaryFolder } from './harness.ts'
import type { RunOptions } from './harness.ts'

const NAMES = ['initial', 'archive', 'limits']

function system(version: number, { drift = [] as readonly string[] } = {}) {
  const calls: string[] = []
  const opened: unknown[] = []
  const named = NAMES.map((name, index) => ({ version: index + 1, name }))
  const migrator: Migrator = {
    status: () => {
      const status: MigrationStatus = {
        version,
        latest: NAMES.length,
        applied: named.filter((one) => one.version <= version).map((one) => ({ ...one, atMs: 0, by: 'ada' })),
        pending: named.filter((one) => one.version > version),
        functions: 'current',
        drift,
        history: [],
      }
      return Promise.resolve(status)
    },
    up: (to = NAMES.length) => {
      calls.push(`up ${to}`)
      return Promise.resolve({ from: version, to, steps: [`${to} ${NAMES[to - 1]}`] })
    },
    down: (to) => {
      calls.push(`down ${to}`)
      return Promise.resolve({ from: version, to, steps: ['back'] })
    },
    sql: (direction, to, from) => `-- ${direction} ${from} ${to}`,
    close: () => Promise.resolve(void calls.push('close')),
  }
  const openMigrator: NonNullable<RunOptions['openMigrator']> = ({ url, schema }) => {
    opened.push({ url, schema })
    return Promise.resolve(migrator)
  }
  const cwd = temporaryFolder()
  const run = (line: string, options: RunOptions = {}) =>
    start(line.split(' '), { cwd, env: { DATABASE_URL: 'postgres://u:secret@db/app' }, openMigrator, ...options }).done
  return { calls, opened, run }
}

describe('migrate', () => {
  test('status ends with 0 when the schema is up to date', async () => {
    const { run, calls, opened } = system(3)
    const { code, out } = await run('migrate status --schema jobs')
    expect(out).toMatch(/^ +3 {2}limits +applied +1970-01-01T00:00:00\.000Z$/m)
    expect(out).toContain('the schema is at version 3 of 3, nothing is to be done')
    expect(code).toBe(0)
    expect(opened).toEqual([{ url: 'postgres://u:secret@db/app', schema: 'jobs' }])
    expect(calls).toEqual(['close'])
  })

  test('status ends with 4 when it is behind or differs', async () => {
    const behind = await system(1).run('migrate status --json')
    expect(behind.json).toMatchObject({
      upToDate: false,
      version: 1,
      latest: 3,
      pending: [{ version: 2 }, { version: 3 }],
    })
    expect(behind.json).toMatchObject({ applied: [{ name: 'initial', at: '1970-01-01T00:00:00.000Z' }] })
    expect(behind.code).toBe(4)
    const different = await system(3, { drift: ['table jobs has lost an index'] }).run('migrate status')
    expect(different).toMatchObject({
      code: 4,
      out: expect.stringContaining('differs: table jobs has lost an index') as string,
    })
  })

  test('up applies all, or up to a version; --dry-run only says so', async () => {
    const { run, calls } = system(1)
    expect((await run('migrate up --dry-run')).out).toBe('would apply 2 archive, 3 limits\n')
    expect(await run('migrate up --to 2')).toMatchObject({
      code: 0,
      out: expect.stringContaining('from version 1 to 2') as string,
    })
    expect((await run('migrate up --json')).json).toMatchObject({ dryRun: false, from: 1, to: 3, steps: ['3 limits'] })
    expect(calls.filter((call) => call !== 'close')).toEqual(['up 2', 'up 3'])
  })

  test('down asks with what goes', async () => {
    const { run, calls } = system(3)
    expect(await run('migrate down --to 0')).toMatchObject({ code: 2, err: expect.stringContaining('--yes') as string })
    expect((await run('migrate down --to 1 --dry-run')).out).toBe('would take back 2 migrations\n')
    const declined = await run('migrate down --to 0', { tty: true, answer: 'n' })
    expect(declined.err).toContain('This will take back 3 migrations, with all jobs and their history. Go on? [y/N]')
    expect(declined.code).toBe(1)
    expect(calls.filter((call) => call !== 'close')).toEqual([])
    expect(await run('migrate down --to 1 --yes')).toMatchObject({ code: 0 })
    expect(calls).toContain('down 1')
  })

  test('sql prints the statements and needs no database', async () => {
    const { run, opened } = system(3)
    expect((await run('migrate sql up --from 1 --to 2', { env: {} })).out).toBe('-- up 1 2\n')
    expect((await run('migrate sql down --schema jobs --json', { env: {} })).json).toMatchObject({ direction: 'down' })
    expect(opened.at(-1)).toMatchObject({ schema: 'jobs' })
    expect(await run('migrate sql sideways')).toMatchObject({
      code: 2,
      err: expect.stringContaining('up or down') as string,
    })
  })

  test('a configuration with a backend of its own has nothing to migrate', async () => {
    const { run } = await setup()
    expect(await run('migrate status')).toMatchObject({
      code: 2,
      err: expect.stringContaining('--postgres URL') as string,
    })
  })
})
