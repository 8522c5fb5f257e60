// Where a command finds its configuration and its store, and who wins.
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { findConfig, loadConfig } from '../../src/cli/config-file.ts'
import { defineConfig } from '../../src/cli/config.ts'
import { readSettings } from '../../src/cli/settings.ts'
import type { GlobalFlags } from '../../src/cli/settings.ts'
import { memory } from '../../src/index.ts'
import { mail, setup, start, temporaryFolder } from './harness.ts'

const A = 'postgres://a:pw@a/a'
const B = 'postgres://b:pw@b/b'
const C = 'postgres://c:pw@c/c'

describe('the configuration file', () => {
  test('is found here or above, TypeScript first', () => {
    const root = temporaryFolder()
    const deep = join(root, 'a', 'b')
    mkdirSync(deep, { recursive: true })
    expect(findConfig(deep)).toBeNull()
    writeFileSync(join(root, 'millrace.config.mjs'), '')
    expect(findConfig(deep)).toBe(join(root, 'millrace.config.mjs'))
    writeFileSync(join(root, 'millrace.config.ts'), '')
    expect(findConfig(deep)).toBe(join(root, 'millrace.config.ts'))
    writeFileSync(join(deep, 'millrace.config.js'), '')
    expect(findConfig(deep)).toBe(join(deep, 'millrace.config.js'))
  })

  test('may be TypeScript, with imports, enums and top-level await', async () => {
    const root = temporaryFolder()
    writeFileSync(
      join(root, 'millrace.config.ts'),
      `import { job } from './job.js'
       enum Level { Low = 'low' }
       const jobs: readonly unknown[] = [job]
       const schema: string = await Promise.resolve(Level.Low)
       export default { jobs, schema }`,
    )
    writeFileSync(join(root, 'job.ts'), `export const job: { name: string } = { name: 'from-typescript' }`)
    const loaded = await loadConfig(root, undefined)
    expect(loaded?.config).toMatchObject({ jobs: [{ name: 'from-typescript' }], schema: 'low' })
  })

  test('refuses another copy of Millrace: what its handlers return would not be understood', async () => {
    const root = temporaryFolder()
    const other = join(root, 'node_modules', 'millrace')
    mkdirSync(other, { recursive: true })
    writeFileSync(join(other, 'package.json'), '{ "name": "millrace" }')
    for (const name of ['millrace.config.ts', 'other.mjs']) {
      writeFileSync(join(root, name), 'export default { jobs: [] }')
      const { code, err } = await start(['status', '--config', name], { cwd: root }).done
      expect(err).toContain('this project has a millrace of its own (node_modules/millrace)')
      expect(err).toContain('npx millrace')
      expect(code).toBe(1)
    }
  })

  test('may be JavaScript', async () => {
    const root = temporaryFolder()
    writeFileSync(join(root, 'other.mjs'), 'export default { jobs: [] }')
    expect((await loadConfig(root, 'other.mjs'))?.config).toEqual({ jobs: [] })
  })

  test.each([
    ['export const config = {}', 2, 'export default defineConfig'],
    ['export default { job: [] }', 2, 'export default defineConfig({ jobs: ['],
    ['throw new Error("no postgres://u:secret@db here")', 1, 'could not be loaded: no postgres://u:***@db here'],
    ['export default {', 1, 'could not be loaded'],
  ])('that says %s is refused by its name', async (text, exit, says) => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'millrace.config.ts'), text)
    const { code, err } = await start(['status'], { cwd }).done
    expect(err).toContain(`millrace.config.ts`)
    expect(err).toContain(says)
    expect(code).toBe(exit)
  })

  test('that is named and not there ends with 2', async () => {
    const { code, err } = await start(['status', '--config', 'nowhere.ts'], { cwd: temporaryFolder() }).done
    expect(err).toContain('there is no file nowhere.ts')
    expect(code).toBe(2)
  })

  test('wrong options in it are told by their names', async () => {
    const misspelt: object = { queus: {} }
    const { run } = await setup(misspelt)
    const { code, err } = await run('status')
    expect(err).toContain('did you mean queues?')
    expect(code).toBe(2)
  })

  test('has types: jobs are known by name', () => {
    const config = defineConfig({ jobs: [mail], postgres: process.env['NOT_SET'], work: { concurrency: 5 } })
    const names: 'send-mail' = config.jobs[0].name
    expect(names).toBe('send-mail')
    // @ts-expect-error -- a misspelt option
    defineConfig({ jobs: [], postgre: 'x' })
    // @ts-expect-error -- jobs are needed
    defineConfig({ work: {} })
  })
})

describe('the store', () => {
  async function chosen(flags: GlobalFlags, env: Record<string, string>, config?: object) {
    const cwd = temporaryFolder()
    if (config !== undefined) writeFileSync(join(cwd, 'millrace.config.mjs'), '')
    const load = (): Promise<unknown> => Promise.resolve({ default: { jobs: [], ...config } })
    return readSettings({ cwd, env }, flags, {}, load)
  }

  test('a flag wins over our variable, that over the file, that over DATABASE_URL', async () => {
    const env = { DATABASE_URL: A, MILLRACE_DATABASE_URL: B }
    expect((await chosen({ postgres: C }, env, { postgres: A })).store).toMatchObject({
      server: { url: C },
      from: '--postgres',
    })
    expect((await chosen({}, env, { backend: memory() })).store).toMatchObject({
      server: { url: B },
      from: 'MILLRACE_DATABASE_URL',
    })
    expect((await chosen({}, { DATABASE_URL: A }, { postgres: C })).store).toMatchObject({
      server: { url: C },
      from: 'millrace.config.mjs',
    })
    expect((await chosen({}, { DATABASE_URL: A }, { backend: memory() })).store).toMatchObject({ kind: 'backends' })
    expect((await chosen({}, { DATABASE_URL: A }, {})).store).toMatchObject({
      server: { url: A },
      from: 'DATABASE_URL',
    })
    expect((await chosen({}, { DATABASE_URL: A })).store).toMatchObject({ server: { url: A }, from: 'DATABASE_URL' })
    expect((await chosen({}, {}, {})).store).toMatchObject({
      kind: 'embedded',
      dir: expect.stringMatching(/\.millrace$/) as string,
    })
  })

  test('an override replaces the store of the file, and nothing else of it', async () => {
    const { options, store } = await chosen(
      { postgres: C },
      {},
      { backend: memory(), queues: {}, postgres: A, dataDir: 'x' },
    )
    expect(options).toEqual({ jobs: [], queues: {} })
    expect(store).toMatchObject({ server: { url: C } })
  })

  test('of the file may have options of its own', async () => {
    const { store } = await chosen(
      {},
      {},
      { postgres: { url: A, replicaUrl: B, poolMax: 3, migrate: 'check' }, schema: 'jobs' },
    )
    expect(store).toMatchObject({ server: { url: A, replicaUrl: B, poolMax: 3, migrate: 'check', schema: 'jobs' } })
  })

  test('the schema follows the same order', async () => {
    const schemaOf = async (flags: GlobalFlags, env: Record<string, string>) =>
      (await chosen({ postgres: A, ...flags }, env, { schema: 'z' })).store
    expect(await schemaOf({ schema: 'x' }, { MILLRACE_SCHEMA: 'y' })).toMatchObject({ server: { schema: 'x' } })
    expect(await schemaOf({}, { MILLRACE_SCHEMA: 'y' })).toMatchObject({ server: { schema: 'y' } })
    expect(await schemaOf({}, {})).toMatchObject({ server: { schema: 'z' } })
  })

  test('Redis is named by a flag, our variable or the file, alone or before PostgreSQL', async () => {
    const [one, two] = ['redis://:pw@one', 'rediss://u:pw@two:6380/1']
    const env = { MILLRACE_REDIS_URL: two, DATABASE_URL: A }
    const flag = { kind: 'redis', server: { url: one }, from: '--redis', shown: 'redis://:***@one' }
    expect((await chosen({ redis: one }, env, { postgres: A })).store).toMatchObject(flag)
    expect((await chosen({}, env, { postgres: A })).store).toMatchObject({ server: { url: two } })
    const cluster = { cluster: ['redis://:pw@a', 'redis://:pw@b'], prefix: 'jobs' }
    expect((await chosen({}, { DATABASE_URL: A }, { redis: cluster })).store).toMatchObject({
      server: cluster,
      shown: 'the Redis Cluster redis://:***@a, redis://:***@b',
    })
    const together = { kind: 'postgres', server: { url: A }, race: { url: one } }
    const shown = 'postgres://a:***@a/a with redis://:***@one'
    const flags = { redis: one, postgres: A }
    expect((await chosen(flags, {})).store).toMatchObject({ ...together, shown, from: '--postgres, --redis' })
    const named = { MILLRACE_REDIS_URL: one, MILLRACE_DATABASE_URL: A }
    expect((await chosen({}, named, { postgres: B })).store).toMatchObject(together)
    const file = { redis: one, postgres: A }
    expect((await chosen({}, {}, file)).store).toMatchObject({ ...together, from: 'millrace.config.mjs' })
    await expect(chosen({ redis: 'http://:pw@one' }, {})).rejects.toThrow('does not name a Redis server')
  })

  test('is shown with its password masked', async () => {
    expect((await chosen({ postgres: A }, {})).store.shown).toBe('postgres://a:***@a/a')
  })

  test('must be a URL of PostgreSQL', async () => {
    const { code, err } = await start(['status', '--postgres', 'mysql://u:secret@db'], { cwd: temporaryFolder() }).done
    expect(err).toContain('--postgres does not name a PostgreSQL server')
    expect(err).not.toContain('secret')
    expect(code).toBe(2)
  })

  test('embedded, it is started or found, and left again', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'millrace.config.mjs'), '')
    const calls: string[] = []
    const startEmbedded = ({ dir = '' }) => {
      calls.push(`start ${dir === join(cwd, '.millrace')}`)
      return Promise.resolve({ url: A, dir, stop: () => Promise.resolve(void calls.push('stop')) })
    }
    const load = (): Promise<unknown> => Promise.resolve({ default: { jobs: [], storeTimeout: 'never' } })
    const { code } = await start(['status'], { cwd, load, startEmbedded }).done
    expect(calls).toEqual(['start true', 'stop'])
    expect(code).toBe(2)
  })
})

describe('init', () => {
  test('writes a configuration and a job, and says what comes next', async () => {
    const cwd = temporaryFolder()
    const { code, out } = await start(['init'], { cwd }).done
    expect(out).toBe('wrote millrace.config.ts\nwrote jobs/hello.ts\nnext: npx millrace dev\n')
    expect(code).toBe(0)
    expect(readFileSync(join(cwd, 'millrace.config.ts'), 'utf8')).toContain('defineConfig')
  })

  test('never writes over anything', async () => {
    const cwd = temporaryFolder()
    writeFileSync(join(cwd, 'millrace.config.mjs'), 'mine')
    const { json } = await start(['init', '--json'], { cwd }).done
    expect(json).toEqual({
      schemaVersion: 1,
      written: ['jobs/hello.ts'],
      kept: ['millrace.config.mjs'],
      next: 'millrace dev',
    })
    expect(readFileSync(join(cwd, 'millrace.config.mjs'), 'utf8')).toBe('mine')
    expect((await start(['init', '--json'], { cwd }).done).json).toMatchObject({ written: [] })
  })
})
